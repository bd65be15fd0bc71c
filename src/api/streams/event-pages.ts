// The text of events as streams send it, made once for all who are at the same place with the same filter. Events of one history
// never change, so what was made stays right; it is dropped by age when it is too much, and as a whole with its history.

import { type EventPoint, eventPointText, eventWire } from "../../contract/index.ts";
import type { EventRecord, Events, EventsFilter, EventsPage } from "../../ports/events.ts";
import { FRAMES_KEPT_MAX, PAGES_KEPT_MAX, STREAM_PAGE_BYTES_MAX, STREAM_PAGE_EVENTS_MAX } from "../limits.ts";

/** What a page costs besides its bytes: many hold nothing that its filter wants. */
const PAGE_COST = 256;

export interface SharedPage {
  /** Null: its filter wants none of these events. */
  readonly bytes: Uint8Array | null;
  /** Of the last event in it. */
  readonly last: number;
  /** Everything up to here was looked at. */
  readonly through: number;
  /** Of the event `through`; null where nothing was looked at. */
  readonly hash: string | null;
}

interface PageWanted {
  readonly filter: EventsFilter | null;
  readonly filterKey: string;
  readonly isChained: boolean;
}

export class EventPages {
  readonly #events: Pick<Events, "read" | "recent">;
  readonly #encoder = new TextEncoder();
  /** Of one history. */
  #frames = keptFrames();
  #pages = keptPages();

  constructor(events: Pick<Events, "read" | "recent">) {
    this.#events = events;
  }

  /** The history may be another one from now on. What is being read of the one before is kept for nobody. */
  clear(): void {
    this.#frames = keptFrames();
    this.#pages = keptPages();
  }

  /** What follows `after`, from memory; null: it is not there. `filterKey`: `keyOf`. */
  recent(after: number, { filter, filterKey, isChained }: PageWanted): SharedPage | null {
    const place = `${after} ${filterKey}`;
    const kept = this.#pages.get(place);
    if (kept !== undefined) return kept;
    const page = this.#events.recent(after, wanted(filter));
    if (page === null) return null;
    const shared = this.#shared(page, after, isChained, this.#frames);
    // An empty page at the end says nothing of what comes next.
    if (shared.through > after) this.#pages.set(place, shared);
    return shared;
  }

  /** From wherever it is. Rejects as `Events.read` does. */
  async read(after: number, filter: EventsFilter | null, isChained: boolean): Promise<SharedPage> {
    // As they are now: when it comes, the history may be another one.
    const frames = this.#frames;
    return this.#shared(await this.#events.read(after, wanted(filter)), after, isChained, frames);
  }

  #shared({ events, through, hash }: EventsPage, after: number, isChained: boolean, frames: Frames): SharedPage {
    const texts = events.map(
      (event) => `${idLine(event.sequence, event.eventHash, isChained)}${frameOf(event, frames)}`,
    );
    const bytes = events.length === 0 ? null : this.#encoder.encode(texts.join(""));
    return { bytes, last: events.at(-1)?.sequence ?? after, through, hash };
  }
}

/** Without its id, which has two forms. */
function frameOf({ sequence, eventType, bytes, eventHash }: EventRecord, frames: Frames): string {
  const kept = frames.get(sequence);
  if (kept !== undefined) return kept;
  const frame = `event: ${eventType}\ndata: ${JSON.stringify(eventWire(bytes, eventHash))}\n\n`;
  frames.set(sequence, frame);
  return frame;
}

export function keyOf(filter: EventsFilter | null, isChained: boolean): string {
  const key = filter === null ? "" : JSON.stringify([filter.types, filter.entityId, filter.entityType]);
  return isChained ? `chained ${key}` : key;
}

function idLine(sequence: number, hash: string | null, isChained: boolean): string {
  return `id: ${eventPointText({ sequence, hash: isChained ? hash : null })}\n`;
}

/** Of a frame without an event: `point` is for the SDK; whoever does not know the field ignores it, as the standard says. */
export function pointLines(point: EventPoint, isChained: boolean): string {
  const id = idLine(point.sequence, point.hash, isChained);
  return point.hash === null ? id : `${id}point: ${eventPointText(point)}\n`;
}

function wanted(filter: EventsFilter | null) {
  return { filter, max: STREAM_PAGE_EVENTS_MAX, bytesMax: STREAM_PAGE_BYTES_MAX };
}

/** The newest, as far as they cost no more than so much together. */
export class Kept<Key, Value> {
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

type Frames = Kept<number, string>;

function keptFrames(): Frames {
  return new Kept(FRAMES_KEPT_MAX, (frame) => frame.length);
}

function keptPages(): Kept<string, SharedPage> {
  return new Kept(PAGES_KEPT_MAX, ({ bytes }) => PAGE_COST + (bytes?.length ?? 0));
}
