// How much of everything a book takes, and what is refused past that.

import { describe, expect, it } from "vitest";
import {
  AGENTS_BYTES_MAX,
  IDEMPOTENCY_BYTES_MAX,
  JOB_CLASSES_MAX,
  JOB_LABELS_BYTES_MAX,
  JOB_NAME_BYTES_MAX,
  JOBS_FINISHED_BYTES_MAX,
  JOBS_GROWN_BYTES_MAX,
  JOBS_LIVE_BYTES_MAX,
  JOBS_LIVE_MAX,
  SCHEDULES_BYTES_MAX,
  SNAPSHOT_BYTES_MAX,
} from "../../kit/limits.ts";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, COMPLETED, Desk, replayed, REQUEST, spec } from "../test-desk.ts";

describe("limits", () => {
  it("one past each is refused, and nothing is submitted", () => {
    const limits = { liveMax: 2, classesMax: 2, liveBytesMax: 300 };
    const attempt = (...specs: ReturnType<typeof spec>[]): unknown => {
      const desk = new Desk(newBook(limits));
      const decision = desk.decide<"submit">({ kind: "submit", request: REQUEST, specs });
      return decision.kind === "refused" ? decision.code : "taken";
    };
    expect(attempt(spec(), spec())).toBe("taken");
    expect(attempt(spec(), spec(), spec())).toBe("OVERLOADED");
    expect(attempt(spec({ queue: "1" }), spec({ queue: "2" }))).toBe("taken");
    expect(attempt(spec({ payload: "x".repeat(167) }))).toBe("taken");
    expect(attempt(spec({ payload: "x".repeat(168) }))).toBe("OVERLOADED");
    // In bytes, not in characters.
    expect(attempt(spec({ payload: "ü".repeat(83) + "x" }))).toBe("taken");
    expect(attempt(spec({ payload: "ü".repeat(84) }))).toBe("OVERLOADED");
    expect(attempt()).toBe("BAD_REQUEST");
    const classes = (count: number): unknown => {
      const desk = new Desk(newBook({ classesMax: 2 }));
      const specs = Array.from({ length: count }, (_, at) => spec({ queue: `q${at >> 1}` }));
      return desk.decide<"submit">({ kind: "submit", request: REQUEST, specs }).kind;
    };
    expect(classes(4)).toBe("decided");
    expect(classes(5)).toBe("refused");
  });

  it("jobs that have grown by their attempts are leased no more, and their failures not kept, until some have ended; results are taken", () => {
    const desk = new Desk(newBook({ grownBytesMax: 500 }));
    desk.submit(spec(), spec(), spec());
    const [first, second] = desk.lease(agent(), 2).leases;
    expect(desk.book.state.liveBytes).toBeGreaterThan(500);
    expect(desk.lease(agent(), 1).leases).toEqual([]);
    const detail = { text: "x".repeat(1_000) };
    const failed = { kind: "failed", error: { message: "no", detail }, retry: true } as const;
    expect(desk.result("a1-s1", first!, failed)).toMatchObject({ ok: true, state: "pending" });
    expect(desk.book.applied.job(first!.jobId)).toMatchObject({ error: null, failures: 1 });
    expect(desk.result("a1-s1", second!, COMPLETED)).toMatchObject({ ok: true, state: "completed" });
    desk.nowMs += 60_000;
    expect(desk.book.state.isOvergrown).toBe(false);
    expect(desk.lease(agent(), 1).leases).toHaveLength(1);
    expect(replayed(newBook({ grownBytesMax: 500 }), desk.events).snapshot()).toEqual(desk.book.snapshot());
  });

  it("agents and schedules are limited by what they take together; one past it is refused", () => {
    const one = new Desk(newBook());
    one.lease(agent("a1"), 0);
    const { agentBytes } = one.book.state;
    const desk = new Desk(newBook({ agentBytesMax: 2 * agentBytes, scheduleBytesMax: 500 }));
    const known = (name: string, kinds = ["build"]): string =>
      desk.propose<"lease">({ kind: "lease", agent: agent(name, { kinds }), max: 0, ttlMs: 1_000 }).kind;
    expect([known("a1"), known("a2"), known("a2"), known("a3"), known("a2", ["build", "test"])]).toEqual([
      "decided",
      "decided",
      "decided",
      "refused",
      "refused",
    ]);
    const put = (length: number): string => {
      const schedule = { name: "s", cron: "* * * * *", timeZone: "UTC", overlap: "skip", catchUp: "none" } as const;
      const payload = "x".repeat(length);
      const whole = { ...schedule, paused: false, spec: spec({ payload }) };
      return desk.propose<"put-schedule">({ kind: "put-schedule", request: REQUEST, schedule: whole }).kind;
    };
    expect(put(1)).toBe("decided");
    const room = 500 - desk.book.state.scheduleBytes;
    expect([put(1 + room), put(2 + room)]).toEqual(["decided", "refused"]);
  });

  it("all of them together fit into a snapshot, with room for what is not counted", () => {
    // Each lease may have grown by its end, where nothing else is kept of it any more.
    const ends = 2 * 11 * JOBS_LIVE_MAX;
    const classes = JOB_CLASSES_MAX * (JOB_LABELS_BYTES_MAX + 3 * 3 * JOB_NAME_BYTES_MAX);
    const jobs = JOBS_GROWN_BYTES_MAX + ends + JOBS_FINISHED_BYTES_MAX + classes;
    const others = IDEMPOTENCY_BYTES_MAX + AGENTS_BYTES_MAX + SCHEDULES_BYTES_MAX;
    expect(JOBS_LIVE_BYTES_MAX).toBeLessThan(JOBS_GROWN_BYTES_MAX);
    expect(jobs + others).toBeLessThan(SNAPSHOT_BYTES_MAX - 32 * 1024 * 1024);
    // A million small jobs are taken.
    expect(JOBS_LIVE_BYTES_MAX / 1_000_000).toBeGreaterThan(200);
  });

  it("B3: sets of kind, queue, platform and labels are counted while a job of them is not finished", () => {
    const desk = new Desk(newBook({ classesMax: 2 }));
    const [first] = desk.submit(spec({ queue: "q1" }), spec({ queue: "q2" }));
    const third = { kind: "submit", request: REQUEST, specs: [spec({ queue: "q3" })] } as const;
    expect(desk.decide<"submit">(third)).toMatchObject({ code: "OVERLOADED" });
    for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
    expect(desk.propose<"submit">(third)).toMatchObject({ kind: "decided" });
    desk.submit(spec({ queue: "q4" }));
    // Sent once more it counts again.
    const retry = { kind: "retry", request: REQUEST, jobId: first!, job: null } as const;
    expect(desk.decide<"retry">(retry)).toMatchObject({ code: "OVERLOADED" });
    for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
    expect(desk.decide<"retry">(retry)).toMatchObject({ kind: "decided" });
  });

  it("C6: names are counted in bytes, as the event that carries them counts", () => {
    const desk = new Desk(newBook());
    const long = "ä".repeat(65);
    const pause = (queue: string): unknown =>
      desk.decide<"pause-queue">({ kind: "pause-queue", request: REQUEST, queue, paused: true });
    const times = { cron: "0 0 * * *", timeZone: "UTC", overlap: "allow", catchUp: "none", paused: false } as const;
    const put = (name: string): unknown =>
      desk.decide<"put-schedule">({
        kind: "put-schedule",
        request: REQUEST,
        schedule: { name, spec: spec(), ...times },
      });
    const submit = (one: ReturnType<typeof spec>): unknown =>
      desk.decide<"submit">({ kind: "submit", request: REQUEST, specs: [one] });
    expect(pause(long)).toMatchObject({ code: "BAD_REQUEST" });
    expect(put(long)).toMatchObject({ code: "SCHEDULE_INVALID" });
    expect(submit(spec({ queue: long }))).toMatchObject({ code: "BAD_REQUEST" });
    expect(submit(spec({ kind: "" }))).toMatchObject({ code: "BAD_REQUEST" });
    const most = "ä".repeat(64);
    for (const taken of [pause(most), put(most), submit(spec({ queue: most }))]) {
      expect(taken).toMatchObject({ kind: "decided" });
    }
  });

  it("a batch has at most a thousand jobs, a payload 256 KiB, and what no event can hold is refused", () => {
    const desk = new Desk(newBook());
    const kind = "submit" as const;
    const submit = (specs: readonly ReturnType<typeof spec>[]): unknown =>
      desk.decide<"submit">({ kind, request: REQUEST, specs });
    expect(submit(Array.from({ length: 1_000 }, () => spec()))).toMatchObject({ kind: "decided" });
    expect(submit(Array.from({ length: 1_001 }, () => spec()))).toMatchObject({ code: "BAD_REQUEST" });
    expect(submit([spec({ payload: "x".repeat(262_142) })])).toMatchObject({ kind: "decided" });
    expect(submit([spec({ payload: "x".repeat(262_143) })])).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(submit([spec({ payload: "ä".repeat(131_072) })])).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(submit([spec(), spec({ payload: Number.NaN })])).toMatchObject({ code: "EVENT_INVALID" });
    for (const wrong of [{ kind: "" }, { attemptsMax: 0 }, { priority: 0.5 }, { queue: "\ud800" }, { lossesMax: -1 }]) {
      expect(submit([spec(), spec(wrong)])).toMatchObject({ code: "BAD_REQUEST" });
    }
  });

  it("finished jobs leave memory, the oldest first", () => {
    const desk = new Desk(newBook({ finishedMax: 2 }));
    const ids = desk.submit(spec(), spec(), spec());
    for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
    expect(ids.map((id) => desk.book.known(id))).toEqual([false, true, true]);
    expect(desk.book.applied.stats()).toMatchObject({ submitted: 3, finished: 3, byState: { completed: 2 } });
  });
});
