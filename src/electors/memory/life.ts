// One process of a test: its clock, and its line to the store.
//
//   running ⇄ frozen      freeze, thaw: timers, requests and answers are held, and delivered late, in order
//   running, frozen ──▶ dead   kill: nothing is ever delivered again, in either direction
//   next to that: connected ⇄ cut: what is sent, or arrives, while cut is gone
//
// Invariants: the clocks go on whatever the state is; a dead process never acts, hears or answers; what was due
// first is delivered first, also after a thaw.

import type { Clock, Timer } from "../../ports/clock.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** 2026-01-01T00:00:00Z. */
const WALL_START_MS = 1_767_225_600_000;

export type LifeState = "running" | "frozen" | "dead";

export class Life {
  readonly name: string;
  readonly clock: Clock;
  readonly #time: VirtualTime;
  readonly #latencyMs: number;
  readonly #held: (() => void)[] = [];
  readonly #timers = new Set<Timer>();
  /** Called when the line is back: who waited for an answer asks again. */
  readonly reconnected = new Set<() => void>();
  #state: LifeState = "running";
  #cut = false;

  /** `originMs` differs from life to life, so that monotonic times of two processes are never comparable by accident. */
  constructor(name: string, time: VirtualTime, latencyMs: number, originMs: number) {
    this.name = name;
    this.#time = time;
    this.#latencyMs = latencyMs;
    this.clock = {
      monotonicMs: () => time.nowMs + originMs,
      wallMs: () => time.nowMs + WALL_START_MS,
      setTimer: (atMs, fire) => this.#setTimer(atMs - originMs, fire),
    };
  }

  get state(): LifeState {
    return this.#state;
  }

  /** To the store: served there after the latency, unless the line is cut when it leaves or when it arrives. */
  send(serve: () => void): void {
    this.#perform(() => {
      // What was under way when its process died meets a closed connection.
      if (!this.#cut) this.#travel(() => !this.#cut && this.#state !== "dead" && serve());
    });
  }

  /** From the store: received after the latency, in a turn of its own. */
  answer(receive: () => void): void {
    if (this.#cut) return;
    this.#travel(() => !this.#cut && this.#perform(receive));
  }

  kill(): void {
    this.#state = "dead";
    this.#held.length = 0;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.reconnected.clear();
  }

  freeze(): void {
    if (this.#state === "running") this.#state = "frozen";
  }

  thaw(): void {
    if (this.#state !== "frozen") return;
    this.#state = "running";
    // Frozen again before a turn came: it is held once more.
    this.#time.turns(this.#held.splice(0).map((work) => () => this.#perform(work)));
  }

  cut(): void {
    this.#cut = true;
  }

  heal(): void {
    if (!this.#cut) return;
    this.#cut = false;
    for (const ask of this.reconnected) ask();
  }

  get isCut(): boolean {
    return this.#cut;
  }

  #perform(work: () => void): void {
    if (this.#state === "running") work();
    else if (this.#state === "frozen") this.#held.push(work);
  }

  #travel(arrive: () => unknown): void {
    // Without latency a promise is enough, so that a test which never moves time gets its answers too.
    if (this.#latencyMs === 0) void Promise.resolve().then(arrive);
    else this.#time.schedule(this.#time.nowMs + this.#latencyMs, arrive);
  }

  #setTimer(atMs: number, fire: () => void): Timer {
    if (this.#state === "dead") return { cancel: () => undefined };
    let cancelled = false;
    const scheduled = this.#time.schedule(atMs, () => {
      this.#timers.delete(timer);
      // A held timer may be cancelled by what runs before it after the thaw.
      this.#perform(() => {
        if (!cancelled) fire();
      });
    });
    const timer: Timer = {
      cancel: () => {
        cancelled = true;
        scheduled.cancel();
        this.#timers.delete(timer);
      },
    };
    this.#timers.add(timer);
    return timer;
  }
}
