import { describe, expect, it } from "vitest";
import { ManualClock } from "../../../loops/test-clock.ts";
import {
  EARLY_FORGIVEN_MAX,
  EARLY_FORGIVEN_MS,
  PEER_BYTES_PER_S_MAX,
  PEER_EVENTS_PER_S_MAX,
  PEER_REQUESTS_PER_S_MAX,
} from "../limits.ts";
import { PeerQuota } from "./quota.ts";

const LET_IN = { kind: "let-in" };

function stage() {
  const clock = new ManualClock();
  const quota = new PeerQuota(clock);
  return {
    clock,
    quota,
    delivery: (bytes: number) => quota.arrives(bytes, true),
    other: () => quota.arrives(0, false),
  };
}

it("a second's share of events, and what is over fits after the time that it says", () => {
  const { clock, quota } = stage();
  expect(quota.deliver(PEER_EVENTS_PER_S_MAX - 1)).toBe(0);
  expect(quota.deliver(1)).toBe(0);
  expect(quota.deliver(PEER_EVENTS_PER_S_MAX / 2)).toBe(500);
  clock.nowMs += 125;
  expect(quota.deliver(PEER_EVENTS_PER_S_MAX / 4)).toBe(125);
  clock.nowMs += 125;
  expect(quota.deliver(PEER_EVENTS_PER_S_MAX / 4)).toBe(0);
});

it("what is never used is not saved up, and what is larger than a share is let in once it is full", () => {
  const { clock, quota } = stage();
  clock.nowMs += 60_000;
  expect(quota.take(3 * PEER_EVENTS_PER_S_MAX)).toBe(0);
  expect(quota.take(1)).toBe(2_001);
  clock.nowMs += 2_000;
  expect(quota.take(PEER_EVENTS_PER_S_MAX), "it owes the rest").toBe(1_000);
});

it("a fine is owed", () => {
  const { quota, delivery } = stage();
  expect(quota.take(PEER_EVENTS_PER_S_MAX / 2)).toBe(0);
  quota.fine({ events: PEER_EVENTS_PER_S_MAX, bytes: 2 * PEER_BYTES_PER_S_MAX });
  expect(quota.take(PEER_EVENTS_PER_S_MAX / 2)).toBe(1_000);
  expect(delivery(PEER_BYTES_PER_S_MAX / 2)).toEqual({ kind: "limited", retryAfterMs: 1_500 });
});

it("a second's share of requests and of bytes, on whatever route", () => {
  const { clock, delivery, other } = stage();
  for (let sent = 0; sent < PEER_REQUESTS_PER_S_MAX; sent++) expect(sent % 2 ? other() : delivery(1)).toEqual(LET_IN);
  expect(other()).toEqual({ kind: "limited", retryAfterMs: 4 });
  clock.nowMs += 1_000;
  expect(delivery(PEER_BYTES_PER_S_MAX)).toEqual(LET_IN);
  expect(delivery(PEER_BYTES_PER_S_MAX / 2)).toEqual({ kind: "limited", retryAfterMs: 500 });
});

describe("whoever was asked to wait", () => {
  function waiting() {
    const parts = stage();
    parts.delivery(PEER_BYTES_PER_S_MAX);
    expect(parts.delivery(1_000)).toMatchObject({ kind: "limited" });
    return parts;
  }

  it("and does so, in whole seconds, is let in", () => {
    const { clock, delivery } = waiting();
    clock.nowMs += 1_000;
    expect(delivery(1_000)).toEqual(LET_IN);
  });

  it("may be a little too early by its own clock", () => {
    const { clock, delivery } = waiting();
    clock.nowMs += 1_000 - EARLY_FORGIVEN_MS;
    expect(delivery(1_000)).toEqual(LET_IN);
  });

  it("and does not, is refused a few times like the first time, and then is early, although it would fit", () => {
    const { clock, delivery } = waiting();
    clock.nowMs += 400;
    for (let sent = 0; sent < EARLY_FORGIVEN_MAX; sent++) {
      expect(delivery(1_000)).toEqual({ kind: "limited", retryAfterMs: 600 });
    }
    expect(delivery(1_000)).toEqual({ kind: "early" });
    clock.nowMs += 600;
    expect(delivery(1_000), "the time is over").toEqual(LET_IN);
  });

  it("with its deliveries may ask other things meanwhile, and the other way around", () => {
    const { other, delivery, clock } = waiting();
    expect(other()).toEqual(LET_IN);
    clock.nowMs += 1_000;
    for (let sent = 0; sent < PEER_REQUESTS_PER_S_MAX; sent++) other();
    expect(other()).toMatchObject({ kind: "limited" });
    clock.nowMs += 500;
    expect(other()).toMatchObject({ kind: "limited" });
    expect(delivery(1_000)).toEqual(LET_IN);
  });

  it("for too many events too; a stream that is too much makes nobody wait", () => {
    const { clock, quota, delivery } = stage();
    quota.take(PEER_EVENTS_PER_S_MAX);
    expect(quota.take(PEER_EVENTS_PER_S_MAX)).toBe(1_000);
    expect(delivery(1)).toEqual(LET_IN);
    expect(quota.deliver(PEER_EVENTS_PER_S_MAX)).toBe(1_000);
    expect(delivery(1)).toEqual({ kind: "limited", retryAfterMs: 1_000 });
    clock.nowMs += 1_000;
    expect(delivery(1)).toEqual(LET_IN);
  });
});
