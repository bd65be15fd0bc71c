// An agent as a process of its own, as docs/jobs.md has it, while it is asked to stop and while its servers are gone.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Client, createClient } from "../../src/entry/client.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";

const LIMIT_MS = 90_000;
const ENTRY = fileURLToPath(new URL("../../src/entry/agent.ts", import.meta.url));

/** Prints what it does, one word a line; a job's payload says for how long it runs. */
const SCRIPT = `
  import { createAgent } from ${JSON.stringify(ENTRY)};
  const agent = createAgent({
    urls: process.env.URLS.split(","),
    key: process.env.KEY,
    name: process.env.NAME,
    leaseMs: 6_000,
    handlers: {
      [process.env.NAME]: async ({ id, payload }, { signal }) => {
        console.log("run " + id);
        await new Promise((resolve, reject) => {
          const timer = setTimeout(resolve, payload);
          signal.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason);
          });
        });
        console.log("done " + id);
        return process.pid;
      },
    },
  });
  await agent.start();
  console.log("started");
  process.once("SIGTERM", () => void agent.stop({ drainMs: 2_000 }));
  const reason = await agent.ended;
  console.log("ended " + (reason === null ? "by itself" : reason.code));
`;

interface AgentProcess {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly exit: Promise<number | null>;
}

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster();
  client = createClient({ urls: cluster.urls, key, timeoutMs: 30_000 });
}, LIMIT_MS);

afterAll(() => cluster?.end());

async function startAgent(name: string): Promise<AgentProcess> {
  const child = spawn(process.execPath, ["--no-warnings", "--input-type=module", "-e", SCRIPT], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], URLS: cluster.urls.join(","), KEY: key, NAME: name },
  });
  const lines: string[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  await waitFor("the agent to start", () => lines.includes("started"), LIMIT_MS);
  return { child, lines, exit };
}

test(
  "SIGTERM: what can end ends and counts, what can't is handed back at no cost, and the process exits with 0",
  async () => {
    const kind = "drained";
    const { child, lines, exit } = await startAgent(kind);
    const short = await client.submit({ kind, payload: 1_000 });
    await waitFor("the job to run", () => lines.includes(`run ${short}`));
    child.kill("SIGTERM");
    expect(await exit).toBe(0);
    expect(lines.slice(-2)).toEqual([`done ${short}`, "ended by itself"]);
    expect(await client.job(short)).toMatchObject({ state: "completed", result: child.pid, failures: 0, losses: 0 });

    const other = await startAgent(kind);
    const long = await client.submit({ kind, payload: 60_000 });
    await waitFor("the long job to run", () => other.lines.includes(`run ${long}`));
    const later = await client.submit({ kind, payload: 1 });
    other.child.kill("SIGTERM");
    expect(await other.exit).toBe(0);
    expect(await client.job(long, { consistency: "linearizable" })).toMatchObject({
      state: "pending",
      failures: 0,
      losses: 0,
      attempts: [{ end: "handed-back" }],
    });
    expect(other.lines, "a stopping agent takes no new jobs").not.toContain(`run ${later}`);
  },
  LIMIT_MS,
);

test(
  "while every server is gone the agent waits, and goes on by itself when they are back; nothing runs twice at once",
  async () => {
    const kind = "outage";
    const { child, lines } = await startAgent(kind);
    const before = await client.submit({ kind, payload: 100 });
    await client.wait(before, { signal: AbortSignal.timeout(LIMIT_MS) });
    const under = await client.submit({ kind, payload: 3_000 });
    await waitFor("the job to run", () => lines.includes(`run ${under}`));
    for (const { id } of cluster.nodes) await cluster.kill(id);
    for (const { id } of cluster.nodes) cluster.start(id);
    await cluster.steady(LIMIT_MS);
    const done = await client.wait(under, { signal: AbortSignal.timeout(LIMIT_MS) });
    expect(done).toMatchObject({ state: "completed", result: child.pid, failures: 0 });
    // A lease that could not be renewed in time is given once more; of all runs one counts.
    expect(done.attempts.filter(({ end }) => end === "completed")).toHaveLength(1);
    expect(lines.filter((line) => line === `run ${under}`)).toHaveLength(done.attempts.length);
    const after = await client.submit({ kind, payload: 1 });
    expect(await client.wait(after, { signal: AbortSignal.timeout(LIMIT_MS) })).toMatchObject({ result: child.pid });
    expect(child.exitCode).toBeNull();
  },
  2 * LIMIT_MS,
);
