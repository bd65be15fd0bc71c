// A simulated process: a named node that runs, freezes and dies, and each of whose lives has its own handles.
//
//   crashed ──start──▶ running ◀──resume── paused
//      ▲                  │ ╲──pause──────▶  │
//      └──────crash───────┴──────crash───────┘
//
// Invariants:
// - What belongs to one life never fires in another: a handle knows its `Life`, and a dead life is inert.
// - A paused process executes nothing. Timers, deliveries and completions queue up in the order in which they
//   came due and run, one event each, after resume; what arrives meanwhile queues after them.
// - What runs may be charged for (`charge`): virtual time costs no CPU, so a turn that takes two seconds in production takes none
//   here. A process that was charged is busy: its own clocks show the time that it has used, and whatever comes due meanwhile waits
//   until the world is there. What it sends leaves at the turn's begin.
// - Its monotonic clock goes on during a pause (as CLOCK_MONOTONIC does under SIGSTOP) and never goes back. It stands
//   still while the machine sleeps, which for all else is a pause (trap 45).

import { assert } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Owner } from "./event-heap.ts";
import { LifeClock, MachineClock } from "./process-clock.ts";
import type { Scheduler } from "./scheduler.ts";

export type ProcessState = "crashed" | "running" | "paused";

export interface ProcessHooks {
  /** An exception out of the process's code, or its own report that it must end. */
  fatal(process: SimProcess, error: unknown): void;
}

/** One life of a process. Everything that the process's code holds goes through it. */
export class Life {
  readonly process: SimProcess;
  readonly number: number;
  readonly clock: LifeClock;

  constructor(process: SimProcess, number: number, random: Random) {
    this.process = process;
    this.number = number;
    this.clock = new LifeClock(this, process.machine, process.scheduler, random);
  }

  get alive(): boolean {
    return this.process.life === this;
  }

  /** Runs `fire` in the process now, or after resume when it is paused; never when this life is over. */
  deliver(fire: () => void): void {
    this.process.deliver(this, fire);
  }

  /** As `deliver`, at a time of the world's clock. */
  schedule(atMs: number, fire: () => void): void {
    this.process.scheduler.schedule(atMs, this.process.owner, () => this.deliver(fire));
  }

  /** Calls the process's code: what it throws ends this process and is reported with its name. */
  guard(fn: () => void): void {
    try {
      fn();
    } catch (error) {
      this.fatal(error);
    }
  }

  /** For errors that reach the process's loop through a promise. Ignored once this life is over. */
  fatal(error: unknown): void {
    if (this.alive) this.process.hooks.fatal(this.process, error);
  }
}

export class SimProcess {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly owner: Owner;
  readonly machine: MachineClock;
  readonly hooks: ProcessHooks;
  readonly #random: Random;
  #state: ProcessState = "crashed";
  #life: Life | undefined;
  #lives = 0;
  #held: (() => void)[] = [];
  #releasing = false;
  /** Of the world's clock: until then it works on what it has begun. */
  #busyUntilMs = 0;

  constructor(name: string, scheduler: Scheduler, random: Random, hooks: ProcessHooks) {
    this.name = name;
    this.scheduler = scheduler;
    this.owner = scheduler.owner(`node/${name}`);
    this.hooks = hooks;
    this.#random = random;
    this.machine = new MachineClock(scheduler, random.fork("wall"));
  }

  get state(): ProcessState {
    return this.#state;
  }

  /** The present life, undefined while crashed. */
  get life(): Life | undefined {
    return this.#life;
  }

  /** How far its turn is ahead of the world: what it was charged for and has not lived through. */
  get aheadMs(): number {
    return Math.max(0, this.#busyUntilMs - this.scheduler.nowMs);
  }

  /** What runs in it now takes so long. Returns what its present turn has taken so far. */
  charge(ms: number): number {
    this.#busyUntilMs = Math.max(this.#busyUntilMs, this.scheduler.nowMs) + ms;
    return this.aheadMs;
  }

  /** How many times it was started. */
  get lives(): number {
    return this.#lives;
  }

  start(): Life {
    assert(this.#state === "crashed", "only a crashed process is started", () => `${this.name} is ${this.#state}`);
    this.#lives++;
    this.#state = "running";
    this.#life = new Life(this, this.#lives, this.#random.fork(`life/${this.#lives}`));
    this.#mark("start");
    return this.#life;
  }

  /** False when there was nothing to pause. */
  pause(): boolean {
    if (this.#state !== "running") return false;
    this.#state = "paused";
    this.#mark("pause");
    return true;
  }

  /** The whole machine: as a pause, and its monotonic clock stands still. `resume` ends it. */
  sleep(): boolean {
    if (!this.pause()) return false;
    this.machine.sleep();
    this.#life?.clock.rearm();
    this.#mark("sleep");
    return true;
  }

  resume(): boolean {
    if (this.#state !== "paused") return false;
    this.#state = "running";
    this.#wake();
    this.#mark("resume");
    this.#release();
    return true;
  }

  crash(): boolean {
    const life = this.#life;
    if (life === undefined) return false;
    this.#state = "crashed";
    this.#life = undefined;
    this.#held = [];
    this.#busyUntilMs = 0;
    life.clock.stop();
    this.#wake();
    this.#mark("crash");
    return true;
  }

  setClockRate(rate: number): boolean {
    if (rate === this.machine.rate) return false;
    this.machine.setRate(rate);
    this.#life?.clock.rearm();
    this.scheduler.trace("rate", rate);
    this.scheduler.narrate(this.name, () => `clock rate ${rate}`);
    return true;
  }

  jumpWall(byMs: number): void {
    this.machine.jumpWall(byMs);
    this.scheduler.trace("wall", byMs);
    this.scheduler.narrate(this.name, () => `wall clock jumps by ${byMs} ms`);
  }

  deliver(life: Life, fire: () => void): void {
    if (this.#life !== life) return;
    // After what still waits, or an in-order link would overtake itself at resume.
    if (this.#state === "paused" || this.#held.length > 0 || this.aheadMs > 0) this.#held.push(fire);
    else return this.#execute(life, fire);
    if (this.#state === "running") this.#release();
  }

  #wake(): void {
    if (!this.machine.asleep) return;
    this.machine.wake();
    this.#life?.clock.rearm();
  }

  /** One held item per event, so that each has its microtasks drained as it would have had. */
  #release(): void {
    if (this.#releasing || this.#held.length === 0) return;
    this.#releasing = true;
    this.scheduler.schedule(Math.max(this.scheduler.nowMs, this.#busyUntilMs), this.owner, () => {
      this.#releasing = false;
      const life = this.#life;
      if (life === undefined || this.#state !== "running") return;
      const fire = this.aheadMs > 0 ? undefined : this.#held.shift();
      if (fire !== undefined) this.#execute(life, fire);
      this.#release();
    });
  }

  #execute(life: Life, fire: () => void): void {
    assert(this.#life === life && this.#state === "running", "nothing of an old life fires", () => this.name);
    life.guard(fire);
  }

  #mark(what: string): void {
    this.scheduler.trace(this.name, what, this.#lives);
    this.scheduler.narrate(this.name, () => `${what} (life ${this.#lives})`);
  }
}
