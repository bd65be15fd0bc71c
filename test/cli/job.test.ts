// `tenure job` as a process, against three real servers and an agent: every verb, rightly and wrongly used.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { briefObject, jobObject, pieceObject, steeredObject, waitedObject } from "../../src/cli/job/object.ts";
import { briefOf, jobOf } from "../../src/cli/job/test-job.ts";
import { type Agent, createAgent, JobError } from "../../src/entry/agent.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { OPERATOR_KEY, startTenureCluster, type TenureCluster, VIEWER_KEY, waitFor } from "../servers/index.ts";
import { start, tenure, tenureJson } from "./test-tenure.ts";

interface Job {
  readonly id: string;
  readonly state: string;
  readonly spec: { readonly payload: unknown; readonly kind: string; readonly priority: number };
  readonly result: unknown;
  readonly error: { readonly message: string } | null;
  readonly attempts: readonly { readonly end: string; readonly agent: string }[];
  readonly pending_reason: { readonly reason: string } | null;
}

interface Several {
  readonly code: number;
  readonly jobs: readonly {
    readonly id: string;
    readonly state: string | null;
    readonly refusal: { readonly code: string } | null;
  }[];
}

/** Handlers wait for these; by the payload. */
const gates = new Map<string, PromiseWithResolvers<void>>();

function gate(): string {
  const name = randomUUID();
  gates.set(name, Promise.withResolvers());
  return name;
}

const DIRECTORY = mkdtempSync(join(tmpdir(), "tenure-job-"));
let cluster: TenureCluster;
let client: Client;
let agent: Agent;
let access: string[];

beforeAll(async () => {
  cluster = await startTenureCluster();
  access = ["--url", cluster.urls.join(","), "--key", OPERATOR_KEY];
  client = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
  agent = createAgent({
    client,
    name: "w1",
    capacity: 8,
    handlers: {
      echo: ({ payload }, { log, progress }) => {
        log("hello\n");
        progress(0.5, "half");
        log("bye\n");
        return payload;
      },
      exec: ({ payload }) => payload,
      bad: () => {
        throw new JobError("it broke", { retry: false, detail: { at: 1 } });
      },
      flaky: (_job, { attempt, log }) => {
        log(`attempt ${attempt}\n`);
        if (attempt === 1) throw new Error("not yet");
      },
      gated: async ({ payload }, { signal, log }) => {
        log("begun\n");
        const aborted = Promise.withResolvers<never>();
        signal.addEventListener("abort", () => aborted.reject(signal.reason as Error));
        await Promise.race([gates.get(payload as string)!.promise, aborted.promise]);
        log("ended\n");
      },
    },
  });
  await agent.start();
}, 120_000);

afterAll(async () => {
  await agent?.stop({ drainMs: 0 });
  await cluster?.end();
  rmSync(DIRECTORY, { recursive: true, force: true });
});

const job = (...args: readonly string[]) => tenure("job", ...args, ...access);
const submitArgs = (...args: readonly string[]) => ["job", "submit", ...access, ...args];

async function detached(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tenure(...submitArgs("--detach", ...args));
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^[A-Za-z0-9_-]+\n$/);
  return stdout.trim();
}

async function finished(id: string): Promise<string> {
  return (await client.wait(id, { signal: AbortSignal.timeout(60_000) })).state;
}

async function running(id: string): Promise<void> {
  await waitFor("the job to run", async () => {
    return (await client.job(id, { consistency: "linearizable" })).state === "building";
  });
}

