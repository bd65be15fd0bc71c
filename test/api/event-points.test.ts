// A reader that comes back with a point of a history that was rewritten (trap 82), and with one that this node merely has not yet
// (trap 73). "a" and "b" are two histories with the same first three events.

import { describe, expect, it, vi } from "vitest";
import { TenureError } from "../../src/core/kit/errors.ts";
import { startApi, type TestApi } from "./test-api.ts";
import { lease, submit } from "./test-job-calls.ts";
import { openStream } from "./test-stream.ts";

function record(t: TestApi, count: number, text: string): void {
  for (let i = 0; i < count; i++) {
    t.events.append({ eventType: "build:submitted", entityId: "job", entityType: "build", payload: { text } });
  }
}

async function pointOf(t: TestApi, sequence: number): Promise<string> {
  return `${sequence}:${(await t.events.hashAt(sequence))!}`;
}

/** The common beginning, and what only this one has. */
async function history(branch: string, more: number): Promise<TestApi> {
  const t = await startApi({ limits: { heartbeatMs: 30 } });
  record(t, 3, "common");
  record(t, more, branch);
  return t;
}

/** Every way in which a reader can say where it was. */
const WAYS: readonly [string, (point: string) => { path: string; headers: Record<string, string> }][] = [
  [
    "Last-Event-ID with its hash, as an EventSource with ids=chained sends it",
    (point) => ({ path: "/v1/events?ids=chained", headers: { "last-event-id": point } }),
  ],
  [
    "since and since_hash",
    (point) => ({ path: `/v1/events?since=${point.split(":")[0]}&since_hash=${point.split(":")[1]}`, headers: {} }),
  ],
  [
    "Last-Event-ID and X-Tenure-Event-Point, as the SDK sends it, with a filter",
    (point) => ({
      path: "/v1/events?type=build:failed",
      headers: { "last-event-id": point.split(":")[0]!, "x-tenure-event-point": point },
    }),
  ],
];

describe.each(WAYS)("%s", (_name, ask) => {
  async function answer(t: TestApi, point: string): Promise<[number, unknown]> {
    const { path, headers } = ask(point);
    const gone = new AbortController();
    const response = await fetch(`${t.url}${path}`, {
      headers: { "x-api-key": "viewer-key", ...headers },
      signal: gone.signal,
    });
    const { status } = response;
    const body: unknown = status === 200 ? null : await response.json();
    gone.abort();
    return [status, body];
  }

  it("a point of this history goes on; one of another is HISTORY_REWRITTEN, also beyond the end", async () => {
    await using a = await history("a", 3);
    await using b = await history("b", 5);
    await using short = await history("b", 0);
    const point = await pointOf(a, 6);
    expect(await answer(a, point)).toEqual([200, null]);
    expect(await answer(b, await pointOf(a, 3))).toEqual([200, null]);
    const refused = { error: "HISTORY_REWRITTEN", sequence: 6, first_sequence: 1 };
    expect(await answer(b, point)).toMatchObject([409, { ...refused, last_sequence: 8 }]);
    expect(await answer(short, point)).toMatchObject([409, { ...refused, last_sequence: 3 }]);
  });

  it("trap 73: a node that can't ask the leader does not decide: 503, and the reader goes elsewhere", async () => {
    await using a = await history("a", 3);
    await using b = await history("b", 5);
    const point = await pointOf(a, 6);
    a.events.appliedMax = 4;
    for (const t of [a, b]) {
      t.cluster.isCutOff = true;
      expect(await answer(t, point)).toMatchObject([503, { error: "ERR_NO_LEADER" }]);
      t.cluster.isCutOff = false;
    }
  });

  it("trap 73: a node that lags catches up, and serves", async () => {
    await using a = await history("a", 3);
    const point = await pointOf(a, 6);
    a.events.appliedMax = 4;
    a.cluster.onCatchUp = () => void (a.events.appliedMax = null);
    expect(await answer(a, point)).toEqual([200, null]);
  });

  it("where retention has cut that event: the next one still names it; before that, LOG_COMPACTED as ever", async () => {
    await using a = await history("a", 3);
    const [fourth, fifth] = [await pointOf(a, 4), await pointOf(a, 5)];
    a.events.first = 6;
    expect(await answer(a, fifth)).toEqual([200, null]);
    expect(await answer(a, fourth)).toMatchObject([410, { error: "LOG_COMPACTED" }]);
  });
});

