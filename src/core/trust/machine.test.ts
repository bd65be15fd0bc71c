import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LAST_CHANCE_MS } from "../kit/limits.ts";
import type { MachineInput } from "./machine.ts";
import { Bench, TIMING } from "./test-bench.ts";
import { remainingMs } from "./window.ts";

const TRUST_MS = TIMING.serverTimeoutMs - TIMING.marginMs;

function open(bench: Bench): boolean {
  const { hold } = bench.machine;
  return hold !== null && remainingMs(hold.deadline, bench.monotonicMs, bench.wallMs) > 0;
}

describe("a campaign", () => {
  test("asks at once, and leads when it is granted", () => {
    const bench = new Bench();
    expect(bench.step({ kind: "want" })).toEqual(["campaigning", "acquire 1"]);
    expect(bench.step({ kind: "granted", attempt: 1, epoch: 7, sentAt: bench.now })).toEqual(["leading 7"]);
    expect(bench.machine.hold?.epoch).toBe(7);
  });

  test("a grant that comes after its window never becomes a term: it is abandoned, and asked for again", () => {
    const bench = new Bench();
    bench.step({ kind: "want" });
    const sentAt = bench.now;
    bench.pass(TRUST_MS);
    expect(bench.step({ kind: "granted", attempt: 1, epoch: 7, sentAt })).toEqual(["abandon"]);
    expect(bench.machine.hold).toBeNull();
    expect(bench.after(TIMING.retryMinMs)).toEqual(["acquire 2"]);
  });

  test("the window of a grant counts from its sending (trap 44)", () => {
    const bench = new Bench();
    bench.step({ kind: "want" });
    const sentAt = bench.now;
    bench.pass(TRUST_MS - 1);
    bench.step({ kind: "granted", attempt: 1, epoch: 7, sentAt });
    expect(open(bench)).toBe(true);
    bench.pass(1);
    expect(open(bench)).toBe(false);
  });

  test("a grant of an earlier attempt changes nothing", () => {
    const bench = new Bench();
    bench.step({ kind: "want" });
    bench.step({ kind: "refused", attempt: 1, retryable: true });
    bench.after(TIMING.retryMaxMs);
    expect(bench.step({ kind: "granted", attempt: 1, epoch: 7, sentAt: bench.now })).toEqual([]);
    expect(bench.step({ kind: "refused", attempt: 1, retryable: false })).toEqual([]);
    expect(bench.step({ kind: "granted", attempt: 2, epoch: 8, sentAt: bench.now })).toEqual(["leading 8"]);
  });

  test("backs off between half and the whole of a ceiling that doubles up to the largest, and starts anew after a grant", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const bench = new Bench(seed);
        bench.step({ kind: "want" });
        for (const [attempt, ceilingMs] of [200, 400, 800, 800, 800].entries()) {
          const refused = bench.step({ kind: "refused", attempt: attempt + 1, retryable: true });
          expect(refused).toEqual(["abandon"]);
          const waitMs = bench.machine.wakeMs - bench.monotonicMs;
          expect(waitMs).toBeGreaterThanOrEqual(ceilingMs / 2);
          expect(waitMs).toBeLessThanOrEqual(ceilingMs);
          expect(bench.after(waitMs)).toEqual([`acquire ${attempt + 2}`]);
        }
        bench.step({ kind: "granted", attempt: 6, epoch: 7, sentAt: bench.now });
        bench.step({ kind: "lost", epoch: 7, reason: "session-ended" });
        bench.step({ kind: "want" });
        bench.step({ kind: "refused", attempt: 7, retryable: true });
        expect(bench.machine.wakeMs - bench.monotonicMs).toBeLessThanOrEqual(TIMING.retryMinMs);
      }),
      { numRuns: 50 },
    );
  });

  test("epochs that went back never become a term, and end the campaign: the backend was restored", () => {
    const bench = new Bench().lead(7);
    bench.step({ kind: "lost", epoch: 7, reason: "session-ended" });
    bench.step({ kind: "want" });
    const sentAt = bench.now;
    expect(bench.step({ kind: "granted", attempt: 2, epoch: 7, sentAt })).toEqual(["abandon", "rewound 7 to 7"]);
    expect([bench.machine.hold, bench.machine.phase]).toEqual([null, "idle"]);
    bench.step({ kind: "heard", epoch: 20 });
    bench.step({ kind: "want" });
    expect(bench.step({ kind: "granted", attempt: 3, epoch: 19, sentAt })).toEqual(["abandon", "rewound 20 to 19"]);
    bench.step({ kind: "want" });
    expect(bench.step({ kind: "granted", attempt: 4, epoch: 21, sentAt })).toEqual(["leading 21"]);
  });

  test("a higher epoch that is heard of while a grant is on its way does not make a restored backend of it", () => {
    const bench = new Bench();
    bench.step({ kind: "want" });
    bench.step({ kind: "heard", epoch: 9 });
    expect(bench.step({ kind: "granted", attempt: 1, epoch: 8, sentAt: bench.now })).toEqual(["leading 8"]);
    expect(bench.step({ kind: "lost", epoch: 8, reason: "session-ended" })).toContain("ended 8 session-ended");
    bench.step({ kind: "want" });
    expect(bench.step({ kind: "granted", attempt: 2, epoch: 9, sentAt: bench.now })).toContain("rewound 9 to 9");
  });

  test("a grant that was lost before it arrived never becomes a term", () => {
    const bench = new Bench();
    bench.step({ kind: "want" });
    expect(bench.step({ kind: "lost", epoch: 7, reason: "session-ended" })).toEqual([]);
    expect(bench.step({ kind: "granted", attempt: 1, epoch: 7, sentAt: bench.now })).toEqual(["abandon"]);
    expect(bench.machine.hold).toBeNull();
  });

  test("a refusal that no retry mends gives up", () => {
    const bench = new Bench();
    bench.step({ kind: "want" });
    expect(bench.step({ kind: "refused", attempt: 1, retryable: false })).toEqual(["abandon", "give-up"]);
    expect(bench.machine.wakeMs).toBe(Infinity);
  });

  test("abandons what is under way when it is not wanted any more, at any moment", () => {
    const acquiring = new Bench();
    acquiring.step({ kind: "want" });
    expect(acquiring.step({ kind: "unwant" })).toEqual(["abandon"]);
    expect(acquiring.step({ kind: "granted", attempt: 1, epoch: 7, sentAt: acquiring.now })).toEqual([]);

    const waiting = new Bench();
    waiting.step({ kind: "want" });
    waiting.step({ kind: "refused", attempt: 1, retryable: true });
    expect(waiting.step({ kind: "unwant" })).toEqual([]);
    expect(waiting.after(60_000)).toEqual([]);
    expect(waiting.machine.phase).toBe("idle");
  });
});

