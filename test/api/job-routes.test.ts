// Jobs over HTTP: what is asked comes to the ports as it was meant, and what they answer comes back in the contract's form.

import { describe, expect, it } from "vitest";
import { startApi } from "./test-api.ts";
import { fits, lease, leasesOf, leasing, refOf, submit } from "./test-job-calls.ts";

describe("submitting", () => {
  it("one job is answered with its id, many with all of theirs", async () => {
    await using t = await startApi();
    const one = await t.call("POST", "/v1/jobs", { kind: "build" }, "submitter-key");
    const many = await t.call("POST", "/v1/jobs", { jobs: [{ kind: "a" }, { kind: "b" }] }, "submitter-key");
    fits("submit", one.json);
    fits("submit", many.json);
    expect([one.json, many.json]).toEqual([{ id: "job-1" }, { ids: ["job-2", "job-3"] }]);
  });

  it("what is left out is filled in, and what is the user's own stays as it is", async () => {
    await using t = await startApi();
    const payload = { camelCase: [{ snake_case: null }], "": 1.5 };
    const labels = { Zone_A: "eu", gpuType: "a100" };
    await submit(t, { kind: "build", payload, labels, backoff: { base_ms: 5, max_ms: 50 } });
    const { json } = await t.call("GET", "/v1/jobs/job-1");
    fits("job", json);
    expect(json?.["spec"]).toEqual({
      kind: "build",
      payload,
      queue: "default",
      labels,
      platform: null,
      priority: 0,
      not_before_ms: null,
      attempts_max: 3,
      losses_max: 10,
      backoff: { base_ms: 5, max_ms: 50 },
      timeout_ms: null,
      retention_ms: 604_800_000,
      concurrency: null,
    });
    expect(json).toMatchObject({
      submitted_by: "the submitter",
      pending_reason: { reason: "no-agent", kind: "build" },
    });
  });

  it("a key keeps its name, whatever this process parsed before (nodejs/node #63785)", async () => {
    await using t = await startApi();
    for (const first of ["x", "kind"]) JSON.parse(JSON.stringify({ [first]: 1, "a\\": 2 }));
    const payload = String.raw`{"x":1,"a\"":2}`;
    await t.call("POST", "/v1/jobs", `{"kind":"build","payload":${payload}}`, "submitter-key");
    expect((await t.call("GET", "/v1/jobs/job-1")).text).toContain(`"payload":${payload}`);
  });

  it("of many, one that is wrong is named, and none is taken", async () => {
    await using t = await startApi();
    const before = t.fingerprint();
    const { status, json } = await t.call("POST", "/v1/jobs", { jobs: [{ kind: "a" }, { kind: "b", prioritty: 1 }] });
    expect([status, json?.["field"]]).toEqual([400, "jobs[1].prioritty"]);
    expect(json?.["message"]).toContain("did you mean priority?");
    expect(t.fingerprint()).toBe(before);
  });
});