describe("submit", () => {
  it("follows by default: the log on stdout, what becomes of it on stderr", async () => {
    const { code, stdout, stderr } = await job("submit", "echo", "--payload", '{"a":1}', "--priority", "3");
    expect(code).toBe(0);
    expect(stdout).toBe("hello\nbye\n");
    const id = /^tenure: job (\S+)\n/.exec(stderr)?.[1] ?? "";
    expect(stderr).toContain("tenure: attempt 1 at agent w1\n");
    expect(stderr).toMatch(/\ntenure: completed after \S+, result \{"a":1\}\n$/);
    expect(await client.job(id)).toMatchObject({ state: "completed", spec: { priority: 3 } });
  });

  it("prints the job at the end with -o json and jsonl, and no log", async () => {
    for (const output of ["json", "jsonl"]) {
      const { code, stdout } = await job("submit", "echo", "--payload", "7", "-o", output);
      expect(code).toBe(0);
      expect(stdout.trim().split("\n")).toHaveLength(1);
      expect(JSON.parse(stdout)).toMatchObject({ state: "completed", result: 7, attempts: [{ end: "completed" }] });
    }
  });

  it("ends with 1 where the job failed, and says why; where it was cancelled too", async () => {
    const bad = await job("submit", "bad");
    expect(bad).toMatchObject({ code: 1, stdout: "" });
    expect(bad.stderr).toMatch(/\ntenure: failed after \S+: it broke\n$/);
    const waiting = start(submitArgs("nobody-runs-this"));
    await waitFor("the reason", () => waiting.said.stderr.includes("waits:"));
    expect(waiting.said.stderr).toContain("tenure: waits: no agent takes it");
    const id = /job (\S+)/.exec(waiting.said.stderr)![1]!;
    await client.cancel(id);
    const ended = await waiting.ended;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/\ntenure: cancelled after \S+\n$/);
  });

  it("tells of a retry, with the log of both attempts", async () => {
    const { code, stdout, stderr } = await job("submit", "flaky", "--backoff", "0ms,0ms");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "attempt 1\nattempt 2\n" });
    expect(stderr).toContain("tenure: the attempt ended, failed: not yet; again from ");
  });

  it("a command is of the kind exec", async () => {
    const made = ["--env", "A=1", "--cwd", "src", "-o", "json", "--", "make", "-o", "--", "x"];
    const { stdout } = await tenure(...submitArgs(...made));
    const { spec, result } = JSON.parse(stdout) as Job;
    expect(spec.kind).toBe("exec");
    expect(result).toEqual({ command: ["make", "-o", "--", "x"], env: { A: "1" }, cwd: "src" });
  });

  it("reads the payload from a file and from stdin", async () => {
    const file = join(DIRECTORY, "payload.json");
    writeFileSync(file, ' {"from": "file"}\n');
    const payloadOf = async (id: string) => (await client.job(id)).spec.payload;
    expect(await payloadOf(await detached("echo", "--payload-file", file))).toEqual({ from: "file" });
    const child = spawn(process.execPath, [
      "src/cli/main.ts",
      ...submitArgs("echo", "--detach", "--payload-file", "-"),
    ]);
    let id = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (id += text));
    child.stdin.end('{"from": "stdin"}');
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0);
    expect(await payloadOf(id.trim())).toEqual({ from: "stdin" });
    const refused: [string, string, string][] = [
      ["none.json", "", "there is no such file"],
      ["text.json", "{a: 1}", "must be JSON"],
      ["large.json", `"${"x".repeat(2 ** 20)}"`, "is too large: a payload has at most 262144 bytes"],
    ];
    for (const [name, text, why] of refused) {
      if (text !== "") writeFileSync(join(DIRECTORY, name), text);
      const { code, stdout, stderr } = await job("submit", "echo", "--payload-file", join(DIRECTORY, name));
      expect({ code, stdout, lines: stderr.split("\n").length }).toEqual({ code: 64, stdout: "", lines: 2 });
      expect(stderr).toContain(why);
    }
  });

  it("is done once under an idempotency key", async () => {
    const key = randomUUID();
    const first = await detached("echo", "--payload", "1", "--idempotency-key", key);
    expect(await detached("echo", "--payload", "1", "--idempotency-key", key)).toBe(first);
    const other = await job("submit", "echo", "--payload", "2", "--idempotency-key", key);
    expect(other).toMatchObject({ code: 64, stdout: "" });
    // Followed when it is over: the whole log once more, and the same end.
    expect(await finished(first)).toBe("completed");
    const again = await job("submit", "echo", "--payload", "1", "--idempotency-key", key);
    expect(again).toMatchObject({ code: 0, stdout: "hello\nbye\n" });
    const { id } = await tenureJson<Job>(...submitArgs("echo", "--payload", "1", "--idempotency-key", key, "--detach"));
    expect(id).toBe(first);
  });

  it("a job that is not kept when it is finished is followed to its end too", async () => {
    const { code, stdout, stderr } = await job("submit", "echo", "--retention", "0s");
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "hello\nbye\n" });
  });

  it("with SIGINT the following ends, and the job goes on", async () => {
    const name = gate();
    const following = start(submitArgs("gated", "--payload", JSON.stringify(name)));
    await waitFor("the log", () => following.said.stdout === "begun\n");
    following.child.kill("SIGINT");
    const { code, stderr } = await following.ended;
    expect(code).toBe(130);
    const id = /job (\S+)/.exec(stderr)![1]!;
    expect(stderr).toContain(`look: tenure job show ${id}; stop it: tenure job cancel ${id}\n`);
    expect((await client.job(id, { consistency: "linearizable" })).state).toBe("building");
    gates.get(name)!.resolve();
    expect(await finished(id)).toBe("completed");
  });

  it("goes on over the death of the leader, and prints everything once", async () => {
    const name = gate();
    const following = start(submitArgs("gated", "--payload", JSON.stringify(name)));
    await waitFor("the log", () => following.said.stdout === "begun\n");
    const old = await cluster.leader();
    await cluster.kill(old);
    await cluster.waitForLeader(old);
    gates.get(name)!.resolve();
    const { code, stdout, stderr } = await following.ended;
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "begun\nended\n" });
    cluster.start(old);
    await cluster.steady();
  });
});