describe("what a stream says of where it is", () => {
  it("the hash with each point that moves without an event, in a field that others ignore", async () => {
    await using t = await history("a", 3);
    using stream = await openStream(t, "/v1/events?since=2&type=build:failed");
    await expect.poll(() => stream.points).toEqual([await pointOf(t, 2), await pointOf(t, 6)]);
    expect([stream.frames[0]?.id, stream.lastId], "ids are as they always were").toEqual(["2", "6"]);
  });

  it("ids=chained: each id is the point, so that an EventSource brings it back by itself", async () => {
    await using t = await history("a", 3);
    using stream = await openStream(t, "/v1/events?since=4&ids=chained");
    await expect.poll(() => stream.shown.map(({ id }) => id)).toEqual([await pointOf(t, 5), await pointOf(t, 6)]);
    using plain = await openStream(t, "/v1/events?since=4");
    await expect.poll(() => plain.ids).toEqual([5, 6]);
    using resumed = await openStream(t, "/v1/events?since=0&ids=chained", { "last-event-id": stream.lastId! });
    record(t, 1, "a");
    await expect.poll(() => resumed.shown.map(({ id }) => id)).toEqual([await pointOf(t, 7)]);
  });

  it("the log of a job: who brings a point of another history is refused; of a job that is none nothing is read", async () => {
    await using a = await history("a", 3);
    await using b = await history("b", 5);
    const headers = { "x-tenure-event-point": await pointOf(a, 6) };
    for (const [t, status] of [
      [a, 200],
      [b, 409],
    ] as const) {
      await submit(t);
      expect((await t.call("GET", "/v1/jobs/job-1/logs", undefined, "viewer-key", headers)).status).toBe(status);
      const reads = vi.spyOn(t.events, "hashAt");
      for (const path of ["/v1/jobs/unknown/logs", "/v1/jobs/unknown/logs?follow=true"]) {
        expect((await t.call("GET", path, undefined, "viewer-key", headers)).status).toBe(404);
      }
      expect(reads).not.toHaveBeenCalled();
    }
  });

  it.each(["LOG_COMPACTED", "EVENTS_LOST"] as const)(
    "the log of a quiet job goes on at its offset where the point of its last piece is not kept any more: %s",
    async (code) => {
      await using t = await history("a", 3);
      await submit(t);
      const headers = { "x-tenure-event-point": await pointOf(t, 3) };
      vi.spyOn(t.events, "hashAt").mockRejectedValueOnce(new TenureError(code, "not kept"));
      expect((await t.call("GET", "/v1/jobs/job-1/logs", undefined, "viewer-key", headers)).status).toBe(200);
    },
  );

  it("the log of a quiet job says the newest point with each heartbeat", async () => {
    await using t = await history("a", 3);
    await submit(t);
    using stream = await openStream(t, "/v1/jobs/job-1/logs?follow=true");
    record(t, 2, "a");
    const newest = await pointOf(t, t.events.head().sequence);
    await expect.poll(() => stream.points, { timeout: 30_000 }).toContain(newest);
  });

  it("the log of a job: where the node takes over another history, nothing more is said, and the reader resumes with its own point", async () => {
    await using t = await history("a", 3);
    const id = await submit(t);
    await lease(t);
    t.jobs.print(id, 1, "one\n");
    using stream = await openStream(t, `/v1/jobs/${id}/logs?follow=true`);
    await expect.poll(() => stream.shown.length, { timeout: 30_000 }).toBe(1);
    t.events.replaced();
    t.jobs.print(id, 1, "of another history\n");
    await expect.poll(() => stream.ended, { timeout: 30_000 }).toBe("end");
    expect(stream.shown, "and no `end`: it has not come to that").toHaveLength(1);
    await expect.poll(() => t.api.stats().streams, { timeout: 30_000 }).toBe(0);
    using resumed = await openStream(t, `/v1/jobs/${id}/logs?follow=true`, { "last-event-id": stream.lastId! });
    await expect.poll(() => resumed.shown[0]?.data, { timeout: 30_000 }).toContain("of another history");
  });

  it("who sends no hash is served as before, whatever the history is", async () => {
    await using b = await history("b", 5);
    using stream = await openStream(b, "/v1/events", { "last-event-id": "6" });
    await expect.poll(() => stream.ids).toEqual([7, 8]);
  });

  it.each([
    ["/v1/events", "X-Tenure-Event-Point", { "x-tenure-event-point": "6" }],
    ["/v1/events", "X-Tenure-Event-Point", { "x-tenure-event-point": "6:XY" }],
    ["/v1/events", "Last-Event-ID", { "last-event-id": `6:${"g".repeat(64)}` }],
    ["/v1/events?since=1&since_hash=12", "since_hash", {}],
    [`/v1/events?since_hash=${"0".repeat(64)}`, "since_hash", {}],
    ["/v1/events?ids=other", "ids", {}],
  ])("%s: a point that is none is refused by name (%s)", async (path, field, headers) => {
    await using t = await history("a", 3);
    const refused = await t.call("GET", path, undefined, "viewer-key", headers);
    expect([refused.status, refused.json?.["field"]]).toEqual([400, field]);
  });
});
