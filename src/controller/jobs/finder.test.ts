import { expect, it } from "vitest";
import type { JobsBook } from "../../core/jobs/index.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import type { JobRow } from "../../ports/views.ts";
import { JobFinder } from "./finder.ts";

/** A book that has dropped everything up to event 5. */
const EMPTY = { leftUpTo: () => 5, applied: { job: () => null }, head: { job: () => null } } as unknown as JobsBook;

/** The clock goes on to its next timer, again and again. */
async function ended<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  const state = { isOver: false };
  void work.finally(() => (state.isOver = true));
  for (let turn = 0; !state.isOver && turn < 10_000; turn++) {
    await new Promise<void>((resume) => setImmediate(resume));
    if (Number.isFinite(clock.nextMs)) clock.nowMs = Math.max(clock.nowMs, clock.nextMs);
    clock.fireNext();
  }
  return await work;
}

it("a job in views that do not answer is known to be unknown when the time is over, not when they answer (trap 84)", async () => {
  const clock = new ManualClock();
  const finder = new JobFinder({ book: EMPTY, clock, find: () => new Promise<JobRow>(() => undefined) });
  const beganMs = clock.nowMs;
  const found = await ended(clock, finder.find("a", "applied", clock.nowMs + 1_000));
  expect(found).toEqual({ kind: "behind", position: 0, wanted: 5 });
  expect(clock.nowMs - beganMs).toBe(1_000);
});

it("a job in views that catch up within the time is found, also where an answer of before did not count", async () => {
  const clock = new ManualClock();
  let position = 3;
  const finder = new JobFinder({
    book: EMPTY,
    clock,
    find: () => Promise.resolve({ job: null, position: position++ }),
  });
  expect(await ended(clock, finder.find("a", "applied", clock.nowMs + 1_000))).toMatchObject({
    kind: "found",
    job: null,
    position: 5,
  });
});

it("views are asked once at least, and are said to be behind where they were", async () => {
  const clock = new ManualClock();
  const finder = new JobFinder({ book: EMPTY, clock, find: () => Promise.resolve({ job: null, position: 3 }) });
  expect(await ended(clock, finder.find("a", "applied", clock.nowMs))).toEqual({
    kind: "behind",
    position: 3,
    wanted: 5,
  });
});

it("nothing is decided on rows of views that are ahead of what is applied: they are of another history", async () => {
  const clock = new ManualClock();
  const book = Object.assign(Object.create(EMPTY) as JobsBook, { appliedSequence: 6 });
  const at = (position: number): JobFinder =>
    new JobFinder({ book, clock, find: () => Promise.resolve({ job: null, position }) });
  const decided = (position: number) => ended(clock, at(position).find("a", "head", clock.nowMs + 1_000));
  expect(await decided(6)).toMatchObject({ kind: "found" });
  expect(await decided(7)).toMatchObject({ kind: "behind" });
  expect(await ended(clock, at(7).find("a", "applied", clock.nowMs + 1_000))).toMatchObject({ kind: "found" });
});
