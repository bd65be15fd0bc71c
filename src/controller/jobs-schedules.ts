// When schedules fire, on the leader. For each the next time is known; one is looked at anew when it has changed, has fired, or
// was refused. Times that passed are caught up with as the schedule says (core/jobs/catch-up.ts).
//
//   to be looked at ──▶ waiting for its next time ──due──▶ fired: commands are run ──applied, or after a while──▶ to be looked at
//
// All of it goes by the wall clock: people wrote these times down. A clock that is set back fires nothing twice, because the
// book knows up to which time each has fired; one that is set forward passes times, and these are missed ones.
//
// Invariant: a turn looks at PER_TURN_MAX schedules at most; finding a time takes microseconds, and there may be ten thousand.

import { dueTimes } from "../core/jobs/index.ts";
import type { CommandOf } from "../core/jobs/index.ts";
import type { Clock } from "../ports/clock.ts";
import type { JobsFold } from "./jobs-fold.ts";

const PER_TURN_MAX = 32;
/** What was fired and is not applied by then was refused (there is no room for the job), and is fired again. */
const RETRY_MS = 10_000;

export interface JobsSchedulesOptions {
  readonly clock: Clock;
  readonly fold: JobsFold;
  readonly nextFire: (cron: string, timeZone: string, afterMs: number) => number | null;
  readonly run: (command: CommandOf<"fire-schedule">) => void;
}

export class JobsSchedules {
  readonly #options: JobsSchedulesOptions;
  readonly #unseen: Set<string>;
  /** By name: the next time, in wall time. Only those that have one. */
  readonly #next = new Map<string, number>();
  /** By name: when it is looked at again, on the monotonic clock. */
  readonly #fired = new Map<string, number>();
  /** The least of all; null: not known. */
  #firstMs: number | null = null;

  constructor(options: JobsSchedulesOptions) {
    this.#options = options;
    this.#unseen = new Set(options.fold.book.applied.scheduleNames());
  }

  /** An event about it was applied. */
  changed(name: string): void {
    this.#unseen.add(name);
    this.#fired.delete(name);
    this.#set(name, null);
  }

  /** In how long something is to be done. */
  inMs(): number {
    if (this.#unseen.size > 0) return 0;
    const { clock } = this.#options;
    if (this.#firstMs === null) {
      this.#firstMs = Infinity;
      for (const atMs of this.#next.values()) if (atMs < this.#firstMs) this.#firstMs = atMs;
    }
    let inMs = this.#firstMs - clock.wallMs();
    for (const atMs of this.#fired.values()) inMs = Math.min(inMs, atMs - clock.monotonicMs());
    return inMs;
  }

  /** Does what is to be done, at most so much as a turn may take. */
  look(): void {
    const { clock } = this.#options;
    const [wallMs, nowMs] = [clock.wallMs(), clock.monotonicMs()];
    for (const [name, atMs] of this.#fired) if (atMs <= nowMs) this.changed(name);
    if (this.#firstMs === null || this.#firstMs <= wallMs) {
      for (const [name, atMs] of this.#next) if (atMs <= wallMs) this.changed(name);
    }
    let left = PER_TURN_MAX;
    for (const name of this.#unseen) {
      if (--left < 0) return;
      this.#unseen.delete(name);
      this.#lookAt(name, wallMs);
    }
  }

  #lookAt(name: string, wallMs: number): void {
    const { clock, fold, nextFire, run } = this.#options;
    const known = fold.book.applied.schedule(name);
    if (known === null || known.schedule.paused) return;
    const { cron, timeZone, catchUp } = known.schedule;
    const next = (afterMs: number): number | null => {
      try {
        return nextFire(cron, timeZone, afterMs);
      } catch {
        // Whoever took it knew this zone, and this node does not. It does not fire here; everything else goes on.
        return null;
      }
    };
    const { fire, missedMs } = dueTimes(catchUp, next, known.firedUpToMs, wallMs);
    if (fire.length === 0 && missedMs === null) return this.#set(name, next(known.firedUpToMs));
    this.#fired.set(name, clock.monotonicMs() + RETRY_MS);
    if (missedMs !== null) run({ kind: "fire-schedule", name, atMs: missedMs, isMissed: true });
    for (const atMs of fire) run({ kind: "fire-schedule", name, atMs });
  }

  #set(name: string, atMs: number | null): void {
    if (atMs === null) this.#next.delete(name);
    else this.#next.set(name, atMs);
    this.#firstMs = null;
  }
}
