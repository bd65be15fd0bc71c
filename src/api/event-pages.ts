// The text of events as streams send it, made once for all who are at the same place with the same filter. Events never
// change, so what was made stays right; it is dropped by age when it is too much.

import { eventWire } from "../contract/index.ts";
import type { EventRecord, Events, EventsFilter, EventsPage } from "../ports/events.ts";

const PAGE_EVENTS_MAX = 500;
const PAGE_BYTES_MAX = 256 * 1024;
/** Frames that other pages will want too, in letters. */
const FRAMES_KEPT_MAX = 4 * 1024 * 1024;
/** Pages that other streams will want too, in bytes. */
const PAGES_KEPT_MAX = 4 * 1024 * 1024;
/** What a page costs besides its bytes: many hold nothing that its filter wants. */
const PAGE_COST = 256;

export interface SharedPage {
  /** Null: its filter wants none of these events. */
  readonly bytes: Uint8Array | null;
  /** Of the last event in it. */
  readonly last: number;
  /** Everything up to here was looked at. */
  readonly through: number;
}

export class EventPages {
  readonly #events: Pick<Events, "read" | "recent">;
  readonly #encoder = new TextEncoder();
  readonly #frames = new Kept<number, string>(FRAMES_KEPT_MAX, (frame) => frame.length);
  readonly #pages = new Kept<string, SharedPage>(PAGES_KEPT_MAX, ({ bytes }) => PAGE_COST + (bytes?.length ?? 0));

  constructor(events: Pick<Events, "read" | "recent">) {
    this.#events = events;
  }

  /** What follows `after`, from memory; null: it is not there. `key` is the filter's (`keyOf`). */
  recent(after: number, filter: EventsFilter | null, key: string): SharedPage | null {
    const place = `${after} ${key}`;
    const kept = this.#pages.get(place);
    if (kept !== undefined) return kept;
    const page = this.#events.recent(after, wanted(filter));
    if (page === null) return null;
    const shared = this.#shared(page, after);
    // An empty page at the end says nothing of what comes next.
    if (shared.through > after) this.#pages.set(place, shared);
    return shared;
  }

  /** From wherever it is. Rejects as `Events.read` does. */
  async read(after: number, filter: EventsFilter | null): Promise<SharedPage> {
    return this.#shared(await this.#events.read(after, wanted(filter)), after);
  }

  #shared({ events, through }: EventsPage, after: number): SharedPage {
    const text = events.map((event) => this.#frameOf(event)).join("");
    const bytes = events.length === 0 ? null : this.#encoder.encode(text);
    return { bytes, last: events.at(-1)?.sequence ?? after, through };
  }

  #frameOf({ sequence, eventType, bytes, eventHash }: EventRecord): string {
    const kept = this.#frames.get(sequence);
    if (kept !== undefined) return kept;
    const frame = `id: ${sequence}\nevent: ${eventType}\ndata: ${JSON.stringify(eventWire(bytes, eventHash))}\n\n`;
    this.#frames.set(sequence, frame);
    return frame;
  }
}

export function keyOf(filter: EventsFilter | null): string {
  return filter === null ? "" : JSON.stringify([filter.types, filter.entityId, filter.entityType]);
}

function wanted(filter: EventsFilter | null) {
  return { filter, max: PAGE_EVENTS_MAX, bytesMax: PAGE_BYTES_MAX };
}

/** The newest, as far as they cost no more than so much together. */
class Kept<Key, Value> {
  readonly #kept = new Map<Key, Value>();
  readonly #max: number;
  readonly #costOf: (value: Value) => number;
  #cost = 0;

  constructor(max: number, costOf: (value: Value) => number) {
    this.#max = max;
    this.#costOf = costOf;
  }

  get(key: Key): Value | undefined {
    return this.#kept.get(key);
  }

  set(key: Key, value: Value): void {
    this.#kept.set(key, value);
    this.#cost += this.#costOf(value);
    for (const [oldest, one] of this.#kept) {
      if (this.#cost <= this.#max) break;
      this.#kept.delete(oldest);
      this.#cost -= this.#costOf(one);
    }
  }
}
