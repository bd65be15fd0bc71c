import { expect, it } from "vitest";
import { ManualClock } from "../../../loops/test-clock.ts";
import { PEER_BYTES_PER_S_MAX, PEER_EVENTS_PER_S_MAX } from "../limits.ts";
import { PeerQuota } from "./quota.ts";

it("a second's share of events and of bytes, and what is over fits after the time that it says", () => {
  const clock = new ManualClock();
  const quota = new PeerQuota(clock);
  expect(quota.take(PEER_EVENTS_PER_S_MAX - 1, 0)).toBe(0);
  expect(quota.take(1, PEER_BYTES_PER_S_MAX)).toBe(0);
  expect(quota.take(PEER_EVENTS_PER_S_MAX / 2, 0)).toBe(500);
  expect(quota.take(0, PEER_BYTES_PER_S_MAX / 4)).toBe(250);
  clock.nowMs += 125;
  expect(quota.take(0, PEER_BYTES_PER_S_MAX / 4)).toBe(125);
  clock.nowMs += 125;
  expect(quota.take(0, PEER_BYTES_PER_S_MAX / 4)).toBe(0);
});

it("what is never used is not saved up, and what is larger than a share is let in once it is full", () => {
  const clock = new ManualClock();
  const quota = new PeerQuota(clock);
  clock.nowMs += 60_000;
  expect(quota.take(3 * PEER_EVENTS_PER_S_MAX, 1)).toBe(0);
  expect(quota.take(1, 1)).toBe(2_001);
  clock.nowMs += 2_000;
  expect(quota.take(PEER_EVENTS_PER_S_MAX, 1), "it owes the rest").toBe(1_000);
});

it("says what it owes until what was refused would fit, and nothing where all was taken", () => {
  const clock = new ManualClock();
  const quota = new PeerQuota(clock);
  expect(quota.take(PEER_EVENTS_PER_S_MAX, 0)).toBe(0);
  expect(quota.owedMs).toBe(0);
  expect(quota.take(PEER_EVENTS_PER_S_MAX / 2, 0)).toBe(500);
  expect(quota.owedMs).toBe(500);
  clock.nowMs += 500;
  expect(quota.owedMs).toBe(0);
  expect(quota.take(PEER_EVENTS_PER_S_MAX / 2, 0)).toBe(0);
});