describe("a term", () => {
  test("beats within 20 % of the interval, counted from the sending of the last", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const bench = new Bench(seed).lead();
        expect(bench.after(799)).toEqual([]);
        expect(bench.after(401)).toEqual(["beat 7"]);
        const sentAt = bench.now;
        bench.pass(300);
        expect(bench.beaten(7, sentAt)).toEqual([]);
        expect(bench.after(499)).toEqual([]);
        expect(bench.after(401)).toEqual(["beat 7"]);
      }),
      { numRuns: 50 },
    );
  });

  test("has one beat under way at a time", () => {
    const bench = new Bench().lead();
    expect(bench.after(1_200)).toEqual(["beat 7"]);
    expect(bench.after(1_200)).toEqual([]);
  });

  test("trap 44: a beat extends trust from its sending, not from its answer", () => {
    const bench = new Bench().lead();
    bench.after(1_200);
    const sentAt = bench.now;
    bench.pass(3_000);
    bench.beaten(7, sentAt);
    expect(bench.machine.hold?.deadline).toEqual({
      monotonicMs: sentAt.monotonicMs + TRUST_MS,
      wallMs: sentAt.wallMs + TRUST_MS,
    });
  });

  test("a beat that overtook a later one does not shorten trust", () => {
    const bench = new Bench().lead();
    const early = bench.now;
    bench.pass(1_000);
    const late = bench.now;
    bench.beaten(7, late);
    bench.beaten(7, early);
    expect(bench.machine.hold?.deadline.monotonicMs).toBe(late.monotonicMs + TRUST_MS);
  });

  test("is suspended when trust ends, and resumed by the next proof, in the same epoch", () => {
    const bench = new Bench().lead();
    expect(bench.after(1_200)).toEqual(["beat 7"]);
    expect(bench.step({ kind: "beat-failed", epoch: 7 })).toEqual([]);
    bench.pass(TRUST_MS - 1_200);
    expect(bench.step({ kind: "time" })).toEqual(["suspended 7", "beat 7"]);
    expect(bench.beaten(7, bench.now)).toEqual(["resumed 7"]);
    expect(open(bench)).toBe(true);
  });

  test("trap 42: beats that fail are sent again until the deadline, and end nothing", () => {
    const bench = new Bench().lead();
    let beats = 0;
    while (bench.monotonicMs < 10_000 + TRUST_MS - 250) {
      if (bench.after(50).includes("beat 7")) {
        beats++;
        expect(bench.step({ kind: "beat-failed", epoch: 7 })).toEqual([]);
      }
    }
    expect(beats).toBeGreaterThanOrEqual(10);
    expect(open(bench)).toBe(true);
  });

  test("trap 42: a loss that is known for sure ends it at once", () => {
    const bench = new Bench().lead();
    expect(bench.step({ kind: "lost", epoch: 7, reason: "superseded" })).toEqual(["ended 7 superseded", "abandon"]);
    expect(bench.machine.hold).toBeNull();
    expect(bench.step({ kind: "lost", epoch: 7, reason: "session-ended" })).toEqual([]);
  });

  test("without any proof it ends after the server timeout and one last chance", () => {
    const bench = new Bench().lead();
    bench.after(1_200);
    bench.after(TRUST_MS - 1_200);
    expect(bench.after(TIMING.marginMs)).toEqual([]);
    expect(bench.after(LAST_CHANCE_MS - 1)).toEqual([]);
    expect(bench.after(1)).toEqual(["ended 7 expired", "abandon"]);
  });

  test("a process that was stopped learns first that time has passed, and its last beat may save the term", () => {
    const bench = new Bench().lead();
    expect(bench.after(60_000)).toEqual(["suspended 7", "beat 7"]);
    const sentAt = bench.now;
    bench.pass(LAST_CHANCE_MS - 1);
    expect(bench.beaten(7, sentAt)).toEqual(["resumed 7"]);
    expect(bench.after(1)).toEqual([]);
  });

  test("takes time first: an answer that comes after the last chance saves nothing", () => {
    const bench = new Bench().lead();
    bench.after(60_000);
    const sentAt = bench.now;
    bench.pass(LAST_CHANCE_MS);
    expect(bench.beaten(7, sentAt)).toEqual(["ended 7 expired", "abandon"]);
  });

  test("takes time first: an answer that comes after the deadline is told as suspended, then resumed", () => {
    const bench = new Bench().lead();
    bench.after(1_200);
    const sentAt = bench.now;
    bench.pass(TRUST_MS - 1_200);
    expect(bench.beaten(7, sentAt)).toEqual(["suspended 7", "resumed 7", "beat 7"]);
  });

  test("answers of an earlier epoch change nothing, the request to resign neither", () => {
    const bench = new Bench().lead(8);
    bench.after(1_200);
    bench.pass(100);
    expect(bench.beaten(7, bench.now, true)).toEqual([]);
    expect(bench.step({ kind: "beat-failed", epoch: 7 })).toEqual([]);
    expect(bench.step({ kind: "lost", epoch: 7, reason: "lease-gone" })).toEqual([]);
    expect(bench.step({ kind: "resign", epoch: 7 })).toEqual([]);
    expect(bench.machine.hold?.provedAt.monotonicMs).toBe(10_000);
  });

  test("trap 45: a wall clock that jumps ahead closes it, and a proof of after the jump opens it", () => {
    const bench = new Bench().lead();
    expect(bench.after(1_200)).toEqual(["beat 7"]);
    const before = bench.now;
    bench.pass(0, 3_600_000);
    expect(open(bench)).toBe(false);
    // Sent before the jump: its window is over on the wall clock, so the next one decides.
    expect(bench.beaten(7, before)).toEqual(["suspended 7", "beat 7"]);
    bench.pass(1);
    expect(bench.beaten(7, bench.now)).toEqual(["resumed 7"]);
  });

  test("what was told as suspended is opened by a proof, not by a wall clock that is set right again", () => {
    const bench = new Bench().lead();
    expect(bench.after(1_200)).toEqual(["beat 7"]);
    expect(bench.after(0, 3_600_000)).toEqual(["suspended 7"]);
    expect(bench.after(10, 10 - 3_600_000)).toEqual([]);
    expect(open(bench)).toBe(false);
    expect(bench.beaten(7, bench.now)).toEqual(["resumed 7"]);
    expect(open(bench)).toBe(true);
  });

  test("trap 45: a wall clock that is set back keeps nothing open", () => {
    const bench = new Bench().lead();
    bench.pass(TRUST_MS, -3_600_000);
    expect(open(bench)).toBe(false);
    expect(bench.step({ kind: "time" })).toEqual(["suspended 7", "beat 7"]);
  });

  test("trap 45: after a sleep it is told that trust is gone within a heartbeat, also with a beat under way for ever", () => {
    const bench = new Bench().lead();
    expect(bench.after(1_200)).toEqual(["beat 7"]);
    bench.pass(0, 3_600_000);
    expect(bench.machine.wakeMs - bench.monotonicMs).toBeLessThanOrEqual(TIMING.heartbeatMs);
    bench.pass(bench.machine.wakeMs - bench.monotonicMs);
    expect(bench.step({ kind: "time" })).toEqual(["suspended 7"]);
    expect(bench.after(LAST_CHANCE_MS)).toEqual(["ended 7 expired", "abandon"]);
  });

  test("tells how long it was held", () => {
    const bench = new Bench().lead();
    bench.pass(734.4, 5);
    const [ended] = bench.effects({ kind: "lost", epoch: 7, reason: "session-ended" });
    expect(ended).toMatchObject({ transition: { heldMs: 734, atMs: 1_000_005, scope: "s", identity: "i" } });
  });
});

