// Every route of the contract on three real servers: reads on each of them with their headers and linearizable where that is
// asked, mutations on the leader, their refusals elsewhere field by field, and streams that go on at another node when
// theirs is killed. What one node does in detail is tested on the API alone, next to this file.

import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import {
  CALM_ELECTION,
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureAnswer,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { TestStream } from "./test-stream.ts";

const LIMIT_MS = 60_000;
const FRESHNESS = ["node", "role", "leader-id", "leader-epoch", "applied", "staleness-ms"].map((n) => `x-tenure-${n}`);
const AGENT = { name: "a-1", session: "s-1", kinds: ["build"], platform: "linux", capacity: 4 };
const LEASING = { agent: AGENT, max: 1, ttl_ms: 30_000 };

const STREAMS: readonly RouteId[] = ["events", "watchValues"];

type Method = Route["method"];
type Sent = readonly [body?: object | undefined, params?: Readonly<Record<string, string>>, query?: string];

let cluster: TenureCluster;
let leader: TenureNode;
let standbys: TenureNode[];
let jobId: string;
/** The site's own line in its mesh, in which it is alone. */
let line: string;

beforeAll(async () => {
  cluster = await startTenureCluster({
    election: CALM_ELECTION,
    prepare: (node) => node.configure({ mesh: { mode: "distributed", controller_id: "here" } }),
  });
  await look();
  await waitFor("the site to have a line", async () => {
    const { body } = await call(leader, "meshSites");
    line = (body["own"] as { line: string } | null)?.line ?? "";
    return line !== "";
  });
  jobId = (await leader.call<{ id: string }>("/v1/jobs", { key, body: { kind: "build" } })).body.id;
  const acquire = { session: "s", identity: "me", ttl_ms: 60_000, wait_ms: 0 };
  await leader.call("/v1/scopes/payer/acquire", { key, body: acquire });
  expect((await leader.call("/v1/values/x", { method: "PUT", key, body: { value: { at: 1 } } })).status).toBe(200);
  await leader.call("/v1/admin/snapshot", { key, body: {} });
}, 2 * LIMIT_MS);

afterAll(() => cluster?.end());

async function look(): Promise<void> {
  const id = await cluster.leader();
  leader = cluster.node(id);
  standbys = cluster.nodes.filter((node) => node !== leader);
}

function call(node: TenureNode, id: RouteId, [body, params = {}, query = ""]: Sent = []): Promise<TenureAnswer> {
  const { method, path } = ROUTES[id] as { method: Method; path: string };
  const known: Record<string, string> = {
    id: jobId,
    scope: "payer",
    sequence: "0",
    queue: "slow",
    name: "x",
    ...params,
  };
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => known[name]!);
  return node.call(`${filled}${query}`, { method, key, body });
}

const routes = Object.entries(ROUTES) as [RouteId, Route][];

