import { describe, expect, test } from "vitest";
import { NotLeaderError, type NotLeaderReason } from "../core/kit/errors.ts";
import type { Leader } from "../ports/elector.ts";
import { Gate } from "./gate.ts";
import { HandClock } from "../loops/test-clock.ts";

function gateFor(epoch: number | null, leader: Leader | null = null, lastEpoch = epoch ?? 0) {
  const clock = new HandClock();
  const blocked: string[] = [];
  const { monotonicMs, wallMs } = clock.now;
  const deadline = { monotonicMs: monotonicMs + 4_500, wallMs: wallMs + 4_500 };
  const hold = epoch === null ? null : { epoch, deadline };
  const gate = new Gate({ scope: "payer", clock, hold, leader, lastEpoch, blocked: (effect) => blocked.push(effect) });
  return { gate, clock, blocked };
}

function refusal(check: () => unknown): NotLeaderError {
  try {
    check();
  } catch (error) {
    if (NotLeaderError.is(error)) return error;
    throw error;
  }
  throw new Error("the gate was open");
}

describe("a gate", () => {
  test("gives the epoch while it is open", () => {
    const { gate, blocked } = gateFor(7);
    expect(gate.requireLeader()).toBe(7);
    expect(gate.requireLeader({ forMs: 4_500, effect: "pay" })).toBe(7);
    expect(() => gate.ensureEpoch(7)).not.toThrow();
    expect([gate.isLeader, gate.remainingMs]).toEqual([true, 4_500]);
    expect(blocked).toEqual([]);
  });

  test("trap 34: reads both clocks at each call, so it is closed in the call after a stop", () => {
    const { gate, clock } = gateFor(7);
    clock.reads = 0;
    gate.requireLeader();
    expect(clock.reads).toBe(2);
    clock.stop(4_500);
    expect(refusal(() => gate.requireLeader()).reason).toBe("suspended");
    expect([gate.isLeader, gate.remainingMs]).toEqual([false, 0]);
  });

  test("trap 45: is closed by a wall clock that jumped, and opens again when it was set right", () => {
    const { gate, clock } = gateFor(7);
    clock.jumpWall(3_600_000);
    expect(gate.isLeader).toBe(false);
    clock.jumpWall(-3_600_000);
    expect(gate.isLeader).toBe(true);
  });

  const cases: readonly (readonly [NotLeaderReason, string, RegExp])[] = [
    ["not-leading", "nothing is held", /"payer" .*: this instance does not lead/],
    ["suspended", "trust has run out", /epoch 7 can't be trusted/],
    ["too-short", "less is left than is needed", /4500 ms of trust are left and 4501 ms are needed/],
    ["other-epoch", "the work is of another epoch", /leads in epoch 7, and the work belongs to epoch 6/],
  ];

  test.each(cases)("says %s where %s, and counts it", (reason, _where, message) => {
    const { gate, clock, blocked } = gateFor(reason === "not-leading" ? null : 7);
    if (reason === "suspended") clock.stop(5_000);
    const forMs = reason === "too-short" ? 4_501 : undefined;
    const epoch = reason === "other-epoch" ? 6 : 7;
    const error = refusal(() => gate.ensureEpoch(epoch, { forMs, effect: "pay" }));
    expect(error.reason).toBe(reason);
    expect(error.code).toBe("NOT_LEADER");
    expect(error.message).toMatch(message);
    expect(error.message).toContain("(pay)");
    expect(blocked).toEqual(["pay"]);
  });

  test.each([Number.NaN, Infinity, 4_500.001])("a forMs of %s closes it", (forMs) => {
    expect(refusal(() => gateFor(7).gate.requireLeader({ forMs })).reason).toBe("too-short");
  });

  test("names who leads, as far as it is known", () => {
    const leader = { epoch: 9, identity: "b", metadata: {} };
    const { gate, blocked } = gateFor(null, leader);
    const error = refusal(() => gate.requireLeader());
    expect(error.leader).toEqual(leader);
    expect(error.message).toMatch(/this instance does not lead, and b leads in epoch 9/);
    expect(blocked).toEqual(["unnamed"]);
  });

  test("says of its own last term that it is over, and not that itself leads", () => {
    const heard = { epoch: 4, identity: "a", metadata: {} };
    const error = refusal(() => gateFor(null, heard, 4).gate.requireLeader());
    expect(error.message).toBe(
      'not allowed to act for scope "payer": this instance\'s term of epoch 4 is over. Nothing was done; wait for the next term.',
    );
    expect(error.leader).toBeNull();
    const next = refusal(() => gateFor(null, { ...heard, epoch: 5, identity: "b" }, 4).gate.requireLeader());
    expect(next.message).toMatch(/term of epoch 4 is over, and b leads in epoch 5/);
    expect(next.leader).toMatchObject({ identity: "b" });
  });
});
