import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Guard, type GuardEffect, type GuardInput, type GuardPlan, type Moment, remainingMs } from "./guard.ts";

const STOP: GuardPlan = { onLose: "stop", graceMs: 2_000 };
const KILL: GuardPlan = { onLose: "kill", graceMs: 2_000 };

/** A wall clock that differs from the monotonic one by a constant. */
const WALL = 1_000_000;
const at = (ms: number, wallMs = ms + WALL): Moment => ({ monotonicMs: ms, wallMs });

function running(plan: GuardPlan, deadlineMs = 4_500): Guard {
  const guard = new Guard(plan);
  expect(guard.step(at(0), { kind: "start", deadline: at(deadlineMs) })).toEqual([{ kind: "spawn" }]);
  return guard;
}

const signals = (effects: readonly GuardEffect[]): string[] =>
  effects.flatMap((one) => (one.kind === "signal" ? [one.signal] : []));

describe("the deadline", () => {
  it("brings SIGTERM when only the grace is left, and SIGKILL at the deadline", () => {
    const guard = running(STOP);
    expect(guard.untilMs(at(0))).toBe(2_500);
    expect(guard.step(at(2_499), { kind: "tick" })).toEqual([]);
    expect(guard.step(at(2_500), { kind: "tick" })).toEqual([
      { kind: "winding-up", why: "deadline" },
      { kind: "signal", signal: "SIGTERM" },
    ]);
    expect(guard.untilMs(at(2_500))).toBe(2_000);
    expect(guard.step(at(4_499), { kind: "tick" })).toEqual([]);
    expect(signals(guard.step(at(4_500), { kind: "tick" }))).toEqual(["SIGKILL"]);
    expect(guard.step(at(4_510), { kind: "gone" })).toEqual([{ kind: "done", why: "deadline" }]);
  });

  it("brings SIGKILL alone with `kill`", () => {
    const guard = running(KILL);
    expect(guard.untilMs(at(0))).toBe(4_500);
    expect(guard.step(at(4_499), { kind: "tick" })).toEqual([]);
    expect(signals(guard.step(at(4_500), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("moves with each proof, and never back", () => {
    const guard = running(STOP);
    guard.step(at(1_000), { kind: "deadline", deadline: at(5_500) });
    guard.step(at(1_001), { kind: "deadline", deadline: at(5_400) });
    expect(guard.untilMs(at(1_001))).toBe(2_499);
    expect(guard.step(at(3_499), { kind: "tick" })).toEqual([]);
    expect(signals(guard.step(at(3_500), { kind: "tick" }))).toEqual(["SIGTERM"]);
  });

  it("trap 45: counts on the wall clock too, which goes on while the machine sleeps", () => {
    const guard = running(KILL);
    expect(signals(guard.step(at(10, WALL + 4_500), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("trap 45: is not moved by a wall clock that is set back", () => {
    const guard = running(KILL);
    expect(signals(guard.step(at(4_500, WALL - 3_600_000), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("trap 49: a guard that was frozen itself kills at once, whatever the first input is that it sees", () => {
    const inputs: GuardInput[] = [{ kind: "tick" }, { kind: "forward", signal: "SIGHUP" }, { kind: "lost" }];
    for (const input of inputs) expect(signals(running(STOP).step(at(60_000), input)).at(-1)).toBe("SIGKILL");
  });

  it("does not run on after SIGTERM, even if leadership is proven again", () => {
    const guard = running(STOP);
    guard.step(at(2_500), { kind: "tick" });
    guard.step(at(2_600), { kind: "deadline", deadline: at(7_000) });
    expect(guard.step(at(4_499), { kind: "tick" })).toEqual([]);
    expect(signals(guard.step(at(4_500), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("too near, nothing is started", () => {
    const guard = new Guard(STOP);
    expect(guard.step(at(0), { kind: "start", deadline: at(2_000) })).toEqual([{ kind: "done", why: "too-late" }]);
  });
});

describe("a loss that is known for sure", () => {
  it("brings SIGTERM at once and SIGKILL after the grace", () => {
    const guard = running(STOP, 10_000);
    expect(signals(guard.step(at(1_000), { kind: "lost" }))).toEqual(["SIGTERM"]);
    expect(guard.untilMs(at(1_000))).toBe(2_000);
    expect(signals(guard.step(at(3_000), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("brings SIGKILL earlier if the deadline is earlier", () => {
    const guard = running(STOP, 4_500);
    guard.step(at(2_400), { kind: "lost" });
    expect(guard.untilMs(at(2_400))).toBe(2_000);
    const late = running({ onLose: "stop", graceMs: 2_000 }, 2_500);
    late.step(at(400), { kind: "stop", signal: "SIGINT", withinMs: 60_000 });
    expect(signals(late.step(at(2_500), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("brings SIGKILL at once with `kill`", () => {
    expect(signals(running(KILL).step(at(1), { kind: "lost" }))).toEqual(["SIGKILL"]);
  });

  it("shortens a friendly stop", () => {
    const guard = running(STOP, 60_000);
    expect(signals(guard.step(at(0), { kind: "stop", signal: "SIGINT", withinMs: 30_000 }))).toEqual(["SIGINT"]);
    guard.step(at(1_000), { kind: "lost" });
    expect(guard.untilMs(at(1_000))).toBe(2_000);
  });
});

describe("the end", () => {
  it("a friendly stop may last longer than the first deadline while leadership is proven again", () => {
    const guard = running(STOP);
    guard.step(at(0), { kind: "stop", signal: "SIGTERM", withinMs: 30_000 });
    guard.step(at(4_000), { kind: "deadline", deadline: at(8_500) });
    expect(guard.step(at(4_500), { kind: "tick" })).toEqual([]);
    expect(signals(guard.step(at(8_500), { kind: "tick" }))).toEqual(["SIGKILL"]);
  });

  it("trap 48: the end of the supervisor kills at once", () => {
    const guard = running(STOP);
    expect(signals(guard.step(at(1), { kind: "supervisor-gone" }))).toEqual(["SIGKILL"]);
    expect(guard.step(at(2), { kind: "gone" })).toEqual([{ kind: "done", why: "supervisor-gone" }]);
  });

  it("trap 48: a guard without supervisor starts nothing", () => {
    const guard = new Guard(STOP);
    expect(guard.step(at(0), { kind: "supervisor-gone" })).toEqual([{ kind: "done", why: "supervisor-gone" }]);
    expect(guard.step(at(1), { kind: "start", deadline: at(9_000) })).toEqual([]);
  });

  it("of the command leaves nobody of its group behind", () => {
    const guard = running(STOP);
    expect(signals(guard.step(at(10), { kind: "ended" }))).toEqual(["SIGTERM"]);
    expect(signals(guard.step(at(2_010), { kind: "tick" }))).toEqual(["SIGKILL"]);
    expect(signals(guard.step(at(2_020), { kind: "tick" }))).toEqual(["SIGKILL"]);
    expect(guard.step(at(2_030), { kind: "gone" })).toEqual([{ kind: "done", why: "ended" }]);
  });
});

const FORWARDED = { kind: "forward", signal: "SIGHUP" } as const;
const anInput: fc.Arbitrary<GuardInput> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: "tick" } as const) },
  {
    weight: 6,
    arbitrary: fc.integer({ min: -50, max: 300 }).map((ms) => ({ kind: "deadline", deadline: at(ms) }) as const),
  },
  fc.constantFrom({ kind: "lost" } as const, { kind: "kill" } as const, FORWARDED, { kind: "ended" } as const),
  fc.constantFrom({ kind: "supervisor-gone" } as const, { kind: "gone" } as const),
  fc.nat(200).map((withinMs) => ({ kind: "stop", signal: "SIGINT", withinMs }) as const),
);

const aHistory = fc.record({
  plan: fc.record({ onLose: fc.constantFrom("stop", "kill"), graceMs: fc.nat(100) }),
  firstMs: fc.integer({ min: -10, max: 300 }),
  steps: fc.array(
    // Time that passes on each clock: a wall clock may be set, either way.
    fc.tuple(fc.nat(120), fc.oneof(fc.constant(null), fc.integer({ min: -200, max: 200 })), anInput),
    { maxLength: 30 },
  ),
});

it("no history leaves a command alive past its deadline, by either clock, or after its supervisor", () => {
  let killed = 0;
  fc.assert(
    fc.property(aHistory, ({ plan, firstMs, steps }) => {
      const guard = new Guard(plan);
      let now = at(0);
      const first = guard.step(now, { kind: "start", deadline: at(firstMs) });
      let alive = first.some((one) => one.kind === "spawn");
      expect(alive).toBe(remainingMs(at(firstMs), now) > (plan.onLose === "stop" ? plan.graceMs : 0));
      // The dumb oracle: the largest deadline that was told in time, and whether it is over.
      let deadline = at(firstMs);
      let mustBeDead = false;
      for (const [passedMs, jumpMs, given] of steps) {
        now = { monotonicMs: now.monotonicMs + passedMs, wallMs: now.wallMs + passedMs + (jumpMs ?? 0) };
        const input =
          given.kind === "deadline"
            ? {
                ...given,
                deadline: {
                  monotonicMs: now.monotonicMs + given.deadline.monotonicMs,
                  wallMs: now.wallMs + given.deadline.monotonicMs,
                },
              }
            : given;
        const left = guard.untilMs(now);
        if (left !== null) expect(left).toBeLessThanOrEqual(remainingMs(deadline, now));
        const effects = guard.step(now, input);
        if (!alive) {
          expect(effects).toEqual([]);
          continue;
        }
        if (input.kind === "gone") {
          expect(effects.at(-1)?.kind).toBe("done");
          alive = false;
          continue;
        }
        if (input.kind === "deadline" && input.deadline.monotonicMs > deadline.monotonicMs && !mustBeDead)
          ({ deadline } = input);
        mustBeDead ||= input.kind === "supervisor-gone" || remainingMs(deadline, now) === 0;
        if (mustBeDead) expect(guard.phase).toBe("killed");
        if (guard.phase === "killed") killed++;
        expect(signals(effects).filter((one) => !["SIGTERM", "SIGKILL", "SIGINT", "SIGHUP"].includes(one))).toEqual([]);
        expect(effects.some((one) => one.kind === "spawn" || one.kind === "done")).toBe(false);
      }
    }),
    { numRuns: 2_000 },
  );
  expect(killed).toBeGreaterThan(500);
});
