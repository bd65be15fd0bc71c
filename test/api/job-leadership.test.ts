// Nobody but the leader of the epoch that a request names changes anything, and nothing is done twice under one key.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../src/core/kit/errors.ts";
import { JOB_ROUTES, type Route } from "../../src/contract/index.ts";
import { startApi, type TestApi } from "./test-api.ts";
import { fits, lease, leasing, refOf, submit } from "./test-job-calls.ts";

/** Every mutation of jobs, with a body that the leader takes. */
const MUTATIONS: readonly (readonly [method: string, path: string, body: Record<string, unknown> | undefined])[] = [
  ["POST", "/v1/jobs", { kind: "build" }],
  ["POST", "/v1/jobs/job-1/cancel", {}],
  ["POST", "/v1/jobs/job-1/retry", {}],
  ["POST", "/v1/leases", leasing],
  [
    "POST",
    "/v1/results",
    { session: "s-1", job_id: "job-1", job_epoch: 1, lease_id: "l-job-1-1", leader_epoch: 7, outcome: "completed" },
  ],
  ["PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", spec: { kind: "build" } }],
  ["DELETE", "/v1/schedules/nightly", undefined],
  ["DELETE", "/v1/agents/a-1", undefined],
  ["POST", "/v1/agents/a-1/drain", {}],
  ["POST", "/v1/queues/default/pause", {}],
  ["POST", "/v1/queues/default/resume", {}],
  ["POST", "/v1/admin/drain", {}],
  ["POST", "/v1/keys", { name: "ci", role: "submitter", sha256: "a".repeat(64) }],
  ["DELETE", "/v1/keys/ci", undefined],
  [
    "POST",
    "/v1/certificates/revoked",
    { sha256: "a".repeat(64), id: "spiffe://tenure/sdk/a", not_after_ms: 4_000_000_000_000 },
  ],
];