describe("list", () => {
  it("shows what fits, newest first, in three forms, and says when there are more", async () => {
    const kind = `listed-${randomUUID()}`;
    const ids: string[] = [];
    for (const queue of ["q1", "q2", "q2"]) ids.unshift(await detached(kind, "--queue", queue, "--not-before", "1h"));
    const all = await tenureJson<{ jobs: Job[]; has_more: boolean }>("job", "list", "--kind", kind, ...access);
    expect(all.jobs.map(({ id }) => id)).toEqual(ids);
    expect(all.has_more).toBe(false);
    const some = await job("list", "--kind", kind, "--queue", "q2", "--state", "pending,failed");
    expect(some).toMatchObject({ code: 0, stderr: "" });
    expect(some.stdout).toMatch(/^ID +KIND +STATE +QUEUE +ATTEMPT +AGE +WHY\n/);
    expect(some.stdout.trim().split("\n")).toHaveLength(3);
    expect(some.stdout).toMatch(new RegExp(`^${ids[0]} +${kind} +pending +q2 +0 +\\S+ +not before 2`, "m"));
    const limited = await job("list", "--kind", kind, "--limit", "2", "-o", "jsonl");
    expect(
      limited.stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as Job).id),
    ).toEqual(ids.slice(0, 2));
    expect(limited.stderr).toBe("tenure: these are the newest 2, and there are more: --limit N shows more of them\n");
    expect((await job("list", "--kind", kind, "--state", "completed")).stdout.trim().split("\n")).toHaveLength(1);
    const found = await tenureJson<{ jobs: Job[] }>("job", "list", "--search", kind, "--limit", "3", ...access);
    expect(found.jobs.map(({ id }) => id)).toEqual(ids);
  });

  it("says of each job that waits what it waits for: its queue, agents that nobody has started, agents that are busy", async () => {
    const kind = `waits-${randomUUID()}`;
    const queue = `q-${randomUUID()}`;
    await tenure("queue", "pause", queue, ...access);
    await detached("--kind", kind, "--queue", queue);
    expect((await job("list", "--kind", kind)).stdout).toMatch(/ queue paused\n$/);
    await tenure("queue", "resume", queue, ...access);
    const lines = async (): Promise<string[]> => (await job("list", "--kind", kind)).stdout.trim().split("\n").slice(1);
    const why = async (): Promise<string[]> => (await lines()).map((line) => line.split(/ {2,}/).at(-1)!);
    const nobody = `no agent takes it (kind ${kind}); its kind is ${kind}`;
    expect(await why()).toEqual([nobody]);
    await detached("--kind", kind, "--queue", queue);
    expect(await why(), "one asks for both").toEqual([nobody, nobody]);
    const held = Promise.withResolvers<void>();
    const busy = createAgent({ client, name: `w-${queue}`, capacity: 1, handlers: { [kind]: () => held.promise } });
    await busy.start();
    try {
      await waitFor("one to be given out", async () => (await lines()).some((line) => / at w-q/.test(line)));
      expect(await why()).toContain("the one agent that could take it is busy");
    } finally {
      held.resolve();
      await busy.stop();
    }
  });

  it("finds what an agent has had", async () => {
    const id = await detached("bad");
    expect(await finished(id)).toBe("failed");
    const { stdout } = await job("list", "--agent", "w1", "--kind", "bad", "--limit", "1");
    expect(stdout).toMatch(new RegExp(`^${id} +bad +failed +default +1 +\\S+ +it broke$`, "m"));
    expect((await job("list", "--agent", "nobody")).stdout.trim().split("\n")).toHaveLength(1);
  });
});