describe("letting go", () => {
  test("closes the gate before the release is sent", () => {
    const bench = new Bench().lead();
    expect(bench.step({ kind: "resign", epoch: 7 })).toEqual(["ended 7 resigned", "release 7"]);
    expect(bench.machine.hold).toBeNull();
    expect(bench.step({ kind: "released", epoch: 7 })).toEqual([]);
    expect(bench.machine.phase).toBe("idle");
  });

  test("trap 48: an operator's request is passed on once, and the hold goes on until the work has wound up", () => {
    const bench = new Bench().lead();
    bench.after(60_000);
    expect(bench.beaten(7, bench.now, true)).toEqual(["resumed 7", "asked 7"]);
    expect(bench.beaten(7, bench.now, true)).toEqual([]);
    expect(bench.step({ kind: "resign", epoch: 7 })).toEqual(["ended 7 asked", "release 7"]);
  });

  test("that fails, or takes too long, is abandoned", () => {
    const failed = new Bench().lead();
    failed.step({ kind: "resign", epoch: 7 });
    expect(failed.step({ kind: "release-failed", epoch: 7 })).toEqual(["abandon"]);

    const slow = new Bench().lead();
    slow.step({ kind: "resign", epoch: 7 });
    expect(slow.after(TIMING.releaseTimeoutMs - 1)).toEqual([]);
    expect(slow.after(1)).toEqual(["abandon"]);
    expect(slow.step({ kind: "released", epoch: 7 })).toEqual([]);
  });

  test("another goes first: the next campaign holds back", () => {
    const bench = new Bench().lead();
    bench.step({ kind: "resign", epoch: 7 });
    expect(bench.step({ kind: "want" })).toEqual(["campaigning"]);
    expect(bench.step({ kind: "released", epoch: 7 })).toEqual([]);
    expect(bench.after(TIMING.holdBackMs - 1)).toEqual([]);
    expect(bench.after(1)).toEqual(["acquire 2"]);
  });

  test("after a loss nothing holds it back", () => {
    const bench = new Bench().lead();
    bench.step({ kind: "lost", epoch: 7, reason: "session-ended" });
    expect(bench.step({ kind: "want" })).toEqual(["campaigning", "acquire 2"]);
  });
});

