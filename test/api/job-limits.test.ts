// Trap 63 for jobs: every bound, at it and one past it; deep, large and poisonous JSON.

import { describe, expect, it } from "vitest";
import {
  AGENT_CAPACITY_MAX,
  AGENT_KINDS_MAX,
  API_KEY_NAME_BYTES_MAX,
  ENTRY_BYTES_MAX,
  INTEGER_MAX,
  JOB_BACKOFF_MS_MAX,
  JOB_BUDGET_MAX,
  JOB_CONCURRENCY_MAX,
  JOB_ERROR_BYTES_MAX,
  JOB_ID_BYTES_MAX,
  JOB_LABELS_BYTES_MAX,
  JOB_LABELS_MAX,
  JOB_NAME_BYTES_MAX,
  JOB_PAYLOAD_BYTES_MAX,
  JOB_PRIORITY_MAX,
  JOB_PROGRESS_BYTES_MAX,
  JOB_RETENTION_MS_MAX,
  JOB_TIMEOUT_MS_MAX,
  JOBS_PER_REQUEST_MAX,
  JSON_DEPTH_MAX,
  LEASE_TTL_MS_MAX,
  LEASE_TTL_MS_MIN,
  LEASE_WAIT_MS_MAX,
  LOG_CHUNK_BYTES_MAX,
  LOG_CHUNKS_PER_CALL_MAX,
  RESULTS_PER_CALL_MAX,
  SESSION_BYTES_MAX,
  WALL_MS_MAX,
} from "../../src/core/kit/limits.ts";
import { startApi, type TestApi } from "./test-api.ts";

type Case = readonly [field: string, at: object, past: object];

const long = (length: number): string => "x".repeat(length);
const many = <T>(count: number, one: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => one(at));
/** `levels` lists inside one another, counted from the payload's own. */
const deep = (levels: number): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
};
const labels = (bytes: number) => ({ k: long(bytes - '{"k":""}'.length) });
const entries = (count: number) => Object.fromEntries(many(count, (at) => [`k${at}`, "v"]));

async function bounded(t: TestApi, call: (change: object) => ReturnType<TestApi["call"]>, [field, at, past]: Case) {
  const taken = await call(at);
  expect([field, taken.status, taken.json?.["message"]]).toEqual([field, 200, undefined]);
  const before = t.fingerprint();
  const { status, json } = await call(past);
  expect([status, json?.["error"], json?.["field"]]).toEqual([400, "BAD_REQUEST", field]);
  expect(json?.["message"]).toContain(field);
  expect(t.fingerprint()).toBe(before);
}