describe("show and logs", () => {
  it("show has all of one job, in both forms", async () => {
    const id = await detached("bad", "--label", "zone=a", "--label", "zone2=b", "--attempts", "2");
    const waiting = await tenureJson<Job>("job", "show", id, ...access);
    expect(waiting).toMatchObject({ code: 0, id, state: "pending", pending_reason: { reason: "no-agent" } });
    const failed = await detached("bad");
    expect(await finished(failed)).toBe("failed");
    const { code, stdout } = await job("show", failed);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^state +failed$/m);
    expect(stdout).toMatch(/^error +it broke$/m);
    expect(stdout).toMatch(/^error detail +\{"at":1\}$/m);
    expect(stdout).toMatch(/^1 +1 +\d+ +w1 .* failed$/m);
  });

  it("logs prints what an attempt has printed, in three forms", async () => {
    const id = await detached("flaky", "--backoff", "0ms,0ms");
    expect(await finished(id)).toBe("completed");
    expect(await job("logs", id)).toEqual({ code: 0, stdout: "attempt 2\n", stderr: "" });
    expect(await job("logs", id, "--attempt", "1")).toEqual({ code: 0, stdout: "attempt 1\n", stderr: "" });
    expect(await job("logs", id, "--follow")).toEqual({ code: 0, stdout: "attempt 2\n", stderr: "" });
    const piece = { attempt: 2, offset: 0, next_offset: 10, text: "attempt 2\n" };
    expect(await tenureJson("job", "logs", id, ...access)).toEqual({ code: 0, id, pieces: [piece] });
    expect(JSON.parse((await job("logs", id, "-o", "jsonl")).stdout)).toEqual(piece);
    const none = await job("logs", id, "--attempt", "3");
    expect(none).toMatchObject({ code: 69, stdout: "" });
    expect(none.stderr).toBe(`tenure: job ${id} is completed and has no attempt 3: the last is 2.\n`);
    const silent = await detached("bad");
    expect(await finished(silent)).toBe("failed");
    expect(await job("logs", silent)).toEqual({
      code: 0,
      stdout: "",
      stderr: `tenure: job ${silent} is failed; attempt 1 has printed nothing\n`,
    });
  });

  it("logs --follow goes on until the attempt has ended, or until SIGINT", async () => {
    const name = gate();
    const id = await detached("gated", "--payload", JSON.stringify(name));
    const [one, two] = [1, 2].map(() => start(["job", "logs", id, "--follow", ...access])) as [Follow, Follow];
    await waitFor("the first line", () => one.said.stdout === "begun\n" && two.said.stdout === "begun\n");
    two.child.kill("SIGINT");
    expect((await two.ended).code).toBe(130);
    gates.get(name)!.resolve();
    expect(await one.ended).toEqual({ code: 0, stdout: "begun\nended\n", stderr: expect.any(String) as string });
  });
});

type Follow = ReturnType<typeof start>;

