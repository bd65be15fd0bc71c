import { describe, expect, it } from "vitest";
import type { Client, EventView, JobView, Json } from "../../client/index.ts";
import { TenureError } from "../../contract/errors.ts";
import { followJob, type Told, toldBy } from "./follow.ts";
import { jobOf } from "./test-job.ts";

const error = { message: "no\nroom", detail: null };

describe("what is told of an event", () => {
  it.each<[string, Json, Told | null]>([
    ["build:log", { text: "a\nb" }, { kind: "log", text: "a\nb" }],
    ["build:assigned", { attempt: 2, agent: "w\u001B1" }, { kind: "note", text: "attempt 2 at agent w?1" }],
    ["build:building", { progress: { share: 0.5, message: "half" } }, { kind: "note", text: "50% half" }],
    ["build:building", { progress: { share: null, message: null } }, { kind: "note", text: "runs" }],
    ["build:cancelling", { by: "ada" }, { kind: "note", text: "is being cancelled, asked by ada" }],
    [
      "build:retried",
      { cause: "failed", error, readyAtMs: 0 },
      { kind: "note", text: "the attempt ended, failed: no room; again from 1970-01-01T00:00:00.000Z on" },
    ],
    [
      "build:retried",
      { cause: "lost", error: null, readyAtMs: 0 },
      { kind: "note", text: "the attempt ended, lost; again from 1970-01-01T00:00:00.000Z on" },
    ],
    ["build:retried", { cause: "asked", error: null, readyAtMs: 0 }, { kind: "note", text: "is sent once more" }],
    ["build:completed", { result: 1 }, null],
    ["build:of-a-later-version", {}, null],
  ])("%s %j", (eventType, payload, told) => {
    expect(toldBy({ eventType, payload })).toEqual(told);
  });
});

interface Script {
  readonly jobs: readonly (JobView | TenureError)[];
  readonly events?: readonly (readonly [type: string, payload: Json])[];
  readonly broken?: TenureError;
}

/** Of a client, what following needs: looks and events as they are written down. */
async function followed({ jobs, events = [], broken }: Script) {
  const told: string[] = [];
  const looks = [...jobs];
  const client = {
    job: async () => {
      const look = looks.shift();
      if (look instanceof TenureError) throw look;
      return look as JobView;
    },
    wait: async () => jobOf({ state: "completed", result: "waited" }),
    events: async function* (options: { readonly after: number }) {
      told.push(`after ${options.after}`);
      for (const [eventType, payload] of events) yield { eventType, payload, timestamp: 5 } as EventView;
      throw broken ?? new Error("nobody asked for more");
    },
  } as unknown as Client;
  const job = await followJob(client, "j1", {
    signal: new AbortController().signal,
    tell: ({ kind, text }) => told.push(`${kind} ${text}`),
  });
  return { job, told, left: looks.length };
}

const pending = jobOf({ state: "pending", pendingReason: { reason: "next" } });
const completed = jobOf({ state: "completed" });

describe("a job that is followed", () => {
  it("is told from behind its submission to its end", async () => {
    const events = [
      ["build:log", { text: "hello" }],
      ["build:completed", {}],
      ["build:log", { text: "late" }],
    ] as const;
    const { job, told, left } = await followed({ jobs: [pending, completed], events });
    expect(job).toBe(completed);
    expect(told).toEqual(["after 12", "log hello"]);
    expect(left).toBe(0);
  });

  it("says why it waits, and looks again while nobody leads", async () => {
    const waits = jobOf({ state: "pending" });
    const away = new TenureError("ERR_NO_LEADER", "nobody");
    const { told } = await followed({ jobs: [away, waits, away, completed], events: [["build:completed", {}]] });
    expect(told).toEqual(["note waits: the queue default is paused", "after 12"]);
  });

  it("goes on where somebody has sent it once more", async () => {
    const events = [
      ["build:failed", {}],
      ["build:retried", { cause: "asked" }],
      ["build:completed", {}],
    ] as const;
    const { job, told } = await followed({ jobs: [pending, pending, completed], events });
    expect(job).toBe(completed);
    expect(told).toEqual(["after 12", "note is sent once more"]);
  });

  it("that is gone when it is finished ended as its last event says", async () => {
    const gone = new TenureError("NOT_FOUND", "gone");
    const failed = await followed({ jobs: [pending, gone], events: [["build:failed", { error }]] });
    expect(failed.job).toMatchObject({ state: "failed", error, finishedAtMs: 5, lease: null });
    const done = await followed({ jobs: [pending, gone], events: [["build:completed", { result: 7 }]] });
    expect(done.job).toMatchObject({ state: "completed", result: 7, error: null });
  });

  it("whose events are not kept any more is waited for", async () => {
    const { job, told } = await followed({ jobs: [pending], broken: new TenureError("LOG_COMPACTED", "old") });
    expect(job.result).toBe("waited");
    expect(told.at(-1)).toContain("tenure job logs");
  });

  it("whose servers refuse is not followed any more", async () => {
    const broken = new TenureError("PERMISSION_DENIED", "no");
    await expect(followed({ jobs: [pending], broken })).rejects.toBe(broken);
  });
});
