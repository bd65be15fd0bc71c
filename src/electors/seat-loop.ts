// The loop between the machine and a seat: steps inputs one at a time, does what the machine decides, and tells it what
// came of it. It has no opinion of its own about time or trust.
// Invariants: inputs are stepped in order, also those that an effect causes; a timer is armed for the machine's next
// wish and for nothing else.

import { assertNever } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { Effect, MachineInput, Machine } from "../core/trust/machine.ts";
import type { Transition } from "../core/trust/transitions.ts";
import { type Instant, remainingMs } from "../core/trust/window.ts";
import type { Seat } from "../ports/backends/backend.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Counters } from "./stats.ts";

export interface SeatLoopOptions {
  readonly clock: Clock;
  readonly machine: Machine;
  readonly counters: Counters;
  readonly transition: (transition: Transition) => void;
  /** An operator wants the leader to wind up and resign. */
  readonly asked: (epoch: number) => void;
  /** The backend refused for good. */
  readonly refused: (error: unknown) => void;
  /** For the operator's log. */
  readonly complain: (what: string, error: unknown) => void;
  /** A beat was answered: whatever there was to complain about is over. */
  readonly content: () => void;
}

export class SeatLoop {
  readonly #options: SeatLoopOptions;
  readonly #clock: Clock;
  readonly #machine: Machine;
  readonly #counters: Counters;
  readonly #inputs: MachineInput[] = [];
  readonly #releases: (() => void)[] = [];
  #seat: Seat | undefined;
  #stepping = false;
  #timer: Timer | undefined;
  #attempt = new AbortController();
  #refusal: unknown;

  constructor(options: SeatLoopOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#machine = options.machine;
    this.#counters = options.counters;
  }

  /** Before the first input. The seat is made with a way to report losses here, hence after this loop. */
  sit(seat: Seat): void {
    this.#seat = seat;
  }

  submit(input: MachineInput): void {
    this.#inputs.push(input);
    if (this.#stepping) return;
    this.#stepping = true;
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) {
        for (const effect of this.#machine.step(this.#now(), next)) this.#perform(effect);
      }
    } finally {
      this.#stepping = false;
      if (this.#machine.phase !== "releasing") for (const resolve of this.#releases.splice(0)) resolve();
      this.#arm();
    }
  }

  /** Ends the term of this epoch, if it is the present one. Resolves when nothing is being let go any more. */
  resign(epoch: number): Promise<void> {
    this.submit({ kind: "resign", epoch });
    return this.released();
  }

  released(): Promise<void> {
    // Called from inside a step, the resignation is still queued: then it is not over either.
    if (this.#machine.phase !== "releasing" && !this.#stepping) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#releases.push(resolve);
    return promise;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#timer?.cancel();
    const atMs = this.#machine.wakeMs;
    this.#timer = atMs === Infinity ? undefined : this.#clock.setTimer(atMs, () => this.submit({ kind: "time" }));
  }

  #now(): Instant {
    return { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case "acquire":
        return this.#acquire(effect.attempt);
      case "abandon":
        this.#attempt.abort();
        return this.#seat?.abandon();
      case "beat":
        return this.#beat(effect.epoch);
      case "release":
        return this.#release(effect.epoch);
      case "asked":
        return this.#options.asked(effect.epoch);
      case "give-up":
        return this.#options.refused(this.#refusal);
      case "rewound":
        return this.#options.refused(this.#rewound(effect.epoch, effect.known));
      case "transition":
        return this.#options.transition(effect.transition);
      default:
        return assertNever(effect, "SeatLoop.perform");
    }
  }

  #rewound(epoch: number, known: number): TenureError {
    return new TenureError(
      "CLUSTER_MISMATCH",
      `epoch ${epoch} was granted after epoch ${known} had been in force: the backend was restored from an older state, or is another one. Nobody acts in epoch ${epoch} here. Make sure that whatever compares epochs is above ${known} or starts anew with the restored state, then restart this process.`,
    );
  }

  #acquire(attempt: number): void {
    this.#counters.attempts++;
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    this.#seat?.acquire(signal).then(
      ({ epoch, sentAt }) => this.submit({ kind: "granted", attempt, epoch, sentAt }),
      (error: unknown) => {
        const retryable = TenureError.is(error) && error.retryable;
        // What ends the campaign is thrown at whoever campaigns, who has the better words for it.
        if (!signal.aborted && retryable) this.#options.complain("could not acquire the scope", error);
        this.#refusal = error;
        this.submit({ kind: "refused", attempt, retryable });
      },
    );
  }

  #beat(epoch: number): void {
    const sentMs = this.#clock.monotonicMs();
    this.#seat?.beat(epoch).then(
      ({ sentAt, resignRequested = false }) => {
        this.#counters.heartbeatUpdateMs.record(this.#clock.monotonicMs() - sentMs);
        this.#counters.deadlineSlackMs.record(this.#slackMs());
        this.#options.content();
        this.submit({ kind: "beaten", epoch, sentAt, resignRequested });
      },
      (error: unknown) => {
        if (this.#machine.hold?.epoch === epoch) this.#options.complain("a heartbeat was not answered", error);
        this.submit({ kind: "beat-failed", epoch });
      },
    );
  }

  #slackMs(): number {
    const { hold } = this.#machine;
    return hold === null ? 0 : remainingMs(hold.deadline, this.#clock.monotonicMs(), this.#clock.wallMs());
  }

  #release(epoch: number): void {
    this.#seat?.release(epoch).then(
      () => this.submit({ kind: "released", epoch }),
      (error: unknown) => {
        this.#options.complain("letting go of the scope was not confirmed; its session is dropped instead", error);
        this.submit({ kind: "release-failed", epoch });
      },
    );
  }
}
