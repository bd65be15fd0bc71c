// Commands as jobs, on a real server and a real agent: what they get, what is said of their ends, and how they are ended.

import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, createClient, type JobRequest } from "../../src/entry/client.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { isAlive } from "../processes/living.ts";
import { logOf, Pids, TestAgent, TREE, TREE_SIZE } from "./test-agent.ts";

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  client = createClient({ urls: cluster.urls, key, timeoutMs: 30_000 });
});

afterAll(() => cluster?.end());

async function ended(request: JobRequest) {
  const id = await client.submit(request);
  return await client.wait(id, { signal: AbortSignal.timeout(100_000) });
}

test("a command runs with its arguments, environment and directory, and its output is the log", async () => {
  const agent = await TestAgent.start("good", cluster.urls);
  const script =
    'echo "$1 $A $PWD"; echo "$TENURE_JOB_KIND $TENURE_JOB_ATTEMPT $TENURE_JOB_ID" >&2; env | grep -c API_KEY';
  const payload = { command: ["sh", "-c", script, "sh", "an argument"], env: { A: "ä€😀" }, cwd: "/" };
  const job = await ended({ ...agent.request([]), payload });
  expect(job).toMatchObject({ state: "failed", error: { detail: { exit_code: 1, signal: null } } });
  expect((await logOf(client, job.id)).split("\n").toSorted()).toEqual(
    ["", "0", "an argument ä€😀 /", `exec 1 ${job.id}`].toSorted(),
  );
  expect(await ended(agent.sh("exit 0"))).toMatchObject({ state: "completed", result: { exit_code: 0 } });
  expect(agent.lines("job_ended")).toMatchObject([{ job: job.id, attempt: 1, exit_code: 1 }, { exit_code: 0 }]);
});

test("a failure says the code or the signal, and the last line of what it complained", async () => {
  const agent = await TestAgent.start("bad", cluster.urls, ["--capacity", "8"]);
  const message = async (request: JobRequest) => (await ended(request)).error?.message;
  const command = (...words: string[]) => agent.request(words);
  expect(await message(agent.sh("echo first >&2; echo 'no such thing' >&2; echo; exit 7"))).toBe(
    "The command ended with exit code 7: no such thing",
  );
  expect(await message(agent.sh("kill -9 $$"))).toBe("The command was ended by SIGKILL.");
  expect(await message(command("tenure-no-such-command"))).toBe(
    "The command was not started: there is no command tenure-no-such-command on this machine.",
  );
  expect(await message(command("/etc/passwd"))).toMatch(/not started: \/etc\/passwd may not be executed/);
  expect(await message({ ...command("x"), payload: { command: ["true"], cwd: "/no/such" } })).toMatch(
    /its working directory \/no\/such does not exist/,
  );
  expect(await message({ ...command("x"), payload: { command: ["true"], cwd: "/etc/passwd" } })).toMatch(
    /\/etc\/passwd is no directory/,
  );
  const wrong = await ended({ ...command("x"), payload: { comand: "x" }, attemptsMax: 5 });
  expect(wrong.error?.message).toMatch(/command must be a list .*there is no "comand"/);
  expect(wrong.attempts, "no retry").toHaveLength(1);
  expect((await ended(agent.sh("exit 3", { attemptsMax: 2, backoff: { baseMs: 1, maxMs: 1 } }))).attempts).toHaveLength(
    2,
  );
});

test("much output arrives whole and in order, also with characters cut in the middle, and what is printed last", async () => {
  const agent = await TestAgent.start("loud", cluster.urls);
  // 6 MB, of which a megabyte would fit; lines of many bytes a character.
  const script = `i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo "$i ${"€😀".repeat(13)}"; done; printf 'the end'`;
  const job = await ended(agent.sh(script));
  expect(job.state).toBe("completed");
  const text = await logOf(client, job.id);
  const expected = `${Array.from({ length: 60_000 }, (_, at) => `${at + 1} ${"€😀".repeat(13)}\n`).join("")}the end`;
  expect(text.length).toBe(expected.length);
  const hash = (one: string): string => createHash("sha256").update(one).digest("hex");
  expect(hash(text)).toBe(hash(expected));
});

test("what a command leaves in the background is gone when its job is done, and its exit code counts", async () => {
  const agent = await TestAgent.start("daemons", cluster.urls);
  const pids = new Pids();
  const script = `setsid sh -c 'sh -c "$STAY" & wait' & sh -c "$STAY" & while [ $(ls $PIDS | wc -l) -lt 2 ]; do sleep 0.1; done; echo done; exit 0`;
  const job = await ended(agent.request(["sh", "-c", script], pids.env));
  expect(job).toMatchObject({ state: "completed", result: { exit_code: 0 } });
  expect(pids.all()).toHaveLength(2);
  expect(pids.living()).toEqual([]);
  expect(await logOf(client, job.id)).toBe("done\n");
});

test("a job that takes too long is asked to end, then killed, and fails as timed out", async () => {
  const agent = await TestAgent.start("slow", cluster.urls, ["--grace", "500ms"]);
  const pids = new Pids();
  const job = await ended(agent.request(["sh", "-c", TREE], pids.env, { timeoutMs: 3_000 }));
  expect(job).toMatchObject({
    state: "failed",
    error: { message: expect.stringMatching(/took longer than .* 3000 ms/) as string },
  });
  // Its time is over at the server too, which may be the first to say so.
  await agent.said("job_aborted");
  expect(pids.all()).toHaveLength(TREE_SIZE);
  expect(pids.living()).toEqual([]);
});

test("a cancelled job is asked to end and may say a last word; who ignores it is killed with all that it started", async () => {
  const agent = await TestAgent.start("asked", cluster.urls, ["--capacity", "3", "--grace", "1s"]);
  const polite = await client.submit(agent.sh("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.1; done"));
  const pids = new Pids();
  const stubborn = await client.submit(agent.request(["sh", "-c", TREE], pids.env));
  await pids.ready(TREE_SIZE);
  await waitFor("its first word", async () => (await logOf(client, polite)).includes("ready"));
  await Promise.all([client.cancel(polite), client.cancel(stubborn)]);
  for (const id of [polite, stubborn]) expect((await client.wait(id)).state).toBe("cancelled");
  expect(await logOf(client, polite)).toMatch(/^ready\n(Terminated\n)?bye\n$/);
  expect(pids.living()).toEqual([]);
  expect(agent.lines("job_aborted").map(({ reason }) => reason)).toEqual(["cancelled", "cancelled"]);
});

test("a job whose lease can't be renewed is killed at once, before the lease is over; the agent goes on", async () => {
  const agent = await TestAgent.start("cut", cluster.urls, ["--lease", "2s"]);
  const pids = new Pids();
  const id = await client.submit(agent.request(["sh", "-c", TREE], pids.env));
  await pids.ready(TREE_SIZE);
  const node = cluster.node("n1");
  await node.kill9();
  await agent.said("job_aborted");
  expect(agent.lines("job_aborted")).toMatchObject([{ job: id, reason: "lease-lost" }]);
  expect(pids.living()).toEqual([]);
  node.start();
  await pids.ready(TREE_SIZE);
  await client.cancel(id);
  expect((await client.wait(id)).state).toBe("cancelled");
  await waitFor("the second attempt to be gone", () => pids.living().length === 0);
  expect(isAlive(agent.child.pid!)).toBe(true);
});
