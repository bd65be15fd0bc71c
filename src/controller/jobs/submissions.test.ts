// The leader and the inbox of the database: what is read when, and what a failure costs.

import { expect, test } from "vitest";
import type { TakenJob } from "../../core/jobs/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { HandClock, settled } from "../../electors/test-seat.ts";
import { type Inbox, Submissions, type Submitted } from "./submissions.ts";
import { SPEC } from "./test-jobs.ts";

class HandInbox implements Inbox {
  readonly waiting: ((found: readonly Submitted[]) => void)[] = [];
  readonly settledIds: string[] = [];
  isClosed = false;
  #reject: ((error: unknown) => void) | undefined;

  next(): Promise<readonly Submitted[]> {
    return new Promise((resolve, reject) => {
      this.waiting.push(resolve);
      this.#reject = reject;
    });
  }

  settle(ids: readonly string[]): void {
    this.settledIds.push(...ids);
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.#reject?.(new TenureError("BACKEND_UNAVAILABLE", "closed"));
    return Promise.resolve();
  }
}

function submitted(id: string, chars = 10): Submitted {
  return { id, kind: "k", payload: "x".repeat(chars), options: "{}", by: "app" };
}

function stage(
  take: (jobs: readonly TakenJob[]) => Promise<void> = () => Promise.resolve(),
  read: (submitted: Submitted) => TakenJob = ({ id, by }) => ({ id, by, spec: SPEC, problem: null }),
) {
  const clock = new HandClock();
  const inboxes: HandInbox[] = [];
  const listeners: (() => void)[] = [];
  const taken: string[][] = [];
  let epoch: number | null = null;
  const submissions = new Submissions({
    leadership: {
      epoch: () => epoch,
      isTurningOver: () => false,
      confirm: () => Promise.resolve(true),
      subscribe: (listener) => {
        listeners.push(listener);
        return () => undefined;
      },
    },
    open: () => {
      inboxes.push(new HandInbox());
      return inboxes.at(-1)!;
    },
    read,
    take: (jobs) => {
      taken.push(jobs.map(({ id }) => id));
      return take(jobs);
    },
    clock,
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  const lead = (to: number | null): void => {
    epoch = to;
    for (const listener of listeners) listener();
  };
  return { clock, inboxes, taken, submissions, lead };
}

test("it reads only while it leads, with an inbox of its own each time", async () => {
  const { inboxes, lead } = stage();
  await settled();
  expect(inboxes).toHaveLength(0);
  lead(1);
  lead(1);
  await settled();
  expect(inboxes).toHaveLength(1);
  lead(null);
  await settled();
  expect(inboxes[0]!.isClosed).toBe(true);
  lead(2);
  await settled();
  expect(inboxes).toHaveLength(2);
});

test("what is found is taken over in order, settled, and the next is asked for", async () => {
  const { inboxes, lead, taken } = stage();
  lead(1);
  await settled();
  inboxes[0]!.waiting[0]!([submitted("a"), submitted("b")]);
  await settled();
  expect(taken).toEqual([["a", "b"]]);
  expect(inboxes[0]!.settledIds).toEqual(["a", "b"]);
  expect(inboxes[0]!.waiting).toHaveLength(2);
});

test("large ones go in appends of their own", async () => {
  const { inboxes, lead, taken } = stage();
  lead(1);
  await settled();
  inboxes[0]!.waiting[0]!([submitted("a", 100_000), submitted("b", 20_000), submitted("c", 200_000), submitted("d")]);
  await settled();
  expect(taken).toEqual([["a", "b"], ["c"], ["d"]]);
});

test("what could not be taken over is settled, so that it is told again, after a pause", async () => {
  const refusals = [new TenureError("OVERLOADED", "full")];
  const { inboxes, lead, taken, clock } = stage(() => {
    const refusal = refusals.pop();
    return refusal === undefined ? Promise.resolve() : Promise.reject(refusal);
  });
  lead(1);
  await settled();
  inboxes[0]!.waiting[0]!([submitted("a")]);
  await settled();
  expect(inboxes[0]!.waiting, "it does not ask at once").toHaveLength(1);
  await clock.advance(500);
  expect(inboxes[0]!.settledIds).toEqual(["a"]);
  inboxes[0]!.waiting[1]!([submitted("a")]);
  await settled();
  expect(taken).toEqual([["a"], ["a"]]);
});

test("F4: what keeps failing is tried less and less often, and at once again after a success", async () => {
  let isFull = true;
  const { inboxes, lead, taken, clock } = stage(() =>
    isFull ? Promise.reject(new TenureError("OVERLOADED", "full")) : Promise.resolve(),
  );
  lead(1);
  await settled();
  const [inbox] = inboxes as [HandInbox];
  const pauses: number[] = [];
  for (let at = 0; at < 7; at++) {
    inbox.waiting[at]!([submitted("a")]);
    await settled();
    const beganMs = clock.monotonicMs();
    while (inbox.waiting.length === at + 1) await clock.advance(100);
    pauses.push(clock.monotonicMs() - beganMs);
  }
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  isFull = false;
  inbox.waiting[7]!([submitted("a")]);
  await settled();
  expect(inbox.waiting).toHaveLength(9);
  expect(taken).toHaveLength(8);
});

/** Tells again what is there, as an inbox does. */
async function rounds(on: ReturnType<typeof stage>, there: () => readonly Submitted[], count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const [inbox] = on.inboxes as [HandInbox];
    const asked = inbox.waiting.length;
    inbox.waiting.at(-1)!(there());
    await settled();
    while (inbox.waiting.length === asked) await on.clock.advance(100);
  }
}

test("F4: one that can't be taken over holds up nobody, and in the end it is a job that has failed", async () => {
  const left = new Map(["a", "poison", "b"].map((id) => [id, submitted(id)]));
  const failed: TakenJob[] = [];
  const on = stage((jobs) => {
    const poison = jobs.find(({ id, problem }) => id === "poison" && problem === null);
    if (poison !== undefined) return Promise.reject(new TenureError("PAYLOAD_TOO_LARGE", "it is too large"));
    for (const job of jobs) {
      left.delete(job.id);
      if (job.problem !== null) failed.push(job);
    }
    return Promise.resolve();
  });
  on.lead(1);
  await settled();
  await rounds(on, () => [...left.values()], 1);
  expect([...left.keys()]).toEqual(["poison"]);
  expect(failed, "once may have been something else").toEqual([]);
  await rounds(on, () => [...left.values()], 2);
  expect(failed).toMatchObject([{ id: "poison", problem: "it is too large" }]);
  expect(left.size).toBe(0);
});

test("F4: one that can't even be read is a failed job too", async () => {
  const failed: TakenJob[] = [];
  const on = stage(
    (jobs) => {
      failed.push(...jobs);
      return Promise.resolve();
    },
    ({ id, by, payload }) => {
      if (payload !== "null") throw new RangeError("Maximum call stack size exceeded");
      return { id, by, spec: SPEC, problem: null };
    },
  );
  on.lead(1);
  await settled();
  await rounds(on, () => [submitted("deep")], 3);
  expect(failed).toMatchObject([{ id: "deep", problem: "Maximum call stack size exceeded" }]);
});

test("F4: one that comes back although it was taken over is not asked for in a loop", async () => {
  const on = stage();
  on.lead(1);
  await settled();
  const beganMs = on.clock.monotonicMs();
  await rounds(on, () => [submitted("a")], 4);
  expect(on.clock.monotonicMs() - beganMs).toBeGreaterThanOrEqual(500 + 1_000 + 2_000);
});

test("closed, it leaves the inbox and takes nothing more", async () => {
  const { inboxes, lead, taken, submissions } = stage();
  lead(1);
  await settled();
  await submissions.close();
  expect(inboxes[0]!.isClosed).toBe(true);
  lead(2);
  await settled();
  expect(inboxes).toHaveLength(1);
  expect(taken).toEqual([]);
});
