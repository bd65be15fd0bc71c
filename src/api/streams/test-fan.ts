// A loop with a counting clock for streams: time passes only where something is written, so what one turn takes is known
// exactly. Events in memory, readers that keep what they get and may have no room.

import { ManualClock, settled } from "../../loops/test-clock.ts";
import type { EventRecord, Events, EventsFilter, EventsPage, EventsWanted } from "../../ports/events.ts";
import type { Outlet } from "./stream.ts";

/** More than any test here takes. */
const TURNS_MAX = 100_000;

export class CountingClock extends ManualClock {
  longestTurnMs = 0;

  /** What `begin` starts and all that it wakes without time passing is one turn; timers that are due then have turns of their own. */
  async run(begin: () => void, forMs: number): Promise<void> {
    const untilMs = this.nowMs + forMs;
    await this.#turn(begin);
    for (let turns = 0; this.nextMs <= untilMs; turns++) {
      if (turns > TURNS_MAX) throw new Error(`time does not pass: ${turns} turns, and it is ${this.nowMs}`);
      this.nowMs = Math.max(this.nowMs, this.nextMs);
      await this.#turn(() => void this.fireNext());
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  async #turn(begin: () => void): Promise<void> {
    const startedMs = this.nowMs;
    begin();
    await settled();
    this.longestTurnMs = Math.max(this.longestTurnMs, this.nowMs - startedMs);
  }
}

export class MemoryEvents implements Pick<Events, "head" | "read" | "recent" | "arrived" | "onReplaced"> {
  #all: EventRecord[] = [];
  #replaced: () => void = () => undefined;
  readonly #waiting = new Set<() => void>();
  /** So many of the newest are in memory. */
  recentMax = Infinity;
  /** What is read comes only then, as from a disk. */
  reading: Promise<void> = Promise.resolve();

  append(count: number, typeOf: (sequence: number) => string): void {
    for (let n = 0; n < count; n++) {
      const sequence = this.#all.length + 1;
      const eventType = typeOf(sequence);
      const fields = { id: `e${sequence}`, sequence, eventType, entityType: "build", payload: { n: sequence } };
      this.#all.push({
        sequence,
        eventType,
        bytes: new TextEncoder().encode(JSON.stringify(fields)),
        eventHash: hashOf(sequence),
      });
    }
    for (const wake of this.#waiting) wake();
  }

  onReplaced(listener: () => void): void {
    this.#replaced = listener;
  }

  /** Another history, of as many events. */
  replace(typeOf: (sequence: number) => string): void {
    const count = this.#all.length;
    this.#all = [];
    this.append(count, typeOf);
    this.#replaced();
  }

  head(): { sequence: number; first: number } {
    return { sequence: this.#all.length, first: 1 };
  }

  recent(after: number, wanted: EventsWanted): EventsPage | null {
    return after < this.#all.length - this.recentMax ? null : this.#page(after, wanted);
  }

  async read(after: number, wanted: EventsWanted): Promise<EventsPage> {
    const page = this.#page(after, wanted);
    await this.reading;
    return page;
  }

  arrived(after: number, signal: AbortSignal): Promise<void> {
    if (this.#all.length > after || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  #page(after: number, { filter, max }: EventsWanted): EventsPage {
    const seen = this.#all.slice(after, after + max);
    const events = seen.filter(({ eventType }) => filter === null || isWanted(filter, eventType));
    return { events, through: after + seen.length, hash: seen.at(-1)?.eventHash ?? null };
  }
}

function hashOf(sequence: number): string {
  return sequence.toString(16).padStart(64, "0");
}

function isWanted({ types }: EventsFilter, type: string): boolean {
  return types?.includes(type) ?? true;
}

/** Whoever reads a stream. */
export class TestReader implements Outlet {
  readonly #clock: CountingClock;
  readonly #costMs: number;
  readonly #gone = new AbortController();
  #text = "";
  #room: PromiseWithResolvers<void> | null = null;

  constructor(clock: CountingClock, costMs: number) {
    this.#clock = clock;
    this.#costMs = costMs;
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** The sequences that it was shown, in the order in which they came. */
  get sequences(): number[] {
    return [...this.#text.matchAll(/^id: (\d+)\nevent: /gm)].map(([, id]) => Number(id));
  }

  get types(): (string | undefined)[] {
    return [...this.#text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
  }

  get heartbeats(): number {
    return this.#text.split(": heartbeat\n").length - 1;
  }

  /** Where a reader would resume. */
  get lastId(): number {
    return Number([...this.#text.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]);
  }

  leave(): void {
    this.#gone.abort("gone");
  }

  fill(): void {
    this.#room = Promise.withResolvers<void>();
  }

  empty(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  async write(text: string): Promise<void> {
    this.push(new TextEncoder().encode(text));
    await this.room();
  }

  push(bytes: Uint8Array): boolean {
    if (this.signal.aborted) throw new Error("gone");
    this.#clock.nowMs += this.#costMs;
    this.#text += new TextDecoder().decode(bytes);
    return this.#room === null;
  }

  async room(): Promise<void> {
    await this.#room?.promise;
  }
}
