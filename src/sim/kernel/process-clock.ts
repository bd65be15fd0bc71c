// The clocks of a simulated machine, and the Clock port of one life on it.
// `MachineClock` is the oscillator: it runs at `rate` (0.8: 20 % slow), survives crashes, and its wall time can
// jump. While the machine sleeps its monotonic time stands still and wall time goes on (trap 45). `LifeClock` starts at an origin of its own, so that times of two processes, or of two lives of one, are
// never comparable by accident.
// Invariants: monotonic time never falls, also when the rate changes; a timer fires at or after its time as this
// clock shows it; a timer of a dead life never fires.

import { assert } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Scheduled } from "./event-heap.ts";
import type { Life } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

/** 2026-01-01T00:00:00Z. */
export const WALL_START_MS = 1_767_225_600_000;
const WALL_SKEW_MS = 2_000;
const ORIGIN_MAX_MS = 1_000_000;

export class MachineClock {
  readonly #scheduler: Scheduler;
  #rate = 1;
  #anchorWorldMs = 0;
  #anchorLocalMs = 0;
  #wallOffsetMs: number;
  #asleep = false;

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#wallOffsetMs = WALL_START_MS + Math.floor(random.between(-WALL_SKEW_MS, WALL_SKEW_MS));
  }

  get rate(): number {
    return this.#rate;
  }

  get asleep(): boolean {
    return this.#asleep;
  }

  localMs(): number {
    return this.#asleep ? this.#anchorLocalMs : this.#anchorLocalMs + this.#sinceAnchorMs();
  }

  wallMs(): number {
    return Math.floor(this.#anchorLocalMs + this.#sinceAnchorMs() + this.#wallOffsetMs);
  }

  /** When, in world time, this clock will show `localMs` if its rate stays; Infinity while it stands still. */
  worldMsAt(localMs: number): number {
    if (this.#asleep) return Infinity;
    return this.#anchorWorldMs + (localMs - this.#anchorLocalMs) / this.#rate;
  }

  setRate(rate: number): void {
    assert(rate > 0, "a clock runs forward", () => String(rate));
    this.#anchor();
    this.#rate = rate;
  }

  sleep(): void {
    this.#anchor();
    this.#asleep = true;
  }

  wake(): void {
    this.#anchor();
    this.#asleep = false;
  }

  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  #sinceAnchorMs(): number {
    return (this.#scheduler.nowMs - this.#anchorWorldMs) * this.#rate;
  }

  #anchor(): void {
    if (this.#asleep) this.#wallOffsetMs += this.#sinceAnchorMs();
    this.#anchorLocalMs = this.localMs();
    this.#anchorWorldMs = this.#scheduler.nowMs;
  }
}

export class LifeClock implements Clock {
  readonly #life: Life;
  readonly #machine: MachineClock;
  readonly #scheduler: Scheduler;
  readonly #originMs: number;
  /** In order of setting, which is the order in which a change of rate arms them again. */
  readonly #timers = new Set<LifeTimer>();
  #floorMs = 0;

  constructor(life: Life, machine: MachineClock, scheduler: Scheduler, random: Random) {
    this.#life = life;
    this.#machine = machine;
    this.#scheduler = scheduler;
    this.#originMs = Math.floor(random.between(0, ORIGIN_MAX_MS)) - machine.localMs();
  }

  monotonicMs(): number {
    const nowMs = this.#machine.localMs() + this.#originMs + this.#aheadMs();
    if (nowMs > this.#floorMs) this.#floorMs = nowMs;
    return this.#floorMs;
  }

  wallMs(): number {
    return Math.floor(this.#machine.wallMs() + this.#aheadMs());
  }

  /** In its own time. */
  #aheadMs(): number {
    return this.#life.process.aheadMs * this.#machine.rate;
  }

  setTimer(atMs: number, fire: () => void): Timer {
    const timer = new LifeTimer(atMs, fire, this.#timers);
    if (!this.#life.alive) return timer;
    this.#timers.add(timer);
    this.#arm(timer);
    return timer;
  }

  /** The rate changed, or the machine fell asleep or woke: every pending timer comes due at another time of the world. */
  rearm(): void {
    for (const timer of this.#timers) {
      // One that came due already waits in the process.
      if (timer.scheduled?.pending === false) continue;
      timer.scheduled?.cancel();
      timer.scheduled = undefined;
      this.#arm(timer);
    }
  }

  stop(): void {
    for (const timer of this.#timers) timer.scheduled?.cancel();
    this.#timers.clear();
  }

  #arm(timer: LifeTimer): void {
    if (timer.atMs === Infinity) return;
    const worldMs = this.#machine.worldMsAt(timer.atMs - this.#originMs);
    if (worldMs === Infinity) return;
    timer.scheduled = this.#scheduler.schedule(worldMs, this.#life.process.owner, () => {
      // Rounding in the two conversions must not show the process a time before its timer's.
      if (timer.atMs > this.#floorMs) this.#floorMs = timer.atMs;
      this.#life.deliver(() => timer.expire());
    });
  }
}

class LifeTimer implements Timer {
  readonly atMs: number;
  scheduled: Scheduled | undefined;
  readonly #fire: () => void;
  readonly #set: Set<LifeTimer>;

  constructor(atMs: number, fire: () => void, set: Set<LifeTimer>) {
    this.atMs = atMs;
    this.#fire = fire;
    this.#set = set;
  }

  /** A held timer may be cancelled by what runs before it at resume. */
  expire(): void {
    if (this.#set.delete(this)) this.#fire();
  }

  cancel(): void {
    this.#set.delete(this);
    this.scheduled?.cancel();
  }
}
