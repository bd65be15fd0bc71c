// What requests and their answers may take of one turn of the loop (docs/decisions/0023-turns-by-time.md). All that have arrived
// together would be decided in the same turn, and all that end together be answered in it, as
// the polls of agents do: a heartbeat among them would wait for all. So whoever comes when the slice of a turn is over waits, in the
// order of arrival, for one of the turns that follow.

import { TURN_SLICE_MS } from "../../core/kit/limits.ts";
import type { Clock } from "../../ports/clock.ts";

export interface TurnShareOptions {
  readonly clock: Pick<Clock, "monotonicMs" | "setTimer">;
  /** By default a timer's: then the loop waits for a millisecond, with nothing to do. */
  readonly nextTurn?: ((begin: () => void) => void) | undefined;
}

export class TurnShare {
  readonly #clock: TurnShareOptions["clock"];
  readonly #nextTurn: (begin: () => void) => void;
  #waiting: (() => void)[] = [];
  #first = 0;
  /** Of this turn; null: nobody has come in it. */
  #untilMs: number | null = null;

  constructor({ clock, nextTurn }: TurnShareOptions) {
    this.#clock = clock;
    this.#nextTurn = nextTurn ?? ((begin) => void clock.setTimer(clock.monotonicMs(), begin));
  }

  /** Of those that wait and those that did: what this takes. */
  get kept(): number {
    return this.#waiting.length;
  }

  get waiting(): number {
    return this.#waiting.length - this.#first;
  }

  /** Null: it goes on at once; otherwise when this resolves. */
  enter(): Promise<void> | null {
    if (this.waiting === 0 && this.#hasTime()) return null;
    return new Promise((goOn) => void this.#waiting.push(goOn));
  }

  #hasTime(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (this.#untilMs !== null) return nowMs < this.#untilMs;
    this.#untilMs = nowMs + TURN_SLICE_MS;
    this.#nextTurn(() => this.#begin());
    return true;
  }

  #begin(): void {
    this.#untilMs = null;
    this.#letOneGo();
  }

  /** And the next one after it, where there is time left. */
  #letOneGo(): void {
    const goOn = this.#waiting[this.#first];
    if (goOn === undefined || !this.#hasTime()) return;
    this.#first++;
    // Also where somebody always waits: those that have gone on are kept no longer than as many as wait.
    if (this.#first * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    goOn();
    // After what was waited for, which is a microtask too.
    void Promise.resolve().then(() => this.#letOneGo());
  }
}