describe("reads", () => {
  /** Streams are below. These nodes run no transaction coordinators: test/coordinators. */
  const reads = routes.filter(
    ([id, { method, errors }]) => method === "GET" && !STREAMS.includes(id) && !errors.includes("tc_unavailable"),
  );

  it.each(reads)("%s answers on every node, says where from, and fits the contract", async (id, route) => {
    const queries: Partial<Record<RouteId, string>> = {
      eventsProof: "?sequence=1",
      meshPages: `?line=${line}&after=0`,
      meshConsistency: `?line=${line}&from=1&to=2`,
    };
    const query = queries[id] ?? "";
    for (const node of cluster.nodes) {
      if (id === "readSnapshot" && node !== leader) continue;
      const isStandby = node !== leader;
      await waitFor("the node to have it", async () => (await call(node, id, [undefined, {}, query])).status === 200);
      const { headers, body } = await call(node, id, [undefined, {}, query]);
      expect(Object.keys(headers)).toEqual(expect.arrayContaining([...FRESHNESS, "x-tenure-cluster"]));
      expect(headers).toMatchObject({
        "x-tenure-node": node.id,
        "x-tenure-role": isStandby ? "STANDBY" : "LEADER",
        "x-tenure-leader-id": leader.id,
      });
      if (route.answer !== null) expect(shape(route.answer).check(body)).toEqual({ ok: true, value: body });
    }
  });

  const consistent = reads.filter(
    ([, { query }]) => "consistency" in (query.schema as { properties: object }).properties,
  );

  it("every read but probes and what is a node's own takes consistency and max_stale_ms", () => {
    const without = reads.filter((one) => !consistent.includes(one)).map(([id]) => id);
    // What is known of other sites is as old as the links to them.
    const meshWide = reads.filter(([, { path }]) => path.startsWith("/v1/mesh/")).map(([id]) => id);
    expect(meshWide.filter((id) => !without.includes(id))).toEqual([]);
    expect(without.filter((id) => !meshWide.includes(id)).toSorted()).toEqual(
      ["audit", "diagnostics", "healthz", "livez", "metrics", "openapi", "readSnapshot", "readyz"].toSorted(),
    );
  });

  it.each(consistent.map(([id]) => id))("%s?consistency=linearizable shows what was just written", async (id) => {
    const query = `?consistency=linearizable${id === "eventsProof" ? "&sequence=1" : ""}`;
    // Also after an event that is not about a job: lists, searches and logs come from the views, which must pass it too.
    expect((await call(leader, id === "queues" ? "pauseQueue" : "resumeQueue", [{}])).status).toBe(200);
    for (const node of cluster.nodes) {
      const { status, body } = await call(node, id, [undefined, {}, query]);
      expect({ status, body }).toMatchObject({ status: 200 });
      if (id === "queues")
        expect(body["queues"]).toContainEqual(expect.objectContaining({ queue: "slow", paused: true }));
    }
  });

  it("jobs are found by state, kind, queue, agent and words, page by page, on any node", async () => {
    const kind = "searched";
    const jobs = Array.from({ length: 5 }, (_, at) => ({ kind, queue: `q-${at % 2}`, payload: { text: `word${at}` } }));
    expect((await call(leader, "submit", [{ jobs }])).status).toBe(200);
    const node = standbys[0]!;
    const found = async (query: string): Promise<{ jobs: { id: string; kind: string }[]; next: string | null }> => {
      const whole = `?consistency=linearizable&kind=${kind}&${query}`;
      return (await call(node, "jobs", [undefined, {}, whole])).body as never;
    };
    expect((await found("state=pending")).jobs).toHaveLength(5);
    expect((await found("state=completed,failed")).jobs).toHaveLength(0);
    expect((await found("queue=q-1")).jobs).toHaveLength(2);
    expect((await found("search=word3")).jobs).toHaveLength(1);
    expect((await found("agent=nobody")).jobs).toHaveLength(0);
    const ids: string[] = [];
    for (let cursor: string | null = "", pages = 0; cursor !== null && pages < 10; pages++) {
      const page = await found(`limit=2${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
      ids.push(...page.jobs.map(({ id }) => id));
      cursor = page.next;
    }
    expect([ids.length, new Set(ids).size]).toEqual([5, 5]);
  });
});

describe("mutations", () => {
  const fenced = routes.filter(([, { isFenced }]) => isFenced === true);

  it.each(fenced)(
    "%s on a standby is 409 NOT_LEADER with exactly the specified fields, whatever is sent",
    async (id, route) => {
      const before = (await call(leader, "stats", [undefined, {}, "?consistency=linearizable"])).body["last_sequence"];
      for (const node of standbys) {
        const answer = await call(node, id, [route.method === "DELETE" ? undefined : {}]);
        expect(answer.status).toBe(409);
        const { message, ...specified } = answer.body;
        expect(message).toEqual(expect.stringContaining(leader.id));
        expect(specified).toEqual({
          error: "NOT_LEADER",
          leader_id: leader.id,
          leader_url: leader.url,
          leader_epoch: expect.any(Number),
          node_id: node.id,
          role: "STANDBY",
        });
      }
      expect((await call(leader, "stats", [undefined, {}, "?consistency=linearizable"])).body["last_sequence"]).toBe(
        before,
      );
    },
  );

  it("each is done on the leader, and none of another epoch", async () => {
    const epoch = (await call(leader, "role")).body["leader_epoch"] as number;
    const done = async (id: RouteId, sent: Sent = [{}]): Promise<Readonly<Record<string, unknown>>> => {
      const stale: Sent =
        ROUTES[id].method === "DELETE"
          ? [undefined, sent[1] ?? {}, `?leader_epoch=${epoch - 1}`]
          : [{ ...sent[0], leader_epoch: epoch - 1 }, sent[1] ?? {}];
      const refused = await call(leader, id, stale);
      expect({ id, status: refused.status, body: refused.body }).toEqual({
        id,
        status: 409,
        body: { error: "STALE_EPOCH", message: expect.any(String), leader_epoch: epoch },
      });
      const { status, body } = await call(leader, id, sent);
      expect({ id, status, body }).toMatchObject({ status: 200 });
      return body;
    };
    const { id } = await done("submit", [{ kind: "mutated" }]);
    const one = { id: id as string };
    await done("cancelJob", [{}, one]);
    await done("retryJob", [{}, one]);
    const { leases } = (await done("lease", [{ ...LEASING, agent: { ...AGENT, kinds: ["mutated"] } }])) as {
      leases: Record<string, unknown>[];
    };
    const { job_id, job_epoch, lease_id, leader_epoch } = leases[0]!;
    expect({ job_id, leader_epoch }).toEqual({ job_id: id, leader_epoch: epoch });
    const result = { session: "s-1", job_id, job_epoch, lease_id, leader_epoch, outcome: "completed", result: 1 };
    expect(await done("results", [result])).toMatchObject({ ok: true, state: "completed" });
    expect(await call(leader, "results", [{ ...result, job_epoch: (job_epoch as number) + 1 }])).toMatchObject({
      status: 409,
      body: { error: "STALE_EPOCH", leader_epoch: epoch },
    });
    await done("putSchedule", [{ cron: "0 0 1 1 *", spec: { kind: "mutated" } }]);
    await done("deleteSchedule", [undefined]);
    await done("pauseQueue");
    await done("resumeQueue");
    await done("removeAgent", [undefined, { name: AGENT.name }]);
    const sha256 = createHash("sha256").update("a key").digest("hex");
    await done("createKey", [{ name: "x", role: "viewer", sha256 }]);
    await done("revokeKey", [undefined]);
    await done("drain", [{ drain: false }]);
  });

  it("D17: a quiet leader says DRAINING, takes jobs and results, and gives no leases until it is told to", async () => {
    await call(leader, "submit", [{ kind: "quiet" }]);
    const leasing = { ...LEASING, agent: { ...AGENT, name: "a-2", session: "s-2", kinds: ["quiet"] } };
    const held = await call(leader, "lease", [leasing]);
    const [lease] = held.body["leases"] as Record<string, unknown>[];
    await call(leader, "submit", [{ kind: "quiet" }]);
    expect((await call(leader, "drain")).body).toMatchObject({ is_draining: true });
    const role = await call(leader, "role");
    expect(role.body).toMatchObject({ role: "DRAINING", node_id: leader.id, leader_id: leader.id });
    expect((await call(leader, "lease", [leasing])).body).toMatchObject({ leases: [], is_draining: true });
    const { job_id, job_epoch, lease_id, leader_epoch } = lease!;
    const result = { session: "s-2", job_id, job_epoch, lease_id, leader_epoch, outcome: "completed" };
    expect((await call(leader, "results", [result])).body).toMatchObject({ ok: true });
    expect((await call(standbys[0]!, "submit", [{}])).body).toMatchObject({ role: "STANDBY", leader_id: leader.id });
    await call(leader, "drain", [{ drain: false }]);
    expect((await call(leader, "role")).body).toMatchObject({ role: "LEADER" });
    expect((await call(leader, "lease", [leasing])).body).toMatchObject({ leases: [{ attempt: 1 }] });
  });
});

describe("metrics", () => {
  it("count each job once over all nodes, and show the same state on each", async () => {
    const numbers = async (node: TenureNode): Promise<Map<string, number>> => {
      const text = await (await fetch(`${node.url}/metrics`, { headers: { "x-api-key": key } })).text();
      return new Map(
        text
          .split("\n")
          .filter((line) => line.startsWith("tenure_"))
          .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
      );
    };
    const stats = (await call(leader, "stats", [undefined, {}, "?consistency=linearizable"])).body;
    const [mine, ...others] = await Promise.all([leader, ...standbys].map(numbers));
    expect(mine?.get("tenure_jobs_submitted_total")).toBe(stats["submitted"]);
    expect(mine?.get("tenure_job_commit_ms_count")).toBe(stats["submitted"]);
    expect(mine?.get('tenure_jobs_finished_total{state="completed"}')).toBeGreaterThan(0);
    expect(mine?.get('tenure_jobs_finished_total{state="cancelled"}')).toBeGreaterThan(0);
    expect(mine?.get('tenure_jobs_retried_total{cause="asked"}')).toBeGreaterThan(0);
    expect(mine?.get("tenure_results_stale_total")).toBe(stats["stale_rejected"]);
    expect(mine?.get("tenure_job_assigned_ms_count")).toBeGreaterThan(0);
    for (const other of others) {
      expect(other.get("tenure_jobs_submitted_total"), "what others committed is theirs to count").toBe(0);
      expect(other.get("tenure_results_stale_total")).toBe(0);
    }
    await waitFor("the same state on each", async () => {
      const all = await Promise.all(cluster.nodes.map(numbers));
      const shown = all.map((one) => [
        one.get("tenure_events_last_sequence"),
        one.get('tenure_jobs{state="pending"}'),
        one.get("tenure_agents_online"),
        one.get("tenure_views_lag_events"),
        one.get("tenure_archive_segments_missing"),
      ]);
      return shown.every((one) => one.join() === shown[0]?.join() && one[3] === 0 && one[4] === 0);
    });
  });
});

describe("streams", () => {
  const open = (node: TenureNode, path: string, headers: Record<string, string> = {}): Promise<TestStream> =>
    new TestStream().open({ port: Number(new URL(node.url).port) }, path, { "x-api-key": key, ...headers });

  it("trap 67: events and a log go on at another node when theirs is killed, each once and in order", async () => {
    const kind = "streamed";
    const { id } = (await call(leader, "submit", [{ kind }])).body as { id: string };
    const agent = { ...AGENT, name: "a-3", session: "s-3", kinds: [kind] };
    const { leases } = (await call(leader, "lease", [{ ...LEASING, agent }])).body as {
      leases: Record<string, unknown>[];
    };
    const { job_id, job_epoch, lease_id } = leases[0]!;
    let offset = 0;
    const print = async (text: string): Promise<void> => {
      const logs = [{ job_id, job_epoch, lease_id, offset, text }];
      const { status } = await call(leader, "lease", [{ agent, max: 0, ttl_ms: 30_000, logs }]);
      expect(status).toBe(200);
      offset += text.length;
    };
    const [victim, other] = standbys as [TenureNode, TenureNode];
    const eventsPath = `/v1/events?since=0&type=build:*&entity=${id}`;
    const logPath = `/v1/jobs/${id}/logs?follow=true`;
    await waitFor(
      "the node to have the job",
      async () => (await call(victim, "job", [undefined, { id }])).status === 200,
    );
    using events = await open(victim, eventsPath);
    using log = await open(victim, logPath);
    expect(events.headers).toMatchObject({ "x-tenure-node": victim.id, "x-tenure-role": "STANDBY" });
    await print("one\n");
    await waitFor("what was printed, on both", () => textOf(log) === "one\n" && typesOf(events).includes("build:log"));
    await cluster.kill(victim.id);
    await waitFor("both to be cut", () => events.ended !== null && log.ended !== null);
    await print("two\n");
    using moreEvents = await open(other, eventsPath, { "last-event-id": events.lastId! });
    using moreLog = await open(other, logPath, { "last-event-id": log.lastId! });
    await print("three\n");
    await waitFor("the rest of the log", () => textOf(moreLog) === "two\nthree\n");
    await waitFor(
      "the rest of the events",
      () => typesOf(moreEvents).filter((type) => type === "build:log").length === 2,
    );
    const ids = [...events.ids, ...moreEvents.ids];
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect([...typesOf(events), ...typesOf(moreEvents)]).toEqual([
      "build:submitted",
      "build:assigned",
      "build:log",
      "build:log",
      "build:log",
    ]);
    cluster.start(victim.id);
    await cluster.steady();
  });
});

describe("handing over", () => {
  it("D17: a leader that stops and finds nobody to lead refuses every mutation as DRAINING, with nulls and Retry-After", async () => {
    await look();
    for (const standby of standbys) cluster.freeze(standby.id);
    leader.signal("SIGTERM");
    let role = "";
    await waitFor("it to hand over", async () => {
      role = String((await call(leader, "role")).body["role"]);
      return role === "DRAINING";
    });
    const answers = await Promise.all([
      call(leader, "submit", [{ kind: "build" }]),
      call(leader, "results", [{}]),
      call(leader, "lease", [LEASING]),
    ]);
    for (const { status, body, headers } of answers) {
      const { message, ...specified } = body;
      expect(message).toEqual(expect.stringContaining("handing its leadership over"));
      expect({ status, specified }).toEqual({
        status: 409,
        specified: {
          error: "NOT_LEADER",
          leader_id: null,
          leader_url: null,
          leader_epoch: null,
          node_id: leader.id,
          role: "DRAINING",
        },
      });
      expect(headers["retry-after"]).toBe("1");
    }
    // Reads go on.
    expect((await call(leader, "jobs")).status).toBe(200);
    for (const standby of standbys) cluster.thaw(standby.id);
    await cluster.waitForLeader(leader.id);
  });
});

function typesOf(stream: TestStream): (string | undefined)[] {
  return stream.shown.map(({ event }) => event);
}

function textOf(stream: TestStream): string {
  return stream.shown.map(({ data }) => (JSON.parse(data ?? "{}") as { text?: string }).text ?? "").join("");
}
