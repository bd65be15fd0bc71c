// So much of large requests in each turn of the loop, and no more: to decide and write a thousand jobs takes some thirty
// milliseconds, and several requests that arrive together would keep the node from its heartbeats for as long as all of them
// take.

import type { Clock } from "../../ports/clock.ts";
import { SUBMITTED_LARGE_MIN, SUBMITTED_PER_TURN } from "./limits.ts";

interface Waiting {
  readonly jobs: number;
  readonly resume: () => void;
}

export class Pace {
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  /** Of those let through in this turn. */
  #jobs = 0;
  #isTurnAwaited = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Null: now. Else it resolves in a turn in which there is room for so many, in the order in which they came. */
  turn(jobs: number): Promise<void> | null {
    if (jobs < SUBMITTED_LARGE_MIN) return null;
    if (this.#waiting.length === 0 && this.#hasRoomFor(jobs)) {
      this.#take(jobs);
      return null;
    }
    return new Promise((resume) => void this.#waiting.push({ jobs, resume }));
  }

  #hasRoomFor(jobs: number): boolean {
    return this.#jobs === 0 || this.#jobs + jobs <= SUBMITTED_PER_TURN;
  }

  #take(jobs: number): void {
    this.#jobs += jobs;
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    this.#clock.setTimer(this.#clock.monotonicMs(), () => {
      this.#isTurnAwaited = false;
      this.#jobs = 0;
      while (this.#waiting.length > 0 && this.#hasRoomFor(this.#waiting[0]!.jobs)) {
        const { jobs: next, resume } = this.#waiting.shift()!;
        this.#take(next);
        resume();
      }
    });
  }
}
