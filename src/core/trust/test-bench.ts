// A machine on a bench: two clocks moved by hand, and what came of each step, told in short.

import { assertNever } from "../kit/assert.ts";
import { seededRandom } from "../kit/random.ts";
import { type Effect, type MachineInput, Machine } from "./machine.ts";
import type { Instant, Timing } from "./window.ts";

export const TIMING: Timing = {
  serverTimeoutMs: 6_000,
  marginMs: 1_500,
  heartbeatMs: 1_000,
  retryMinMs: 200,
  retryMaxMs: 800,
  holdBackMs: 500,
  releaseTimeoutMs: 1_000,
};

export class Bench {
  readonly machine: Machine;
  monotonicMs = 10_000;
  wallMs = 1_000_000;

  constructor(seed = 1, timing: Partial<Timing> = {}) {
    this.machine = new Machine({
      scope: "s",
      identity: "i",
      timing: { ...TIMING, ...timing },
      random: seededRandom(seed),
    });
  }

  get now(): Instant {
    return { monotonicMs: this.monotonicMs, wallMs: this.wallMs };
  }

  pass(monotonicMs: number, wallMs = monotonicMs): void {
    this.monotonicMs += monotonicMs;
    this.wallMs += wallMs;
  }

  effects(input: MachineInput): Effect[] {
    return this.machine.step(this.now, input);
  }

  /** Short words for what the step did: "acquire 1", "leading 7", "ended 7 expired". */
  step(input: MachineInput): string[] {
    return this.effects(input).map(told);
  }

  /** Time alone, after so much of it has passed. */
  after(monotonicMs: number, wallMs = monotonicMs): string[] {
    this.pass(monotonicMs, wallMs);
    return this.step({ kind: "time" });
  }

  /** In its first term, granted at this moment. */
  lead(epoch = 7): this {
    this.step({ kind: "want" });
    this.step({ kind: "granted", attempt: 1, epoch, sentAt: this.now });
    return this;
  }

  beaten(epoch: number, sentAt: Instant, resignRequested = false): string[] {
    return this.step({ kind: "beaten", epoch, sentAt, resignRequested });
  }
}

function told(effect: Effect): string {
  switch (effect.kind) {
    case "acquire":
      return `acquire ${effect.attempt}`;
    case "asked":
    case "beat":
    case "release":
      return `${effect.kind} ${effect.epoch}`;
    case "rewound":
      return `rewound ${effect.known} to ${effect.epoch}`;
    case "abandon":
    case "give-up":
      return effect.kind;
    case "transition": {
      const { transition } = effect;
      if (transition.kind === "campaigning") return "campaigning";
      const why = transition.kind === "ended" ? ` ${transition.reason}` : "";
      return `${transition.kind} ${transition.epoch}${why}`;
    }
    default:
      return assertNever(effect, "told");
  }
}
