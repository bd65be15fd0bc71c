// Replicated keys at nodes that do not know them yet: a node that joins and one whose disk was wiped, first in every client's
// list. A client with a valid key is not refused; one with a wrong key is. The steps build on each other.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Client, createClient, TenureError } from "../../src/entry/client.ts";
import {
  CALM_ELECTION,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { TENURE_MAIN } from "../servers/tenure-node.ts";

const LIMIT_MS = 120_000;
const SUBMITTER = "submitter-key-of-the-cluster";
const AGENT = "agent-key-of-the-cluster";

let cluster: TenureCluster;
/** Waits to be made a member, and nobody does it. */
let joining: TenureNode;
let jobId: string;

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
  const operator = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
  for (const [role, key] of [
    ["submitter", SUBMITTER],
    ["agent", AGENT],
  ] as const) {
    const leader = cluster.node(await cluster.leader());
    const sha256 = createHash("sha256").update(key).digest("hex");
    const made = await leader.call("/v1/keys", { key: OPERATOR_KEY, body: { name: role, role, sha256 } });
    expect(made.status).toBe(200);
  }
  jobId = await operator.submit({ kind: "made-before" });
  joining = await cluster.make("n4");
  // As a node has it whose operator knows that keys are made by the cluster.
  joining.configure({
    keys: joining.config.keys!.filter(({ role }) => role === "operator"),
    peers: Object.fromEntries(cluster.nodes.map(({ id, peerAddress }) => [id, peerAddress])),
  });
  joining.start();
  await waitFor("the new node to answer", () => answersAt(joining, "/livez", 200), LIMIT_MS);
}, LIMIT_MS);

afterAll(() => cluster?.end());

const members = (): TenureNode[] => cluster.nodes.filter((node) => node !== joining);

function answersAt(node: TenureNode, path: string, status: number): Promise<boolean> {
  return node.call(path, { key: SUBMITTER }).then(
    (answer) => answer.status === status,
    () => false,
  );
}

function clientOf(first: TenureNode, key = SUBMITTER): Client {
  const others = members().filter((node) => node !== first);
  return createClient({ urls: [first, ...others].map(({ url }) => url), key, timeoutMs: 60_000 });
}