describe("mutations belong to the leader", () => {
  it("the list above is every one of them", () => {
    const fenced = Object.values(JOB_ROUTES as Record<string, Route>).filter(({ isFenced }) => isFenced === true);
    const names = fenced.map(({ method, path }) => `${method} ${path}`);
    const listed = MUTATIONS.map(([method, path]) =>
      `${method} ${path}`
        .replace("job-1", ":id")
        .replace(/nightly|a-1|ci$/, ":name")
        .replace("default", ":queue"),
    );
    expect(listed.toSorted()).toEqual(names.toSorted());
  });

  it.each(MUTATIONS)(
    "%s %s on a standby: 409 with exactly the specified fields, whatever the body",
    async (...call) => {
      const [method, path, body] = call;
      await using t = await startApi();
      t.cluster.follow("n2");
      const before = t.fingerprint();
      for (const sent of [body, method === "DELETE" ? undefined : { nonsense: true }]) {
        const { status, json, headers } = await t.call(method, path, sent);
        expect(status).toBe(409);
        expect(json).toEqual({
          error: "NOT_LEADER",
          message: expect.stringContaining("n2") as string,
          leader_id: "n2",
          leader_url: "https://n2:7401",
          leader_epoch: 7,
          node_id: "n1",
          role: "STANDBY",
        });
        expect(headers.get("retry-after")).toBeNull();
      }
      expect(t.fingerprint()).toBe(before);
    },
  );

  it.each(MUTATIONS)("%s %s where nobody is known to lead: the same with nulls, and Retry-After", async (...call) => {
    const [method, path, body] = call;
    await using t = await startApi();
    t.cluster.follow(null);
    const { status, json, headers } = await t.call(method, path, body);
    expect(status).toBe(409);
    expect(json).toEqual({
      error: "NOT_LEADER",
      message: expect.any(String) as string,
      leader_id: null,
      leader_url: null,
      leader_epoch: null,
      node_id: "n1",
      role: "STANDBY",
    });
    expect(headers.get("retry-after")).toBe("1");
  });

  it("of a site on Postgres, whoever finds no leader is sent to the database, not to the other nodes", async () => {
    await using t = await startApi();
    Object.assign(t.cluster, { backend: "postgres" });
    t.cluster.follow(null);
    const answers = [
      await t.call("POST", "/v1/jobs", { kind: "build" }),
      await t.call("GET", "/v1/jobs?consistency=linearizable"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([409, 503]);
    for (const { json } of answers) {
      expect(json?.["message"]).toContain("look at the database and at the way to it");
      expect(json?.["message"]).not.toMatch(/majority|election|other nodes/);
    }
    const stale = await t.call("GET", "/v1/jobs?max_stale_ms=1");
    expect(stale.json?.["message"]).toContain("Nobody is known to lead");
  });

  const handingOver = {
    error: "NOT_LEADER",
    message: expect.stringContaining("handing its leadership over"),
    leader_id: null,
    leader_url: null,
    leader_epoch: null,
    node_id: "n1",
    role: "DRAINING",
  };

  it.each(MUTATIONS)(
    "D17: %s %s of who hands over: DRAINING, names nobody, says when to come again",
    async (...call) => {
      await using t = await startApi();
      t.cluster.role = "DRAINING";
      const before = t.fingerprint();
      const { status, json, headers } = await t.call(...call);
      expect([status, json]).toEqual([409, handingOver]);
      expect(headers.get("retry-after")).toBe("1");
      expect(t.fingerprint()).toBe(before);
    },
  );

  it("D17: what the log refuses because leadership is being handed over is the same", async () => {
    await using t = await startApi();
    const refuse = () => Promise.reject(new TenureError("TRANSFER_IN_PROGRESS", "leadership is being handed to n2@1a"));
    Object.assign(t.jobs, { submit: refuse, lease: refuse });
    for (const [path, body] of [
      ["/v1/jobs", { kind: "build" }],
      ["/v1/leases", leasing],
    ] as const) {
      const { status, json, headers } = await t.call("POST", path, body);
      expect([status, json, headers.get("retry-after")]).toEqual([409, handingOver, "1"]);
    }
  });

  it("D17: a leader that is drained takes jobs and results, and gives no leases", async () => {
    await using t = await startApi();
    await submit(t);
    const given = await lease(t);
    const drained = await t.call("POST", "/v1/admin/drain");
    fits("drain", drained.json);
    expect(drained.json).toEqual({ is_draining: true, leader_epoch: 7 });
    const role = await t.call("GET", "/role");
    expect(role.json).toMatchObject({ role: "DRAINING", leader_id: "n1", leader_epoch: 7 });
    expect(role.headers.get("x-tenure-role")).toBe("DRAINING");
    expect((await t.call("GET", "/v1/jobs/none")).headers.get("x-tenure-role")).toBe("DRAINING");
    await submit(t);
    expect((await t.call("POST", "/v1/leases", leasing)).json).toMatchObject({ leases: [], is_draining: true });
    const result = { session: "s-1", ...refOf(given), leader_epoch: 7, outcome: "completed" };
    expect((await t.call("POST", "/v1/results", result)).status).toBe(200);
    await t.call("POST", "/v1/admin/drain", { drain: false });
    expect((await t.call("GET", "/role")).json).toMatchObject({ role: "LEADER" });
    expect((await t.call("POST", "/v1/leases", leasing)).json).toMatchObject({ leases: [{ job_id: "job-2" }] });
  });

  it.each(MUTATIONS)(
    "%s %s with an epoch that is over: 409 STALE_EPOCH with the active one; with a later one: this node does not lead any more",
    async (...call) => {
      const [method, path, body] = call;
      await using t = await startApi();
      const before = t.fingerprint();
      for (const epoch of [6, 8]) {
        // A result without its lease is stale whatever epoch it names; the leader's own epoch is refused before that is looked at.
        const isResult = path === "/v1/results";
        if (isResult) {
          await submit(t);
          await lease(t);
        }
        const at = isResult ? t.fingerprint() : before;
        const { status, json } =
          body === undefined
            ? await t.call(method, `${path}?leader_epoch=${epoch}`)
            : await t.call(method, path, { ...body, leader_epoch: epoch });
        if (epoch > 7 && !isResult) {
          expect([status, json]).toMatchObject([409, { error: "NOT_LEADER", node_id: "n1" }]);
        } else {
          expect([status, json]).toEqual([
            409,
            { error: "STALE_EPOCH", message: expect.any(String) as string, leader_epoch: 7 },
          ]);
        }
        expect(t.fingerprint()).toBe(at);
      }
    },
  );

  it("B6: what was done under a key is answered so after a failover, whichever epoch it names", async () => {
    await using t = await startApi();
    const body = { kind: "build", leader_epoch: 7 };
    const send = (key: string) => t.call("POST", "/v1/jobs", body, "submitter-key", { "idempotency-key": key });
    expect(await send("k1")).toMatchObject({ status: 200, json: { id: "job-1" } });
    t.cluster.term = 8;
    expect(await send("k1")).toMatchObject({ status: 200, json: { id: "job-1" } });
    expect(await send("k2")).toMatchObject({ status: 409, json: { error: "STALE_EPOCH", leader_epoch: 8 } });
  });

  it("with the active one it is done", async () => {
    await using t = await startApi();
    expect((await t.call("POST", "/v1/jobs", { kind: "build", leader_epoch: 7 })).status).toBe(200);
    expect((await t.call("POST", "/v1/leases", { ...leasing, leader_epoch: 7 })).status).toBe(200);
    expect((await t.call("DELETE", "/v1/agents/a-1?leader_epoch=7")).status).toBe(200);
  });

  it("an epoch that ends between the check and the decision is STALE_EPOCH too", async () => {
    await using t = await startApi();
    const submitNow = t.jobs.submit.bind(t.jobs);
    Object.assign(t.jobs, {
      submit: (...args: Parameters<typeof submitNow>) => {
        t.cluster.term = 9;
        return submitNow(...args);
      },
    });
    const { status, json } = await t.call("POST", "/v1/jobs", { kind: "build", leader_epoch: 7 });
    expect([status, json?.["error"], json?.["leader_epoch"]]).toEqual([409, "STALE_EPOCH", 9]);
  });

  it("traps 50 and 56: a late result of one attempt does not hit the next; many are answered one by one", async () => {
    await using t = await startApi();
    await submit(t);
    const old = refOf(await lease(t));
    const back = { session: "s-1", ...old, leader_epoch: 7, outcome: "handed-back" };
    await t.call("POST", "/v1/results", back, "agent-key");
    const now = refOf(await lease(t));
    const late = { session: "s-1", ...old, leader_epoch: 7, outcome: "completed" };
    const { status, json } = await t.call("POST", "/v1/results", late, "agent-key");
    expect([status, json?.["error"], json?.["leader_epoch"]]).toEqual([409, "STALE_EPOCH", 7]);
    const results = [
      { ...old, leader_epoch: 7, outcome: "completed" },
      { ...now, leader_epoch: 6, outcome: "completed" },
      { ...now, job_id: "none", leader_epoch: 7, outcome: "completed" },
      { ...now, leader_epoch: 7, outcome: "completed" },
    ];
    const many = await t.call("POST", "/v1/results", { session: "s-1", results }, "agent-key");
    fits("results", many.json);
    const refused = (error: string) => ({ ok: false, error, message: expect.any(String) as string, leader_epoch: 7 });
    expect(many.json?.["results"]).toEqual([
      refused("STALE_EPOCH"),
      refused("STALE_EPOCH"),
      refused("NOT_FOUND"),
      { ok: true, state: "completed", is_repeated: false },
    ]);
  });
});

describe("idempotency keys", () => {
  const post = (t: TestApi, body: unknown, key: string, path = "/v1/jobs", who = "submitter-key") =>
    t.call("POST", path, body, who, { "idempotency-key": key });

  it("the same request is answered as the first time, however it is written", async () => {
    await using t = await startApi();
    const first = await post(t, '{"kind":"build","payload":{"a":1,"b":[1,2]}}', "k1");
    const again = await post(t, ' { "payload": {"b": [1, 2], "a": 1.0}, "kind":"build", "leader_epoch": 7 }', "k1");
    expect([first.json, again.json]).toEqual([{ id: "job-1" }, { id: "job-1" }]);
    expect((await t.call("GET", "/v1/stats")).json?.["submitted"]).toBe(1);
  });

  it("another body, another path or another method is 422; another caller's is another key", async () => {
    await using t = await startApi();
    await post(t, { jobs: [{ kind: "build" }, { kind: "build" }] }, "k1");
    for (const body of [
      { kind: "build" },
      { jobs: [{ kind: "build" }] },
      { jobs: [{ kind: "build" }, { kind: "c" }] },
    ]) {
      const { status, json } = await post(t, body, "k1");
      expect([status, json?.["error"]]).toEqual([422, "IDEMPOTENCY_MISMATCH"]);
    }
    expect((await post(t, {}, "k2", "/v1/jobs/job-1/cancel")).json?.["id"]).toBe("job-1");
    expect((await post(t, {}, "k2", "/v1/jobs/job-2/cancel")).status).toBe(422);
    expect((await post(t, {}, "k2", "/v1/jobs/job-1/cancel")).json?.["state"]).toBe("cancelled");
    expect((await post(t, { kind: "build" }, "k1", "/v1/jobs", "operator-key")).json).toEqual({ id: "job-3" });
  });

  it("are 1 to 200 printable characters, given once", async () => {
    await using t = await startApi();
    expect((await post(t, { kind: "build" }, "k".repeat(200))).status).toBe(200);
    for (const key of ["k".repeat(201), "", "a b", "é", "a\tb"]) {
      const { status, json } = await post(t, { kind: "build" }, key);
      expect([status, json?.["field"]]).toEqual([400, "Idempotency-Key"]);
    }
    const headers = new Headers({ "x-api-key": "submitter-key", "content-type": "application/json" });
    headers.append("idempotency-key", "a");
    headers.append("idempotency-key", "b");
    const twice = await t.fetch("/v1/jobs", { method: "POST", headers, body: '{"kind":"build"}' });
    expect([twice.status, twice.json?.["field"]]).toEqual([400, "Idempotency-Key"]);
    expect((await t.call("GET", "/v1/stats")).json?.["submitted"]).toBe(1);
  });
});