type Move =
  | { readonly kind: "pass"; readonly monotonicMs: number; readonly jumpMs: number }
  | {
      readonly kind: "input";
      readonly input: MachineInput["kind"];
      readonly stale: boolean;
      readonly ageMs: number;
      readonly flag: boolean;
    };

const moves = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("pass" as const),
      monotonicMs: fc.integer({ min: 0, max: 3_000 }),
      jumpMs: fc.constantFrom(0, 0, 0, 0, 5_000, -5_000),
    }),
    fc.record({
      kind: fc.constant("input" as const),
      input: fc.constantFrom<MachineInput["kind"][]>(
        "time",
        "want",
        "unwant",
        "granted",
        "granted",
        "granted",
        "refused",
        "beaten",
        "beaten",
        "beaten",
        "beat-failed",
        "lost",
        "resign",
        "released",
        "release-failed",
      ),
      stale: fc.boolean(),
      ageMs: fc.integer({ min: 0, max: 2_000 }),
      flag: fc.boolean(),
    }),
  ),
  { maxLength: 60 },
);

/** Two machines of one seed, of which the second never hears an answer that is late: both must do the same. */
class Pair {
  readonly one = new Bench(3);
  readonly two = new Bench(3);
  readonly transitions: string[] = [];
  attempt = 0;
  epoch = 100;
  wanted = false;
  released = 0;