/** `tenure agent start`, with the joining node first. */
function startAgent(key: string) {
  const servers = [joining, ...members()].flatMap(({ url }) => ["--server", url]);
  const child = spawn(process.execPath, ["--no-warnings", TENURE_MAIN, "agent", "start", ...servers, "--name", "a1"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"], TENURE_API_KEY: key },
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  return { child, exit, log: () => log };
}

describe("with a node first in the list that joins and does not know the key", () => {
  test("it does not refuse the key: it can't say, and lets nobody in unknown either", async () => {
    const asked = await joining.call("/v1/jobs", { key: SUBMITTER });
    expect([asked.status, asked.body["error"]]).toEqual([503, "CALLER_UNCONFIRMED"]);
    const anonymous = await joining.call("/v1/jobs", { key: null });
    expect([anonymous.status, anonymous.body["error"]]).toEqual([503, "CALLER_UNCONFIRMED"]);
    expect((await joining.call("/v1/cluster", { key: null })).body).toMatchObject({ is_ready: false });
  });

  test("job() finds the job, submit() submits, and events() goes on", async () => {
    const client = clientOf(joining);
    expect(await client.job(jobId)).toMatchObject({ id: jobId });
    const submitted = await client.submit({ kind: "made-after" });
    const { value } = await client.events({ after: 0, entityId: submitted }).next();
    expect(value).toMatchObject({ entityId: submitted });
  });

  test("tenure agent start runs", async () => {
    const agent = startAgent(AGENT);
    await registered(agent);
    agent.child.kill("SIGTERM");
    expect(await agent.exit, agent.log()).toBe(0);
  });

  test("submit() during an election waits for a leader", async () => {
    const elect = await deposeAll();
    let isSettled = false;
    const submitted = clientOf(joining)
      .submit({ kind: "made-during" })
      .finally(() => (isSettled = true));
    // What it would be refused for is said at once, by a node that is up.
    await clientOf(joining)
      .job(jobId)
      .then((job) => expect(job).toMatchObject({ id: jobId }));
    expect(isSettled).toBe(false);
    elect();
    expect(await submitted).toMatch(/./);
  });

  test("tenure agent start during an election waits for a leader", async () => {
    const elect = await deposeAll();
    const before = await leaderQuestions(joining);
    const agent = startAgent(AGENT);
    const hasAsked = async (): Promise<boolean> => (await leaderQuestions(joining)) > before;
    await waitFor("the agent to ask who leads", async () => agent.child.exitCode !== null || hasAsked(), LIMIT_MS);
    elect();
    await registered(agent);
    agent.child.kill("SIGTERM");
    expect(await agent.exit, agent.log()).toBe(0);
  });
});

async function registered(agent: ReturnType<typeof startAgent>): Promise<void> {
  const operator = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
  await waitFor(
    "the agent to be registered",
    async () => {
      if (agent.child.exitCode !== null) throw new Error(`it ended with ${agent.child.exitCode}: ${agent.log()}`);
      const agents = await operator.agents().catch(() => []);
      return agents.some(({ name, state }) => name === "a1" && state === "online");
    },
    LIMIT_MS,
  );
}

/** One member is left, and knows nobody who leads; what is returned starts the others again. */
async function deposeAll(): Promise<() => void> {
  const leader = cluster.node(await cluster.leader());
  const [first, last] = members().filter((node) => node !== leader) as [TenureNode, TenureNode];
  const elect = (): void => {
    leader.start();
    first.start();
  };
  onTestFinished(elect);
  await Promise.all([leader.kill9(), first.kill9()]);
  await waitFor("nobody to lead", () => answersAt(last, "/leader", 503), LIMIT_MS);
  return elect;
}

/** Also those that were started again just now. */
async function allReady(): Promise<void> {
  const isReady = async (node: TenureNode): Promise<boolean> => (await node.view())?.is_ready === true;
  await waitFor(
    "all members to be ready",
    async () => (await Promise.all(members().map(isReady))).every(Boolean),
    LIMIT_MS,
  );
}

/** How often a node was asked who leads. */
async function leaderQuestions(node: TenureNode): Promise<number> {
  const { body } = await node.call<{ text: string }>("/metrics", { key: OPERATOR_KEY });
  const counts = body.text.matchAll(/^tenure_http_requests_total\{route="GET \/leader",status="\d+"\} (\d+)/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

test("a wiped node that comes back under load refuses nobody, at no moment", async () => {
  await allReady();
  const leader = await cluster.leader();
  const victim = members().find(({ id }) => id !== leader)!;
  const refusals: string[] = [];
  let asked = 0;
  const load = new AbortController();
  const stream = new AbortController();
  const heard = new Set<string>();
  const following = (async () => {
    for await (const { entityId } of clientOf(victim).events({ after: 0, signal: stream.signal })) heard.add(entityId);
  })().catch((error: unknown) => {
    if (!stream.signal.aborted) refusals.push(`events() ended: ${String(error)}`);
  });
  const loading = (async () => {
    while (!load.signal.aborted) {
      // A new client each time: the victim is asked first.
      await clientOf(victim)
        .job(jobId)
        .catch((error: unknown) => {
          if (TenureError.is(error) && error.code === "UNAUTHENTICATED") refusals.push(error.message);
        });
      asked++;
    }
  })();
  const before = (await victim.view())?.incarnation;
  await victim.kill9();
  victim.wipe();
  victim.start();
  await waitFor(
    "the wiped node to be a voter again",
    async () => {
      const view = await victim.view();
      const own = view?.members.find(({ node_id }) => node_id === victim.id);
      return view?.is_ready === true && own?.kind === "voter" && view.incarnation !== before;
    },
    LIMIT_MS,
  );
  const last = await clientOf(victim).submit({ kind: "made-at-the-end" });
  await waitFor("the stream to have all events", () => heard.has(last) || refusals.length > 0, LIMIT_MS);
  load.abort();
  stream.abort();
  await Promise.all([loading, following]);
  expect(refusals).toEqual([]);
  expect(asked).toBeGreaterThan(10);
});

async function makeKey(name: string): Promise<string> {
  const leader = cluster.node(await cluster.leader());
  const key = `the key ${name}`;
  const sha256 = createHash("sha256").update(key).digest("hex");
  const made = await leader.call("/v1/keys", { key: OPERATOR_KEY, body: { name, role: "viewer", sha256 } });
  expect(made.status).toBe(200);
  return key;
}

test("a key that is made at the leader is known at every member from then on", async () => {
  await allReady();
  for (let round = 0; round < 10; round++) {
    const key = await makeKey(`round-${round}`);
    for (const node of members()) {
      // On a busy machine a node may not be able to say at once; what it says is never that it does not know the key.
      await waitFor(`${node.id} to know it`, async () => {
        const { status } = await node.call("/v1/jobs?limit=1", { key });
        expect([200, 503]).toContain(status);
        return status === 200;
      });
    }
  }
});

test("a node that lags does not refuse a key that was made meanwhile", async () => {
  await allReady();
  const leader = await cluster.leader();
  const lagging = members().find(({ id }) => id !== leader)!;
  onTestFinished(() => lagging.cont());
  for (let round = 0; round < 3; round++) {
    lagging.stop();
    const key = await makeKey(`lag-${round}`);
    // In its sockets before it goes on.
    const asked = Array.from({ length: 5 }, () => lagging.call("/v1/jobs?limit=1", { key, limitMs: LIMIT_MS }));
    await makeKey(`later-${round}`);
    lagging.cont();
    for (const { status } of await Promise.all(asked)) expect([200, 503]).toContain(status);
  }
});

describe("a key that is wrong", () => {
  test("fails every call of the SDK with UNAUTHENTICATED, though a node in the list can't say", async () => {
    const client = clientOf(joining, "wrong");
    const startedMs = performance.now();
    await expect(client.job(jobId)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    await expect(client.submit({ kind: "never" })).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    await expect(client.events().next()).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    // About the time that it takes to ask the leader, and far less than the calls' own 60 s.
    expect(performance.now() - startedMs).toBeLessThan(45_000);
  });

  test("ends tenure agent start with exit code 77", async () => {
    const agent = startAgent("wrong");
    expect(await agent.exit, agent.log()).toBe(77);
  });
});
