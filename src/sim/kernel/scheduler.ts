// Virtual time: the one queue of events of a world, and the loop that runs it.
// States: idle → running (`run`) → idle. Time stands still while an event and everything that it woke runs.
// Invariants: time never goes back; between two events the microtask queue has been drained completely;
// nothing here reads a wall clock, so a run is a function of its seed.
//
// How to drain. The loops under test handle messages and timers synchronously and use promises for disk and
// clients, and any event may resolve a promise. Measured on Node 26.10, 2 cores, empty events, per second:
//   no drain at all                                  150 M   wrong
//   10 × `await null` after each event               2.9 M   deterministic, but a chain of 11 awaits leaks
//   `await` of a setImmediate promise, each event    0.96 M  complete
//   the same, only after 1 event in 8                7.8 M   somebody must know which events need it
//   setImmediate that arms the next one              1.2 M   complete
//   64 setImmediates armed at once, one event each   12 M    complete
// Node drains microtasks and ticks between two immediates of one batch, so the last is a complete drain after
// every event, at 80 ns, and no event needs to be marked. That is what `run` does.

import { assert } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { EventHeap, HeapEvent, type Owner, type Scheduled } from "./event-heap.ts";
import { TraceHash } from "./trace-hash.ts";

// The one ambient global of this room. Bound at import, so that a test's fake timers can't replace it.
declare const setImmediate: (callback: () => void) => unknown;
const afterMicrotasks = setImmediate;

/** Measured above: 16 gives 8 M/s, 64 to 1024 the same 12 M/s. */
const IMMEDIATES_PER_BATCH = 64;
/** A loop that re-arms itself without moving time would otherwise hang the run. */
const EVENTS_PER_INSTANT_MAX = 1_000_000;

export type TraceSink = (atMs: number, owner: string, text: string) => void;

/** Why a run ended: time reached, predicate true, nothing left to do, step limit, or somebody called `halt`. */
export type RunEnd = "time" | "predicate" | "empty" | "steps" | "halted";

export interface RunLimits {
  readonly untilMs?: number | undefined;
  readonly stepsMax?: number | undefined;
}

export class Scheduler {
  readonly #random: Random;
  readonly #sink: TraceSink | undefined;
  readonly #heap = new EventHeap();
  readonly #hash = new TraceHash();
  readonly #owners = new Map<string, Owner>();
  #nowMs = 0;
  #steps = 0;
  #eventsThisInstant = 0;
  #running = false;
  #halted = false;

  constructor(random: Random, sink?: TraceSink) {
    this.#random = random;
    this.#sink = sink;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events fired so far. */
  get steps(): number {
    return this.#steps;
  }

  get pending(): number {
    return this.#heap.size;
  }

  /** The same name gives the same owner. */
  owner(name: string): Owner {
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = { name, rank: this.#random.fork(`rank/${name}`).below(2 ** 31), sequence: 0 };
      this.#owners.set(name, owner);
    }
    return owner;
  }

  /** A time in the past means now, after what is already due now for this owner. */
  schedule(atMs: number, owner: Owner, fire: () => void): Scheduled {
    assert(!Number.isNaN(atMs), "an event has a time");
    const event = new HeapEvent(this.#heap, atMs > this.#nowMs ? atMs : this.#nowMs, owner, fire);
    this.#heap.push(event);
    return event;
  }

  /**
   * A number: fires everything due until then, and ends at exactly that time.
   * A predicate: it is asked after each event, when all microtasks are done; time stays where it became true.
   */
  run(until: number | (() => boolean), limits: RunLimits = {}): Promise<RunEnd> {
    assert(!this.#running, "one run at a time");
    this.#running = true;
    const predicate = typeof until === "function" ? until : undefined;
    const untilMs = typeof until === "number" ? until : (limits.untilMs ?? Infinity);
    const stepsEnd = this.#steps + (limits.stepsMax ?? Infinity);
    return new Promise((resolve, reject) => {
      let armed = 0;
      const arm = (): void => {
        armed = IMMEDIATES_PER_BATCH;
        for (let i = 0; i < IMMEDIATES_PER_BATCH; i++) afterMicrotasks(turn);
      };
      // What is left of a batch after the end finds `ended` and does nothing.
      let ended = false;
      const turn = (): void => {
        armed--;
        if (ended) return;
        try {
          const end = this.#turn(predicate, untilMs, stepsEnd);
          if (end === undefined) {
            if (armed === 0) arm();
            return;
          }
          ended = true;
          this.#running = false;
          resolve(end);
        } catch (error) {
          ended = true;
          this.#running = false;
          reject(error);
        }
      };
      arm();
    });
  }

  /** Ends the present run after this event, or the next one before its first. */
  halt(): void {
    this.#halted = true;
  }

  trace(...parts: (string | number)[]): void {
    for (const part of parts) {
      if (typeof part === "number") this.#hash.number(part);
      else this.#hash.text(part);
    }
  }

  traceBytes(bytes: Uint8Array): void {
    this.#hash.bytes(bytes);
  }

  /** For people. `text` is called only when somebody listens; it never enters the hash. */
  narrate(owner: string, text: () => string): void {
    if (this.#sink !== undefined) this.#sink(this.#nowMs, owner, text());
  }

  hash(): string {
    return this.#hash.digest();
  }

  #turn(predicate: (() => boolean) | undefined, untilMs: number, stepsEnd: number): RunEnd | undefined {
    if (this.#halted) {
      this.#halted = false;
      return "halted";
    }
    if (predicate?.() === true) return "predicate";
    if (this.#steps >= stepsEnd) return "steps";
    const event = this.#heap.peek();
    if (event === undefined || event.atMs > untilMs) {
      if (untilMs === Infinity) return "empty";
      this.#moveTo(untilMs);
      return "time";
    }
    this.#heap.pop();
    this.#moveTo(event.atMs);
    this.#fire(event);
    return undefined;
  }

  #moveTo(atMs: number): void {
    if (atMs > this.#nowMs) {
      this.#nowMs = atMs;
      this.#eventsThisInstant = 0;
    }
  }

  #fire(event: HeapEvent): void {
    this.#eventsThisInstant++;
    assert(
      this.#eventsThisInstant <= EVENTS_PER_INSTANT_MAX,
      "virtual time moves",
      () => `${EVENTS_PER_INSTANT_MAX} events at ${this.#nowMs} ms, the last by ${event.owner.name}`,
    );
    this.#steps++;
    this.#hash.number(event.atMs);
    this.#hash.number(event.owner.rank);
    this.#hash.number(event.sequence);
    const fire = event.fire;
    event.fire = undefined;
    fire?.();
  }
}
