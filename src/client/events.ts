// The cluster's events, followed: each once, in order, without gaps, over whichever nodes there are (trap 67). The sequence
// of the last one is the point from which the next node goes on; one that is behind waits there until it has caught up.

import { TenureError } from "../contract/errors.ts";
import { toCamel } from "../contract/snake-case.ts";
import type { Caller } from "./caller.ts";
import type { EventView } from "./job-views.ts";
import { type StreamOptions, streamItems } from "./streams.ts";
import { parseJson } from "../contract/parse-json.ts";

export interface EventsOptions extends StreamOptions {
  /** Begin behind this sequence: 0 is the first event there is. Left out: with what comes from now on. */
  readonly after?: number | undefined;
  /** Such as `build:completed` or `build:*`. */
  readonly types?: readonly string[] | undefined;
  readonly entityId?: string | undefined;
  readonly entityType?: EntityType | undefined;
}

export type EntityType = "build" | "worker" | "queue" | "schedule" | "key" | "controller";

export type EventItem = { readonly kind: "open" } | { readonly kind: "event"; readonly event: EventView };

export async function* followEvents(caller: Caller, options: EventsOptions): AsyncGenerator<EventView, never, void> {
  for await (const item of eventItems(caller, options)) if (item.kind === "event") yield item.event;
  throw new TenureError("INTERNAL", "a stream of events does not end by itself.");
}

/** "open": from here on nothing is missed. */
export async function* eventItems(caller: Caller, options: EventsOptions): AsyncGenerator<EventItem, never, void> {
  const point = new Point(options.after, isFiltered(options));
  const query = queryOf(options);
  const request = () => ({
    method: "GET" as const,
    path: `/v1/events${query}`,
    headers: { accept: "text/event-stream", ...(point.last === null ? {} : { "last-event-id": String(point.last) }) },
  });
  return yield* streamItems(caller, request, ({ id, data }) => readFrame(point, id, data), options);
}

function readFrame(point: Point, id: string | undefined, data: string | null): EventItem | undefined {
  if (data !== null) {
    const event = toCamel(parseJson(data) as object) as unknown as EventView;
    return point.take(event.sequence) ? { kind: "event", event } : undefined;
  }
  if (id === undefined) return undefined;
  const isFirst = !point.isOpen;
  point.skipTo(sequenceOf(id));
  return isFirst ? { kind: "open" } : undefined;
}

/** Pure: how far a reader is. */
export class Point {
  #last: number | null;
  #isOpen = false;
  readonly #isFiltered: boolean;

  constructor(after: number | undefined, filtered: boolean) {
    this.#last = after ?? null;
    this.#isFiltered = filtered;
  }

  get last(): number | null {
    return this.#last;
  }

  /** A server has said where it begins. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** There is nothing for this reader up to here. */
  skipTo(sequence: number): void {
    this.#isOpen = true;
    this.#last = Math.max(this.#last ?? 0, sequence);
  }

  /** Whether it is new. Throws where one is missing before it: then the stream is opened again from the last. */
  take(sequence: number): boolean {
    if (!Number.isSafeInteger(sequence)) throw unsupported("an event without a sequence");
    if (this.#last !== null && sequence <= this.#last) return false;
    if (!this.#isFiltered && this.#last !== null && sequence !== this.#last + 1) {
      const text = `event ${sequence} came behind ${this.#last}: what is between is missing.`;
      throw new TenureError("BACKEND_UNAVAILABLE", text);
    }
    this.#last = sequence;
    return true;
  }
}

function sequenceOf(id: string): number {
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw unsupported(`the id ${JSON.stringify(id.slice(0, 40))}`);
}

function unsupported(what: string): TenureError {
  return new TenureError("BACKEND_UNSUPPORTED", `the stream of events has ${what}; is it a Tenure server?`);
}

function isFiltered({ types, entityId, entityType }: EventsOptions): boolean {
  return types !== undefined || entityId !== undefined || entityType !== undefined;
}

function queryOf({ types, entityId, entityType }: EventsOptions): string {
  const query = new URLSearchParams();
  if (types !== undefined) query.set("type", types.join(","));
  if (entityId !== undefined) query.set("entity", entityId);
  if (entityType !== undefined) query.set("entity_type", entityType);
  return query.size === 0 ? "" : `?${query.toString()}`;
}