describe("cancel, retry and wait", () => {
  it("cancel ends what waits at once and what runs soon; every id is tried, and the first refusal counts", async () => {
    const name = gate();
    const [waits, runs] = [
      await detached("nobody-runs-this"),
      await detached("gated", "--payload", JSON.stringify(name)),
    ];
    await running(runs);
    const { code, stdout, stderr } = await job("cancel", waits, "missing", runs);
    expect({ code, stdout }).toEqual({ code: 69, stdout: `${waits}  cancelled\n${runs}  cancelling\n` });
    expect(stderr).toMatch(/^tenure: missing: .*\n$/);
    expect(await finished(runs)).toBe("cancelled");
    // It never ran, so there is nothing to follow for ever.
    expect(await job("logs", waits, "--follow")).toMatchObject({ code: 0, stdout: "" });
    const again = await tenureJson<Several>("job", "cancel", waits, ...access);
    expect(again).toMatchObject({ code: 69, jobs: [{ id: waits, state: null, refusal: { code: "JOB_FINISHED" } }] });
  });

  it("retry sends finished jobs once more, and refuses others with 64", async () => {
    const [done, waits] = [await detached("bad"), await detached("nobody-runs-this")];
    expect(await finished(done)).toBe("failed");
    const { code, stdout, stderr } = await job("retry", done, waits, "-o", "jsonl");
    expect(code).toBe(64);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Several["jobs"][number]);
    expect(lines).toMatchObject([
      { id: done, refusal: null },
      { id: waits, state: null, refusal: { code: "BAD_REQUEST" } },
    ]);
    expect(stderr).toContain(`tenure: ${waits}: `);
    await waitFor("the second attempt", async () => (await client.job(done)).attempts.length === 2);
    await client.cancel(waits);
  });

  it("wait ends when all are finished: 0, 1 where one did not complete, 69 where there is none", async () => {
    const [good, bad] = [await detached("echo"), await detached("bad")];
    const name = gate();
    const slow = await detached("gated", "--payload", JSON.stringify(name));
    const waiting = start(["job", "wait", good, slow, "-o", "jsonl", ...access]);
    await waitFor("the first", () => waiting.said.stdout.includes(good));
    expect(waiting.said.stdout).not.toContain(slow);
    gates.get(name)!.resolve();
    expect((await waiting.ended).code).toBe(0);
    const mixed = await job("wait", good, bad);
    expect(mixed.code).toBe(1);
    expect(mixed.stdout).toMatch(new RegExp(`^${good}  completed after \\S+$`, "m"));
    expect(mixed.stdout).toMatch(new RegExp(`^${bad}  failed after \\S+: it broke$`, "m"));
    const missing = await tenureJson<Several>("job", "wait", bad, "missing", ...access);
    expect(missing).toMatchObject({
      code: 69,
      jobs: [{ state: "failed" }, { state: null, refusal: { code: "NOT_FOUND" } }],
    });
  });

  it("wait gives up when its time is over, with 75, and the job goes on", async () => {
    const id = await detached("nobody-runs-this");
    const { code, stdout, stderr } = await job("wait", id, "--timeout", "300ms");
    expect({ code, stdout, stderr }).toEqual({
      code: 75,
      stdout: "",
      stderr: `tenure: ${id} is pending after 300ms\n`,
    });
    const waiting = start(["job", "wait", id, ...access]);
    const ended = waiting.ended;
    expect(await tenureJson<Several>("job", "cancel", id, ...access)).toMatchObject({
      code: 0,
      jobs: [{ state: "cancelled" }],
    });
    expect((await ended).code).toBe(1);
  });
});

describe("what is refused", () => {
  it.each<[string, readonly string[], number, string]>([
    ["an unknown job", ["show", "missing"], 69, "missing"],
    ["the log of an unknown job", ["logs", "missing", "--follow"], 69, "missing"],
    ["a wrong flag", ["list", "--stat", "failed"], 64, "did you mean --state?"],
    ["a wrong output", ["show", "j1", "-o", "jsonl"], 64, "-o takes table or json"],
    [
      "too many labels",
      ["submit", "echo", ...Array.from({ length: 33 }, (_, at) => ["--label", `l${at}=1`]).flat()],
      64,
      "labels",
    ],
  ])("%s is one line and an exit code", async (_what, args, exit, text) => {
    const { code, stdout, stderr } = await job(...args);
    expect({ code, stdout }, stderr).toEqual({ code: exit, stdout: "" });
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toContain(text);
  });

  it("a viewer looks, and does not submit", async () => {
    const viewer = ["--url", cluster.urls.join(","), "--key", VIEWER_KEY];
    expect((await tenure("job", "list", ...viewer)).code).toBe(0);
    expect(await tenure("job", "submit", "echo", ...viewer)).toMatchObject({ code: 77, stdout: "" });
    expect((await tenure("job", "cancel", "j1", ...viewer)).code).toBe(77);
    expect((await tenure("job", "list", "--url", viewer[1]!, "--key", "guessed")).code).toBe(77);
  });
});

it("without a leader, what a node has is shown, with a word about it; nothing is submitted", async () => {
  const id = await detached("echo");
  expect(await finished(id)).toBe("completed");
  const [left, ...others] = cluster.nodes;
  await waitFor("the node that is left to know it", async () => {
    const { body } = await left!.call<{ readonly state: string }>(`/v1/jobs/${id}`, { key: OPERATOR_KEY });
    return body.state === "completed";
  });
  for (const node of others) await cluster.kill(node.id);
  const shown = await job("show", id);
  expect(shown.code, shown.stderr).toBe(0);
  expect(shown.stderr).toMatch(/^tenure: this may be old: .*\n$/);
  expect(shown.stdout).toMatch(/^state +completed$/m);
  const listed = await job("list", "--kind", "echo", "--limit", "1");
  expect(listed.stdout).toContain(id);
  expect((await job("logs", id)).stdout).toBe("hello\nbye\n");
  expect((await job("show", "missing")).code).toBe(69);
  expect(await job("submit", "echo", "--detach")).toMatchObject({ code: 69, stdout: "" });
  for (const node of others) cluster.start(node.id);
  await cluster.steady();
}, 180_000);

