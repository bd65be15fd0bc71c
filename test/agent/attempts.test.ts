// An agent in trouble, with jobs that are hard to find: no attempt begins while a process of the one before it runs. Each attempt
// looks for itself, first of all: nothing here depends on when anybody else looks.
//
//   trouble: kill -9, SIGSTOP, a loop that does not turn any more, a machine that slept
//   jobs:    plain, without its environment, in a session of its own without its environment, with its title written over its environment
//
// A machine that slept is an agent whose wall clock has gained an hour on its monotonic one (trouble.ts): that the whole machine
// stands still meanwhile can't be had here. Out of reach, and documented: one that cleared its environment, left its session and lost its parents.

import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAgent } from "../../src/entry/agent.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { isAlive } from "../processes/living.ts";
import { findProgram } from "../servers/server-process.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { Pids, TestAgent } from "./test-agent.ts";

const TROUBLE = fileURLToPath(new URL("trouble.ts", import.meta.url));
/** Long enough that a busy machine is not taken for trouble. */
const LEASE = ["--lease", "12s"];
const LABELS = { set: "attempts" };
const LIMIT_MS = 90_000;
const RESTARTS = 10;

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  client = createClient({ urls: cluster.urls, key, timeoutMs: 30_000 });
});

afterAll(() => cluster?.end());

/** Of the first attempt, in a shell. `$FOLDER` is where each leaves its number. */
const JOBS: Readonly<Record<string, string>> = {
  plain: `echo > $FOLDER/$$; exec sleep 1000`,
  cleared: `exec env -i PATH="$PATH" sh -c 'echo > '$FOLDER'/$$; exec sleep 1000'`,
  "cleared in a session of its own": `setsid env -i PATH="$PATH" sh -c 'echo > '$FOLDER'/$$; exec sleep 1000' & wait`,
  ...(findProgram("perl") === undefined
    ? {}
    : {
        titled: `exec perl -e '$0 = "t" x 100_000; open(my $f, ">", "'$FOLDER'/$$"); close $f; sleep 1000'`,
      }),
};

/** The first attempt stays; each later one says who of the first runs, and completes the job. */
function script(folder: string, first: string): string {
  return `
    FOLDER=${folder}
    if [ "$TENURE_JOB_ATTEMPT" = 1 ]; then ${first}; fi
    for file in $FOLDER/*; do
      read -r line 2>/dev/null < "/proc/\${file##*/}/stat" || continue
      case \${line##*) } in Z* | X*) ;; *) mkdir -p $FOLDER/overlap/\${file##*/} ;; esac
    done`;
}

const NAMES = Object.keys(JOBS);

describe.runIf(process.platform === "linux")("no two attempts run at once where the agent", () => {
  test.each([
    ["is killed with -9", "none", "SIGKILL"],
    ["is stopped", "none", "SIGSTOP"],
    ["computes without an end", "spin", "SIGUSR2"],
    ["was on a machine that slept for an hour", "sleep", "SIGUSR2"],
  ] as const)("%s", { timeout: 3 * LIMIT_MS }, async (what, trouble, signal) => {
    const env = { NODE_OPTIONS: `--import ${TROUBLE}`, TROUBLE: trouble };
    const flags = ["--capacity", `${NAMES.length}`, "--label", "set=attempts", ...LEASE];
    const agent = new TestAgent(`in-trouble-${signal}-${trouble}`, cluster.urls, flags, { env });
    await agent.said("started");
    const runs = await Promise.all(
      NAMES.map(async (name) => {
        const pids = new Pids();
        const payload = { command: ["sh", "-c", script(pids.folder, JOBS[name]!)] };
        const id = await client.submit({ kind: "exec", payload, labels: LABELS, attemptsMax: 3 });
        return { name, pids, id };
      }),
    );
    for (const { pids } of runs) await pids.ready(1);
    const next = await TestAgent.start(`next-of-${agent.name}`, cluster.urls, [...flags]);
    agent.child.kill(signal);
    for (const { name, id, pids } of runs) {
      const job = await client.wait(id, { signal: AbortSignal.timeout(LIMIT_MS) });
      expect([what, name, job.state]).toEqual([what, name, "completed"]);
      expect([what, name, existsSync(join(pids.folder, "overlap"))]).toEqual([what, name, false]);
      expect(pids.living()).toEqual([]);
    }
    next.child.kill("SIGTERM");
    await next.exit;
  });

  test("would be seen: an attempt that finds the one before alive says so", async () => {
    const pids = new Pids();
    const agent = await TestAgent.start("seen", cluster.urls, LEASE);
    const before = spawn("sleep", ["1000"], { stdio: "ignore" }).pid!;
    writeFileSync(join(pids.folder, String(before)), "");
    const env = { TENURE_ATTEMPT: "2" };
    const shown = script(pids.folder, "true").replace("$TENURE_JOB_ATTEMPT", "$TENURE_ATTEMPT");
    const id = await client.submit(agent.request(["sh", "-c", shown], env));
    expect((await client.wait(id, { signal: AbortSignal.timeout(LIMIT_MS) })).state).toBe("completed");
    expect(existsSync(join(pids.folder, "overlap", String(before)))).toBe(true);
  });
});

test(`trap 75: an agent that was frozen does not take its name back after ${RESTARTS} restarts: it ends`, async () => {
  const frozen = await TestAgent.start("restarted", cluster.urls, LEASE);
  const pids = new Pids();
  const id = await client.submit(frozen.request(["sh", "-c", "echo > $PIDS/$$; exec sleep 1000"], pids.env));
  await pids.ready(1);
  frozen.child.kill("SIGSTOP");
  for (let restart = 0; restart < RESTARTS; restart++) {
    const agent = createAgent({ client, name: "restarted", handlers: { none: () => null }, leaseMs: 30_000 });
    await agent.start();
    await agent.stop();
  }
  const named = async () => (await client.agents()).find(({ name }) => name === "restarted")!;
  const last = await named();
  frozen.child.kill("SIGCONT");
  expect(await frozen.exit).toBe(76);
  expect(await named()).toMatchObject({ session: last.session, epoch: last.epoch });
  await waitFor("its job to be gone", () => pids.all().every((pid) => !isAlive(pid)), LIMIT_MS);
  await client.cancel(id);
});