  move(move: Move): void {
    if (move.kind === "pass") {
      for (const bench of [this.one, this.two]) bench.pass(move.monotonicMs, move.monotonicMs + move.jumpMs);
      return this.#step({ kind: "time" }, { kind: "time" });
    }
    const input = this.#input(move);
    if (input !== undefined) this.#step(input, this.#isLate(move) ? { kind: "time" } : input);
  }

  #isLate(move: Move & { kind: "input" }): boolean {
    return move.stale && !["time", "want", "unwant"].includes(move.input);
  }

  #input(move: Move & { kind: "input" }): MachineInput | undefined {
    const { machine } = this.one;
    const sentAt = { monotonicMs: this.one.monotonicMs - move.ageMs, wallMs: this.one.wallMs - move.ageMs };
    const attempt = move.stale ? this.attempt - 1 : this.attempt;
    const epoch = (machine.hold?.epoch ?? this.released) - (move.stale ? 1 : 0);
    switch (move.input) {
      case "want":
        return this.wanted || machine.phase === "leading" ? undefined : { kind: "want" };
      case "time":
      case "unwant":
        return { kind: move.input };
      case "granted":
        return { kind: "granted", attempt, epoch: ++this.epoch * 10, sentAt };
      case "refused":
        return { kind: "refused", attempt, retryable: move.flag };
      case "beaten":
        return { kind: "beaten", epoch, sentAt, resignRequested: move.flag && move.ageMs > 1_500 };
      case "lost":
        return { kind: "lost", epoch, reason: "session-ended" };
      default:
        return { kind: move.input, epoch };
    }
  }

  #step(input: MachineInput, other: MachineInput): void {
    const effects = this.one.step(input);
    expect(this.two.step(other)).toEqual(effects);
    expect(this.two.machine.wakeMs).toBe(this.one.machine.wakeMs);
    if (input.kind === "want") this.wanted = true;
    if (input.kind === "unwant" || effects.includes("give-up")) this.wanted = false;
    for (const effect of effects) {
      const [word, number] = effect.split(" ");
      if (word === "acquire") this.attempt = Number(number);
      if (word === "release") this.released = Number(number);
      if (word === "leading") this.wanted = false;
      if (["campaigning", "leading", "suspended", "resumed", "ended"].includes(word!)) this.transitions.push(word!);
    }
  }
}

describe("whatever happens, in whatever order", () => {
  test("transitions follow their grammar, late answers change nothing, and an open window is not told as suspended", () => {
    fc.assert(
      fc.property(moves, (list) => {
        const pair = new Pair();
        for (const move of list) {
          pair.move(move);
          const { machine } = pair.one;
          const last = pair.transitions.at(-1);
          expect(machine.hold !== null).toBe(last === "leading" || last === "suspended" || last === "resumed");
          if (machine.hold !== null) expect(open(pair.one)).toBe(last !== "suspended");
        }
        const story = pair.transitions.join(" ");
        expect(story === "" ? "" : `${story} `).toMatch(
          /^((campaigning )+(leading (suspended (resumed )?)*(ended (?=campaigning|$))?)?)*$/,
        );
        expect(story).not.toMatch(/resumed resumed|suspended suspended|leading resumed/);
      }),
      { numRuns: 300 },
    );
  });
});
