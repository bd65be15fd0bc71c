// One loop gives jobs to the jobs' log, and misses nobody who wakes it.

import { expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import { Deliveries } from "./deliveries.ts";
import { TXN_RETRY_MS_MAX, TXN_RETRY_MS_MIN } from "./limits.ts";

type Delivered = "some" | "none" | "failed";

function bench(deliver: (call: number) => Delivered) {
  const clock = new ManualClock();
  const calls: { readonly few: boolean; readonly atMs: number }[] = [];
  const random = seededRandom("deliveries");
  const deliveries = new Deliveries({
    clock,
    random,
    deliver: async (few) => {
      calls.push({ few, atMs: clock.nowMs - 1_000 });
      const outcome = deliver(calls.length);
      if (outcome === "failed") throw new Error("no room");
      return outcome;
    },
  });
  return { clock, calls, deliveries };
}

it("goes on until there is nothing, once however often it is woken, and hears who wakes it at the end", async () => {
  const { clock, calls, deliveries } = bench((call) => {
    if (call === 3) deliveries.wake();
    return call < 3 ? "some" : "none";
  });
  deliveries.wake();
  deliveries.wake();
  await clock.advance(60_000);
  expect(calls.map(({ atMs }) => atMs)).toEqual([0, 0, 0, 0]);
  deliveries.wake();
  await clock.advance(60_000);
  expect(calls).toHaveLength(5);
});

it("tries few of them after a failure, later each time, and all again once it has worked", async () => {
  const { clock, calls, deliveries } = bench((call) => (call <= 8 ? "failed" : call === 9 ? "some" : "none"));
  deliveries.wake();
  await clock.advance(60_000);
  expect(calls.map(({ few }) => few)).toEqual([false, ...Array<boolean>(8).fill(true), false]);
  const pauses = calls.slice(1, 9).map(({ atMs }, at) => atMs - calls[at]!.atMs);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(TXN_RETRY_MS_MIN);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(TXN_RETRY_MS_MAX);
  expect(Math.max(...pauses)).toBeGreaterThan(4 * TXN_RETRY_MS_MIN);
});

it("ends with the leadership", async () => {
  const { clock, calls, deliveries } = bench(() => "failed");
  deliveries.wake();
  await clock.advance(10_000);
  const { length } = calls;
  deliveries.end();
  await clock.advance(60_000);
  expect([calls.length, clock.pending]).toEqual([length, 0]);
});
