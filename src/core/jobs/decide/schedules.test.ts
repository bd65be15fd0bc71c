// When a schedule fires, and for which times.

import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import { Desk, replayed, REQUEST, spec } from "../test-desk.ts";

describe("a schedule", () => {
  const schedule = {
    name: "nightly",
    cron: "0 0 * * *",
    timeZone: "UTC",
    spec: spec(),
    catchUp: "none",
    paused: false,
  } as const;
  const put = (desk: Desk, changes: object = {}): unknown =>
    desk.do<"put-schedule">({
      kind: "put-schedule",
      request: REQUEST,
      schedule: { ...schedule, overlap: "allow", ...changes },
    });
  const fire = (desk: Desk, atMs: number): string | null =>
    desk.do<"fire-schedule">({ kind: "fire-schedule", name: "nightly", atMs }).jobId;

  it("fires once for each time, and for none before it was there", () => {
    const desk = new Desk(newBook());
    expect(fire(desk, desk.nowMs + 5)).toBeNull();
    put(desk);
    expect(put(desk)).toEqual({ isChanged: false });
    expect(fire(desk, desk.nowMs)).toBeNull();
    const at = desk.nowMs + 10;
    const jobId = fire(desk, at);
    expect(desk.book.applied.job(jobId!)).toMatchObject({ state: "pending", submittedBy: "schedule:nightly" });
    expect(fire(desk, at)).toBeNull();
    expect(fire(desk, at - 1)).toBeNull();
    expect(fire(desk, at + 1)).not.toBeNull();
    expect(desk.book.applied.schedules((_, after) => after + 7)).toMatchObject([
      { lastAtMs: at + 1, nextAtMs: at + 8 },
    ]);
  });

  it("that does not overlap leaves a time out while a job of it is not finished", () => {
    const desk = new Desk(newBook());
    put(desk, { overlap: "skip" });
    const jobId = fire(desk, desk.nowMs + 1);
    expect(fire(desk, desk.nowMs + 2)).toBeNull();
    expect(desk.events.at(-1)).toMatchObject({ eventType: "schedule:fired", payload: { jobId: null } });
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: jobId! });
    expect(fire(desk, desk.nowMs + 2)).toBeNull();
    expect(fire(desk, desk.nowMs + 3)).not.toBeNull();
  });

  it("that does not overlap waits for a job that was sent once more by hand, also after the book had dropped it", () => {
    const desk = new Desk(newBook({ finishedMax: 0 }));
    put(desk, { overlap: "skip" });
    const jobId = fire(desk, desk.nowMs + 1)!;
    const running = desk.book.applied.job(jobId)!;
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });
    expect(desk.book.known(jobId)).toBe(false);
    // As the views have it.
    const job = { ...running, state: "cancelled" as const };
    desk.do<"retry">({ kind: "retry", request: REQUEST, jobId, job });
    expect(fire(desk, desk.nowMs + 2)).toBeNull();
    expect(replayed(newBook({ finishedMax: 0 }), desk.events).snapshot()).toEqual(desk.book.snapshot());
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });
    expect(fire(desk, desk.nowMs + 3)).not.toBeNull();
  });

  it("that was paused does not catch up, and one that is deleted is gone", () => {
    const desk = new Desk(newBook());
    put(desk);
    put(desk, { paused: true });
    expect(fire(desk, desk.nowMs + 1)).toBeNull();
    expect(desk.book.applied.schedules(() => 1)).toMatchObject([{ paused: true, nextAtMs: null }]);
    desk.nowMs += 100;
    put(desk);
    expect(fire(desk, desk.nowMs - 50)).toBeNull();
    expect(fire(desk, desk.nowMs + 1)).not.toBeNull();
    const remove = { kind: "delete-schedule", request: REQUEST, name: "nightly" } as const;
    expect(desk.do<"delete-schedule">(remove)).toEqual({ isChanged: true });
    expect(desk.decide<"delete-schedule">(remove)).toMatchObject({ code: "NOT_FOUND" });
    expect(desk.book.applied.schedules(() => 1)).toEqual([]);
  });

  it("does not use a time up for which there is no room", () => {
    const desk = new Desk(newBook({ liveMax: 1 }));
    put(desk);
    const [jobId] = desk.submit(spec());
    const command = { kind: "fire-schedule", name: "nightly", atMs: desk.nowMs + 1 } as const;
    expect(desk.decide<"fire-schedule">(command)).toMatchObject({ code: "OVERLOADED" });
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: jobId! });
    expect(fire(desk, desk.nowMs + 1)).not.toBeNull();
  });
});