describe("docs/reference/cli.md", () => {
  const [, SECTION = ""] = readFileSync("docs/reference/cli.md", "utf8").split("\n## `tenure job`\n");
  const TEXT = SECTION.split("\n## ", 1)[0]!;

  const documented = (heading: string): string[] => {
    const [, text = ""] = TEXT.split(`### \`${heading}\`\n`);
    return [...text.split("\n#", 1)[0]!.matchAll(/^\| `([^`]+)`/gm)].map(([, field = ""]) => field).toSorted();
  };

  /** What is the user's own has no fields of ours. */
  const FREE = /(^|\.)(payload|labels|result|detail)$/;
  const fieldsOf = (value: unknown, prefix = ""): string[] => {
    if (Array.isArray(value)) return [...new Set(value.flatMap((one) => fieldsOf(one, `${prefix}[]`)))].toSorted();
    if (typeof value !== "object" || value === null || FREE.test(prefix)) return [prefix];
    const inner = Object.entries(value).flatMap(([name, one]) =>
      fieldsOf(one, prefix === "" ? name : `${prefix}.${name}`),
    );
    return [...new Set(inner)].toSorted();
  };

  it("has the fields of each -o json", () => {
    const full = jobOf();
    const refusal = { code: "NOT_FOUND", message: "" } as const;
    const brief = briefObject(briefOf({ progress: full.progress }));
    const piece = pieceObject({ attempt: 1, offset: 0, nextOffset: 1, text: "a" });
    expect(fieldsOf(jobObject(full))).toEqual(documented("tenure job show ID -o json"));
    expect(fieldsOf({ jobs: [brief], has_more: false })).toEqual(documented("tenure job list -o json"));
    expect(fieldsOf({ id: "j1", pieces: [piece] })).toEqual(documented("tenure job logs ID -o json"));
    expect(fieldsOf({ jobs: [steeredObject("j1", full, refusal)] })).toEqual(
      documented("tenure job cancel ID… -o json"),
    );
    expect(fieldsOf({ jobs: [waitedObject("j1", full, refusal)] })).toEqual(documented("tenure job wait ID… -o json"));
  });

  it("has what is printed, where it is not null", async () => {
    const id = await detached("bad", "--concurrency", "k=1", "--timeout", "1m");
    expect(await finished(id)).toBe("failed");
    const { code: _code, ...shown } = await tenureJson<Job>("job", "show", id, ...access);
    const known = documented("tenure job show ID -o json");
    const nulls = ["lease", "progress", "pending_reason"];
    expect(fieldsOf(shown).filter((field) => !known.includes(field) && !nulls.includes(field))).toEqual([]);
    expect(
      known.filter((field) => !fieldsOf(shown).includes(field) && !/^(lease|progress|pending_reason)\./.test(field)),
    ).toEqual([]);
    const { code: _listed, ...list } = await tenureJson<{ jobs: Job[] }>("job", "list", "--limit", "1", ...access);
    const listed = documented("tenure job list -o json");
    expect(fieldsOf(list).filter((field) => !listed.includes(field) && field !== "jobs[].progress")).toEqual([]);
  });

  it("has the flags that the help names, and the exit codes", async () => {
    const { stdout } = await tenure("job", "--help");
    const flags = (text: string): string[] =>
      [...new Set([...text.matchAll(/^(?:\| `|  )(--?[a-z-]+)/gm)].map(([, flag = ""]) => flag))].toSorted();
    expect(flags(TEXT)).toEqual(flags(stdout));
    const [, table = ""] = TEXT.split("| Exit code |");
    const codes = [...table.split("\n\n", 1)[0]!.matchAll(/^\| (\d+)(?:, (\d+))? /gm)].flatMap(([, one, two]) => [
      one,
      two,
    ]);
    const [, named = ""] = stdout.split("exit codes:");
    expect(codes.filter((code) => code !== undefined).toSorted()).toEqual(
      [...new Set(named.match(/(?<![\w.])(?:0|1|6\d|7\d|130|143)\b/g))].toSorted(),
    );
  });
});