describe("a job's life", () => {
  it("is leased, renewed, reported and finished, and shows its attempts with their epochs", async () => {
    await using t = await startApi();
    await submit(t, { kind: "build", payload: { n: 1 } });
    const call = await t.call("POST", "/v1/leases", leasing, "agent-key");
    fits("lease", call.json);
    expect(call.json).toMatchObject({
      leader_epoch: 7,
      is_draining: false,
      leases: [{ job_id: "job-1", job_epoch: 1, leader_epoch: 7, attempt: 1, spec: { payload: { n: 1 } } }],
    });
    const given = leasesOf(call)[0]!;
    const ref = refOf(given);
    const report = { renew: [ref], progress: [{ ...ref, share: 0.5 }], logs: [{ ...ref, offset: 0, text: "line\n" }] };
    const renewed = await t.call("POST", "/v1/leases", { ...leasing, max: 0, ...report }, "agent-key");
    fits("lease", renewed.json);
    expect(renewed.json?.["renewed"]).toEqual([{ ...ref, outcome: "renewed", state: "assigned" }]);
    const result = { session: "s-1", ...ref, leader_epoch: 7, outcome: "completed", result: { fooBar: 1 } };
    const done = await t.call("POST", "/v1/results", result, "agent-key");
    fits("results", done.json);
    expect(done.json).toEqual({ ok: true, state: "completed", is_repeated: false });
    expect((await t.call("POST", "/v1/results", result, "agent-key")).json).toMatchObject({ is_repeated: true });
    const { json } = await t.call("GET", "/v1/jobs/job-1");
    fits("job", json);
    expect(json).toMatchObject({
      state: "completed",
      result: { fooBar: 1 },
      progress: { share: 0.5, message: null },
      attempts: [{ attempt: 1, job_epoch: 1, leader_epoch: 7, agent: "a-1", end: "completed" }],
      pending_reason: null,
    });
    expect(
      (json as { timeline: { what: string; end: string | null }[] }).timeline.map(({ what, end }) => [what, end]),
    ).toEqual([
      ["submitted", null],
      ["assigned", null],
      ["started", null],
      ["ended", "completed"],
      ["finished", "completed"],
    ]);
    // Whoever knows a lease's id may report its result.
    expect(JSON.stringify(json)).not.toContain("lease_id");
  });

  it("a poll that waits is handed a job at once, and one whose agent has gone gets none", async () => {
    await using t = await startApi();
    const waiting = t.call("POST", "/v1/leases", { ...leasing, wait_ms: 60_000 }, "agent-key");
    await expect.poll(() => t.jobs.waiting).toBe(1);
    await submit(t);
    expect((await waiting).json?.["leases"]).toHaveLength(1);
    const gone = new AbortController();
    const headers = { "x-api-key": "agent-key", "content-type": "application/json" };
    const body = JSON.stringify({ ...leasing, wait_ms: 60_000 });
    const given = fetch(`${t.url}/v1/leases`, { method: "POST", headers, body, signal: gone.signal });
    await expect.poll(() => t.jobs.waiting).toBe(1);
    gone.abort();
    await expect(given).rejects.toThrow();
    await expect.poll(() => t.jobs.waiting).toBe(0);
    expect((await t.call("GET", `/v1/jobs/${await submit(t)}`)).json?.["state"]).toBe("pending");
  });

  it("an agent that waits while the server stops is answered, for what it reported counts", async () => {
    const t = await startApi();
    const id = await submit(t);
    const ref = refOf(await lease(t));
    const waiting = t.call("POST", "/v1/leases", { ...leasing, renew: [ref], wait_ms: 60_000 }, "agent-key");
    await expect.poll(() => t.jobs.waiting).toBe(1);
    await t.api.stop(5_000);
    expect(await waiting).toMatchObject({
      status: 200,
      json: { renewed: [{ job_id: id, outcome: "renewed" }], leases: [] },
    });
  });

  it("is cancelled and retried by submitters", async () => {
    await using t = await startApi();
    const id = await submit(t);
    const early = await t.call("POST", `/v1/jobs/${id}/retry`, {}, "submitter-key");
    expect(early.json?.["error"]).toBe("BAD_REQUEST");
    const cancelled = await t.call("POST", `/v1/jobs/${id}/cancel`, undefined, "submitter-key");
    fits("cancelJob", cancelled.json);
    expect(cancelled.json?.["state"]).toBe("cancelled");
    const late = await t.call("POST", `/v1/jobs/${id}/cancel`, {}, "submitter-key");
    expect([late.status, late.json?.["error"]]).toEqual([409, "JOB_FINISHED"]);
    const again = await t.call("POST", `/v1/jobs/${id}/retry`, {}, "submitter-key");
    fits("retryJob", again.json);
    expect(again.json).toMatchObject({ state: "pending", pending_reason: { reason: "no-agent" } });
    expect((await t.call("POST", "/v1/jobs/none/cancel", {})).status).toBe(404);
  });

  it("a failure says why, and fields that do not go with the outcome are refused by name", async () => {
    await using t = await startApi();
    await submit(t);
    const base = { ...refOf(await lease(t)), leader_epoch: 7 };
    const mistakes: [object, string][] = [
      [{ outcome: "failed" }, "error"],
      [{ outcome: "completed", error: { message: "m" } }, "error"],
      [{ outcome: "failed", error: { message: "m" }, result: 1 }, "result"],
      [{ outcome: "cancelled", retry: true }, "retry"],
    ];
    for (const [change, field] of mistakes) {
      const one = await t.call("POST", "/v1/results", { session: "s-1", ...base, ...change }, "agent-key");
      expect([one.status, one.json?.["field"]]).toEqual([400, field]);
      const many = {
        session: "s-1",
        results: [
          { ...base, outcome: "handed-back" },
          { ...base, ...change },
        ],
      };
      expect((await t.call("POST", "/v1/results", many, "agent-key")).json?.["field"]).toBe(`results[1].${field}`);
    }
    const failed = {
      ...base,
      outcome: "failed",
      error: { message: "no compiler", detail: { exitCode: 2 } },
      retry: false,
    };
    expect((await t.call("POST", "/v1/results", { session: "s-1", ...failed }, "agent-key")).status).toBe(200);
    expect((await t.call("GET", "/v1/jobs/job-1")).json?.["error"]).toEqual({
      message: "no compiler",
      detail: { exitCode: 2 },
    });
  });
});

it("a node that serves no jobs says so", async () => {
  await using t = await startApi({ jobs: undefined });
  for (const [method, path] of [
    ["GET", "/v1/jobs"],
    ["POST", "/v1/jobs"],
    ["GET", "/v1/events"],
  ] as const) {
    const { status, json } = await t.call(method, path, method === "POST" ? { kind: "build" } : undefined);
    expect([status, json?.["message"]]).toEqual([404, "Node n1 serves no jobs."]);
  }
});