describe("a job", () => {
  const cases: Case[] = [
    ["kind", { kind: long(JOB_NAME_BYTES_MAX) }, { kind: long(JOB_NAME_BYTES_MAX + 1) }],
    ["kind", { kind: "a" }, { kind: "" }],
    ["kind", { kind: "a.b_c:d-e" }, { kind: "a b" }],
    ["queue", { queue: long(JOB_NAME_BYTES_MAX) }, { queue: long(JOB_NAME_BYTES_MAX + 1) }],
    ["platform", { platform: null }, { platform: long(JOB_NAME_BYTES_MAX + 1) }],
    ["payload", { payload: long(JOB_PAYLOAD_BYTES_MAX - 2) }, { payload: long(JOB_PAYLOAD_BYTES_MAX - 1) }],
    [
      "payload",
      { payload: "é".repeat(JOB_PAYLOAD_BYTES_MAX / 2 - 1) },
      { payload: "é".repeat(JOB_PAYLOAD_BYTES_MAX / 2) },
    ],
    ["payload", { payload: deep(JSON_DEPTH_MAX) }, { payload: deep(JSON_DEPTH_MAX + 1) }],
    ["payload", { payload: { a: "\u0000" } }, { payload: { a: "\ud800" } }],
    ["payload", { payload: "\ud83d\ude00" }, { payload: { "\udc00": 1 } }],
    ["payload", { payload: 2 ** 53 - 1 }, { payload: [2 ** 53] }],
    ["payload", { payload: -(2 ** 53 - 1) }, { payload: { a: -(2 ** 53) } }],
    ["labels", { labels: labels(JOB_LABELS_BYTES_MAX) }, { labels: labels(JOB_LABELS_BYTES_MAX + 1) }],
    ["labels", { labels: entries(JOB_LABELS_MAX) }, { labels: entries(JOB_LABELS_MAX + 1) }],
    ["priority", { priority: JOB_PRIORITY_MAX }, { priority: JOB_PRIORITY_MAX + 1 }],
    ["priority", { priority: -JOB_PRIORITY_MAX }, { priority: -JOB_PRIORITY_MAX - 1 }],
    ["not_before_ms", { not_before_ms: WALL_MS_MAX }, { not_before_ms: WALL_MS_MAX + 1 }],
    ["not_before_ms", { not_before_ms: 0 }, { not_before_ms: -1 }],
    ["attempts_max", { attempts_max: JOB_BUDGET_MAX }, { attempts_max: JOB_BUDGET_MAX + 1 }],
    ["attempts_max", { attempts_max: 1 }, { attempts_max: 0 }],
    ["losses_max", { losses_max: JOB_BUDGET_MAX }, { losses_max: JOB_BUDGET_MAX + 1 }],
    [
      "backoff.max_ms",
      { backoff: { base_ms: 0, max_ms: JOB_BACKOFF_MS_MAX } },
      { backoff: { base_ms: 0, max_ms: JOB_BACKOFF_MS_MAX + 1 } },
    ],
    ["backoff", { backoff: { base_ms: 5, max_ms: 5 } }, { backoff: { base_ms: 5, max_ms: 4 } }],
    ["timeout_ms", { timeout_ms: JOB_TIMEOUT_MS_MAX }, { timeout_ms: JOB_TIMEOUT_MS_MAX + 1 }],
    ["timeout_ms", { timeout_ms: 1 }, { timeout_ms: 0 }],
    ["retention_ms", { retention_ms: JOB_RETENTION_MS_MAX }, { retention_ms: JOB_RETENTION_MS_MAX + 1 }],
    [
      "concurrency.limit",
      { concurrency: { key: "k", limit: JOB_CONCURRENCY_MAX } },
      { concurrency: { key: "k", limit: JOB_CONCURRENCY_MAX + 1 } },
    ],
    [
      "concurrency.key",
      { concurrency: { key: long(JOB_NAME_BYTES_MAX), limit: 1 } },
      { concurrency: { key: long(JOB_NAME_BYTES_MAX + 1), limit: 1 } },
    ],
    ["leader_epoch", { leader_epoch: 7 }, { leader_epoch: 0 }],
  ];
  it.each(cases)("%s is taken at its bound and refused one past it, by name: %#", async (...one) => {
    await using t = await startApi();
    await bounded(t, (change) => t.call("POST", "/v1/jobs", { kind: "build", ...change }, "submitter-key"), one);
  });

  it(`${JOBS_PER_REQUEST_MAX} come in one request, one more and none do not`, async () => {
    await using t = await startApi();
    const jobs = many(JOBS_PER_REQUEST_MAX, () => ({ kind: "build" }));
    const call = (change: object) => t.call("POST", "/v1/jobs", change, "submitter-key");
    await bounded(t, call, ["jobs", { jobs }, { jobs: [...jobs, { kind: "build" }] }]);
    expect((await t.call("GET", "/v1/stats")).json?.["submitted"]).toBe(JOBS_PER_REQUEST_MAX);
    expect((await call({ jobs: [] })).json?.["field"]).toBe("jobs");
  });

  it("a body as large as an entry of the log is taken, one byte more is 413; other routes stay at theirs", async () => {
    await using t = await startApi();
    const sized = (bytes: number) => `{"kind":"build"${" ".repeat(bytes - 16)}}`;
    expect((await t.call("POST", "/v1/jobs", sized(ENTRY_BYTES_MAX), "submitter-key")).status).toBe(200);
    const past = await t.call("POST", "/v1/jobs", sized(ENTRY_BYTES_MAX + 1), "submitter-key");
    expect([past.status, past.json?.["error"]]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
    const small = (bytes: number) => `{${" ".repeat(bytes - 2)}}`;
    expect((await t.call("POST", "/v1/queues/q/pause", small(64 * 1024))).status).toBe(200);
    expect((await t.call("POST", "/v1/queues/q/pause", small(64 * 1024 + 1))).status).toBe(413);
  });

  it.each([
    ['{"kind":"build","payload":{"__proto__":{"role":"operator"}}}', "body"],
    ['{"kind":"build","payload":[{"constructor":{"prototype":{"x":1}}}]}', "body"],
    ['{"kind":"build","labels":{"__proto__":"x"}}', "body"],
    ['{"kind":"build","payload":1e400}', "body"],
    ['{"kind":"build","payload":9007199254740993}', "body"],
    ['{"kind":"build","payload":9007199254740992}', "payload"],
    [`{"kind":"build","payload":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "payload"],
    [`{"kind":"build", "payload":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "body"],
    [`{"kind":"build", "payload":${"[".repeat(33)}${"]".repeat(33)}}`, "payload"],
    [`{"jobs":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "jobs[0]"],
    ['{"kind":"build","toString":1}', "toString"],
    ["[]", "body"],
    ["null", "body"],
  ])("what would poison is refused, and nothing is polluted: %#", async (body, field) => {
    await using t = await startApi();
    const before = t.fingerprint();
    const { status, json } = await t.call("POST", "/v1/jobs", body, "submitter-key");
    expect([status, json?.["field"]]).toEqual([400, field]);
    expect(t.fingerprint()).toBe(before);
    expect(({} as Record<string, unknown>)["role"]).toBeUndefined();
  });

  it("names of Object's own are names like others", async () => {
    await using t = await startApi();
    const payload = { toString: 1, hasOwnProperty: { valueOf: null }, constructor: "x" };
    const { json } = await t.call("POST", "/v1/jobs", { kind: "constructor", queue: "toString", payload });
    const job = await t.call("GET", `/v1/jobs/${String(json?.["id"])}`);
    expect(job.json?.["spec"]).toMatchObject({ kind: "constructor", queue: "toString", payload });
    expect((await t.call("GET", "/v1/jobs/constructor")).status).toBe(404);
    expect((await t.call("GET", "/v1/jobs/__proto__")).status).toBe(404);
  });
});

describe("an agent's call", () => {
  const agent = { name: "a", session: "s", kinds: ["build"], platform: "linux", capacity: 1 };
  const good = { agent, max: 0, ttl_ms: 5_000 };
  const ref = { job_id: "j", job_epoch: 1, lease_id: "l" };
  const withAgent = (change: object) => ({ agent: { ...agent, ...change } });
  const cases: Case[] = [
    ["agent.name", withAgent({ name: long(JOB_NAME_BYTES_MAX) }), withAgent({ name: long(JOB_NAME_BYTES_MAX + 1) })],
    [
      "agent.session",
      withAgent({ session: long(SESSION_BYTES_MAX) }),
      withAgent({ session: long(SESSION_BYTES_MAX + 1) }),
    ],
    [
      "agent.kinds",
      withAgent({ kinds: many(AGENT_KINDS_MAX, (at) => `k${at}`) }),
      withAgent({ kinds: many(AGENT_KINDS_MAX + 1, (at) => `k${at}`) }),
    ],
    ["agent.kinds", withAgent({ kinds: ["a"] }), withAgent({ kinds: [] })],
    [
      "agent.labels",
      withAgent({ labels: entries(JOB_LABELS_MAX) }),
      withAgent({ labels: entries(JOB_LABELS_MAX + 1) }),
    ],
    ["agent.capacity", withAgent({ capacity: AGENT_CAPACITY_MAX }), withAgent({ capacity: AGENT_CAPACITY_MAX + 1 })],
    ["max", { max: AGENT_CAPACITY_MAX }, { max: AGENT_CAPACITY_MAX + 1 }],
    ["ttl_ms", { ttl_ms: LEASE_TTL_MS_MIN }, { ttl_ms: LEASE_TTL_MS_MIN - 1 }],
    ["ttl_ms", { ttl_ms: LEASE_TTL_MS_MAX }, { ttl_ms: LEASE_TTL_MS_MAX + 1 }],
    ["wait_ms", { wait_ms: LEASE_WAIT_MS_MAX }, { wait_ms: LEASE_WAIT_MS_MAX + 1 }],
    ["poll", { poll: 1 }, { poll: 0 }],
    ["poll", { poll: INTEGER_MAX }, { poll: INTEGER_MAX + 1 }],
    ["answered", { poll: 1, answered: 0 }, { poll: 1, answered: -1 }],
    ["answered", { poll: 8, answered: 7 }, { poll: 8, answered: 8 }],
    ["answered", { poll: 8 }, { answered: 7 }],
    ["renew", { renew: many(AGENT_CAPACITY_MAX, () => ref) }, { renew: many(AGENT_CAPACITY_MAX + 1, () => ref) }],
    ["progress[0].share", { progress: [{ ...ref, share: 1 }] }, { progress: [{ ...ref, share: 1.01 }] }],
    [
      "progress[0].message",
      { progress: [{ ...ref, message: long(JOB_PROGRESS_BYTES_MAX) }] },
      { progress: [{ ...ref, message: long(JOB_PROGRESS_BYTES_MAX + 1) }] },
    ],
    [
      "logs[0].text",
      { logs: [{ ...ref, offset: 0, text: long(LOG_CHUNK_BYTES_MAX) }] },
      { logs: [{ ...ref, offset: 0, text: long(LOG_CHUNK_BYTES_MAX + 1) }] },
    ],
    [
      "logs[0].text",
      { logs: [{ ...ref, offset: 0, text: "\0\u001b[31m" }] },
      { logs: [{ ...ref, offset: 0, text: "\ud800" }] },
    ],
    [
      "logs",
      { logs: many(LOG_CHUNKS_PER_CALL_MAX, (offset) => ({ ...ref, offset, text: "x" })) },
      { logs: many(LOG_CHUNKS_PER_CALL_MAX + 1, (offset) => ({ ...ref, offset, text: "x" })) },
    ],
  ];
  it.each(cases)("%s is taken at its bound and refused one past it, by name: %#", async (...one) => {
    await using t = await startApi();
    await bounded(t, (change) => t.call("POST", "/v1/leases", { ...good, ...change }, "agent-key"), one);
  });

  const result = { ...ref, leader_epoch: 7, outcome: "failed", error: { message: "m" } };
  const results: Case[] = [
    [
      "results",
      { results: many(RESULTS_PER_CALL_MAX, () => result) },
      { results: many(RESULTS_PER_CALL_MAX + 1, () => result) },
    ],
    [
      "results[0].error.message",
      { results: [{ ...result, error: { message: long(JOB_ERROR_BYTES_MAX) } }] },
      { results: [{ ...result, error: { message: long(JOB_ERROR_BYTES_MAX + 1) } }] },
    ],
    [
      "results[0].result",
      { results: [{ ...ref, leader_epoch: 7, outcome: "completed", result: long(JOB_PAYLOAD_BYTES_MAX - 2) }] },
      { results: [{ ...ref, leader_epoch: 7, outcome: "completed", result: long(JOB_PAYLOAD_BYTES_MAX - 1) }] },
    ],
    [
      "results[0].error.detail",
      { results: [{ ...result, error: { message: "m", detail: deep(JSON_DEPTH_MAX) } }] },
      { results: [{ ...result, error: { message: "m", detail: deep(JSON_DEPTH_MAX + 1) } }] },
    ],
    [
      "results[0].job_id",
      { results: [{ ...result, job_id: long(JOB_ID_BYTES_MAX) }] },
      { results: [{ ...result, job_id: long(JOB_ID_BYTES_MAX + 1) }] },
    ],
    [
      "results[0].lease_id",
      { results: [{ ...result, lease_id: long(JOB_ID_BYTES_MAX) }] },
      { results: [{ ...result, lease_id: "" }] },
    ],
    ["session", { session: long(SESSION_BYTES_MAX), results: [result] }, { session: "", results: [result] }],
  ];
  it.each(results)("%s of a result: %#", async (...one) => {
    await using t = await startApi();
    await bounded(t, (change) => t.call("POST", "/v1/results", { session: "s", ...change }, "agent-key"), one);
  });
});

describe("names in paths, and what a DELETE takes", () => {
  it("are bounded and have an alphabet", async () => {
    await using t = await startApi();
    const pause = async (queue: string) =>
      (await t.call("POST", `/v1/queues/${encodeURIComponent(queue)}/pause`)).json?.["field"];
    expect(await pause(long(JOB_NAME_BYTES_MAX))).toBeUndefined();
    for (const queue of [long(JOB_NAME_BYTES_MAX + 1), "a/b", "-", "é", "a b", "a\nb"])
      expect(await pause(queue)).toBe("queue");
    const key = { role: "viewer", sha256: "b".repeat(64) };
    const create = (change: object) => t.call("POST", "/v1/keys", { name: "k", ...key, ...change });
    await bounded(t, create, [
      "name",
      { name: long(API_KEY_NAME_BYTES_MAX) },
      { name: long(API_KEY_NAME_BYTES_MAX + 1) },
    ]);
    await t.call("DELETE", `/v1/keys/${long(API_KEY_NAME_BYTES_MAX)}`);
    await bounded(t, create, ["sha256", {}, { sha256: "B".repeat(64) }]);
    await bounded(t, create, ["role", {}, { role: "root" }]);
  });

  it("no body, and no query but leader_epoch", async () => {
    await using t = await startApi();
    const body = await t.call("DELETE", "/v1/agents/a", { force: true });
    expect([body.status, body.json?.["field"]]).toEqual([400, "body"]);
    const query = await t.call("DELETE", "/v1/agents/a?force=true");
    expect([query.status, query.json?.["field"]]).toEqual([400, "force"]);
  });
});
