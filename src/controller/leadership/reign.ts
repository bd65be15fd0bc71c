// One service's part in leadership: it opens its log when this node leads, serves while it does, and ends with it.
//
//   idle ──epoch──▶ opening (the log) ──opened──▶ serving ──the epoch is over──▶ idle
//                     ▲ └─refused: again          │
//                     └──the log says that the epoch is over, or does not know what it has written
//
// Who serves in one epoch (T) is made when the log is open, so that everything of earlier epochs is folded here; nothing of it
// outlives the epoch. Requests ask once, at the door (`now`); whether anything counts, the log decides in the append.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import { TURNOVER_WAIT_MS } from "../../core/kit/timeouts.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Log } from "../../ports/log.ts";
import { OPEN_RETRY_MS, REIGN_WAITERS_MAX } from "./limits.ts";

export interface Serving {
  readonly epoch: number;
  /** Safe to call twice. */
  end(): void;
}

/** In which epoch the log is open, and the position of its last record. */
export interface Opened {
  readonly epoch: number;
  readonly position: number;
  /** To be called when the log says that the epoch is over, or does not know what became of an append. */
  readonly onOver: () => void;
}

/** Where requests ask who serves. */
export interface Door<T> {
  /** As far as was heard; null: nobody. */
  readonly current: T | null;
  /** Null: that is known in a moment (`next`). Throws NOT_LEADER. */
  now(): T | null;
  /** As `now`, when the change of leaders that is under way is over, or has been under way for too long. */
  next(): Promise<T>;
  /** Throws NOT_LEADER. */
  serving(): T;
}

export interface ReignOptions<T extends Serving> {
  readonly leadership: Pick<Leadership, "epoch" | "isTurningOver" | "subscribe">;
  readonly log: Pick<Log, "open">;
  readonly clock: Clock;
  readonly random: Random;
  readonly begin: (opened: Opened) => T;
}

export class Reign<T extends Serving> implements Door<T> {
  readonly #options: ReignOptions<T>;
  /** Requests that have arrived while leadership changed hands: they wait for a moment, instead of being refused and sent again. */
  readonly #waiting = new Set<() => void>();
  readonly #stop: () => void;
  #opening: number | null = null;
  #current: T | null = null;
  #retry: Timer | null = null;
  #isClosed = false;

  constructor(options: ReignOptions<T>) {
    this.#options = options;
    this.#stop = options.leadership.subscribe(() => this.#look());
    this.#look();
  }

  /** Whoever waits is refused: this node does not lead. Safe to call twice. */
  close(): void {
    this.#isClosed = true;
    this.#stop();
    this.#retry?.cancel();
    this.#end();
    this.#goOn();
  }

  get current(): T | null {
    return this.#current;
  }

  now(): T | null {
    const epoch = this.#options.leadership.epoch();
    return this.#isTurningOver(epoch) ? null : this.#servingIn(epoch);
  }

  async next(): Promise<T> {
    const { clock } = this.#options;
    if (this.#waiting.size >= REIGN_WAITERS_MAX) {
      const message = `${REIGN_WAITERS_MAX} requests wait for a change of leaders. Nothing was done; retry in a moment.`;
      throw new TenureError("OVERLOADED", message);
    }
    await new Promise<void>((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#waiting.delete(done);
        resolve();
      };
      const timer = clock.setTimer(clock.monotonicMs() + TURNOVER_WAIT_MS, done);
      this.#waiting.add(done);
    });
    return this.serving();
  }

  serving(): T {
    return this.#servingIn(this.#options.leadership.epoch());
  }

  #servingIn(epoch: number | null): T {
    if (this.#current !== null && this.#current.epoch === epoch) return this.#current;
    throw new TenureError(
      "NOT_LEADER",
      epoch === null
        ? "This node does not lead. Ask the leader."
        : "This node is taking over: it was elected and opens its log. Retry in a moment.",
    );
  }

  /** This node is about to serve, or to know who does instead. */
  #isTurningOver(epoch: number | null): boolean {
    if (this.#isClosed) return false;
    return (epoch !== null && this.#current === null) || this.#options.leadership.isTurningOver();
  }

  #look(): void {
    const epoch = this.#options.leadership.epoch();
    if (this.#current !== null && this.#current.epoch !== epoch) this.#end();
    if (epoch === null) this.#opening = null;
    else if (this.#current === null && this.#opening !== epoch && !this.#isClosed) void this.#open(epoch);
    this.#goOn();
  }

  async #open(epoch: number): Promise<void> {
    this.#opening = epoch;
    const { log, clock, random } = this.#options;
    try {
      const opened = await log.open(epoch);
      if (this.#opening !== epoch || this.#isClosed) return;
      if (opened.outcome === "opened") this.#begin(epoch, opened.head.position);
      // Only now: what can't begin is tried again.
      this.#opening = null;
      this.#goOn();
    } catch {
      // Whatever it was, it may pass; if leadership went with it, `#look` ends this.
      if (this.#opening !== epoch || this.#isClosed) return;
      const waitMs = OPEN_RETRY_MS * random.between(0.5, 1.5);
      this.#retry = clock.setTimer(clock.monotonicMs() + waitMs, () => {
        if (this.#opening === epoch) void this.#open(epoch);
      });
    }
  }

  #begin(epoch: number, position: number): void {
    const onOver = (): void => {
      if (this.#current !== begun) return;
      this.#end();
      // Its head is not what the log has any more. Where this node still leads, it opens again and compares.
      this.#look();
    };
    const begun: T = this.#options.begin({ epoch, position, onOver });
    this.#current = begun;
  }

  #goOn(): void {
    if (this.#waiting.size === 0 || this.#isTurningOver(this.#options.leadership.epoch())) return;
    for (const done of this.#waiting) done();
  }

  #end(): void {
    const ended = this.#current;
    this.#current = null;
    ended?.end();
  }
}
