import { describe, expect, it } from "vitest";
import { CLOCK_SKIPS_MAX, IDEMPOTENCY_MS } from "../../kit/limits.ts";
import type { JobsBook } from "./book.ts";
import { newBook } from "../../../../test/jobs-book.ts";
import { Desk, keyed, REQUEST, spec } from "../test-desk.ts";

const HOUR_MS = 3_600_000;

/** The events' clock jumps; the next event says so, as the controller has it say. */
function jump(desk: Desk, byMs: number): void {
  desk.nowMs += byMs;
  desk.propose<"pause-queue">({ kind: "pause-queue", request: REQUEST, queue: `q${desk.nowMs}`, paused: true }, byMs);
  desk.book.commit(desk.book.headSequence);
}

const remembers = ({ book, nowMs, skippedMs }: Desk, key: string): boolean =>
  book.remembers(keyed(key), { nowMs, skippedMs });

function restored(book: JobsBook): Desk {
  const other = newBook();
  other.restore(book.snapshot());
  return new Desk(other, other.headSequence);
}

describe("a jump of the events' clock", () => {
  it("costs no idempotency key any of its time: it is remembered for a day that was seen to pass", () => {
    const desk = new Desk(newBook());
    const submit = { kind: "submit", request: keyed("k"), specs: [spec()] } as const;
    const { jobIds } = desk.do<"submit">(submit);
    jump(desk, 25 * HOUR_MS);
    jump(desk, 100 * IDEMPOTENCY_MS);
    expect(desk.do<"submit">(submit).jobIds).toEqual(jobIds);
    desk.nowMs += IDEMPOTENCY_MS - 1;
    expect(remembers(desk, "k")).toBe(true);
    desk.nowMs += 1;
    expect(remembers(desk, "k")).toBe(false);
  });

  it("counts from when it happens, before an event has told of it", () => {
    const desk = new Desk(newBook());
    desk.do<"submit">({ kind: "submit", request: keyed("k"), specs: [spec()] });
    desk.nowMs += 25 * HOUR_MS;
    desk.skippedMs = 25 * HOUR_MS;
    expect(remembers(desk, "k")).toBe(true);
    desk.skippedMs = 0;
    expect(remembers(desk, "k")).toBe(false);
  });

  it("costs what came after it nothing, and adds nothing to it", () => {
    const desk = new Desk(newBook());
    jump(desk, 25 * HOUR_MS);
    desk.do<"submit">({ kind: "submit", request: keyed("k"), specs: [spec()] });
    desk.nowMs += IDEMPOTENCY_MS;
    expect(remembers(desk, "k")).toBe(false);
  });

  it("leaves a finished job where it is until its retention was seen to pass", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec({ retentionMs: HOUR_MS }));
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: jobId! });
    jump(desk, 50 * HOUR_MS);
    const forget = { kind: "forget", jobIds: [jobId!] } as const;
    expect(desk.do<"forget">(forget).forgotten).toEqual([]);
    desk.nowMs += HOUR_MS;
    expect(desk.do<"forget">(forget).forgotten).toEqual([jobId]);
  });

  it("that is taken back with its event counts for nothing", () => {
    const desk = new Desk(newBook());
    desk.do<"submit">({ kind: "submit", request: keyed("k"), specs: [spec()] });
    const pause = { kind: "pause-queue", request: REQUEST, queue: "q", paused: true } as const;
    desk.propose<"pause-queue">(pause, 25 * HOUR_MS);
    expect(desk.book.skippedMs).toBe(25 * HOUR_MS);
    desk.rollback();
    expect(desk.book.skippedMs).toBe(0);
  });

  it("is in the snapshot, as something that an earlier release takes for a key", () => {
    const desk = new Desk(newBook());
    desk.do<"submit">({ kind: "submit", request: keyed("k"), specs: [spec()] });
    jump(desk, 25 * HOUR_MS);
    const other = restored(desk.book);
    other.nowMs = desk.nowMs;
    expect([remembers(other, "k"), other.book.skippedMs]).toEqual([true, 25 * HOUR_MS]);
    expect(other.book.keys.remembered).toBe(1);
    expect(other.book.snapshot()).toEqual(desk.book.snapshot());
  });

  it("is one of a bounded number: past it the oldest become one, and nothing is forgotten earlier for it", () => {
    const desk = new Desk(newBook());
    desk.do<"submit">({ kind: "submit", request: keyed("k"), specs: [spec()] });
    for (let count = 0; count < 3 * CLOCK_SKIPS_MAX; count++) jump(desk, 25 * HOUR_MS);
    expect([desk.book.state.skips.size, desk.book.skippedMs]).toEqual([
      CLOCK_SKIPS_MAX,
      3 * CLOCK_SKIPS_MAX * 25 * HOUR_MS,
    ]);
    desk.nowMs += IDEMPOTENCY_MS - 1;
    expect(remembers(desk, "k")).toBe(true);
    desk.nowMs += 1;
    expect(remembers(desk, "k")).toBe(false);
  });
});
