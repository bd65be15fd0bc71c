// The cluster's events, followed: each once, in order, without gaps, over whichever nodes there are (trap 67). The sequence
// of the last one is the point from which the next node goes on; its hash says of which history that is, so that one that was
// rewritten meanwhile is noticed: HISTORY_REWRITTEN (rewritten.ts), never a gap.

import { TenureError } from "../contract/errors.ts";
import { eventPointText, readEventPoint } from "../contract/event-point.ts";
import { toCamel } from "../contract/snake-case.ts";
import type { Caller } from "./caller.ts";
import type { EventView } from "./job-views.ts";
import { HistoryRewrittenError, lastCommon, Trail } from "./rewritten.ts";
import type { SseFrame } from "./sse.ts";
import { STREAM_OUTAGE_MS } from "./limits.ts";
import { type StreamOptions, streamItems } from "./streams.ts";
import { parseJson } from "../contract/parse-json.ts";

export interface EventsOptions extends StreamOptions {
  /** Begin behind this sequence: 0 is the first event there is. Left out: with what comes from now on. */
  readonly after?: number | undefined;
  /** `eventHash` of that event, where it is known: HISTORY_REWRITTEN is reported where the cluster has another one. */
  readonly afterHash?: string | undefined;
  /** Such as `build:completed` or `build:*`. */
  readonly types?: readonly string[] | undefined;
  readonly entityId?: string | undefined;
  readonly entityType?: EntityType | undefined;
}

export type EntityType = "build" | "worker" | "queue" | "schedule" | "key" | "certificate" | "controller";

export type EventItem = { readonly kind: "open" } | { readonly kind: "event"; readonly event: EventView };

export async function* followEvents(caller: Caller, options: EventsOptions): AsyncGenerator<EventView, never, void> {
  for await (const item of eventItems(caller, options)) if (item.kind === "event") yield item.event;
  throw new TenureError("INTERNAL", "a stream of events does not end by itself.");
}

/** "open": from here on nothing is missed. */
export async function* eventItems(caller: Caller, options: EventsOptions): AsyncGenerator<EventItem, never, void> {
  const point = new Point(options, isFiltered(options));
  const query = queryOf(options);
  const request = () => ({
    method: "GET" as const,
    path: `/v1/events${query}`,
    headers: { accept: "text/event-stream", ...point.headers },
  });
  try {
    return yield* streamItems(caller, request, (frame) => readFrame(point, frame), options);
  } catch (error) {
    throw await explained(caller, error, point, options);
  }
}

/** A history that was rewritten, with the place from which to start again. */
async function explained(caller: Caller, error: unknown, point: Point, options: StreamOptions) {
  if (!TenureError.is(error) || error.code !== "HISTORY_REWRITTEN") return error;
  const common = await lastCommon(caller, point.trail.points, options.signal, options.outageMs ?? STREAM_OUTAGE_MS);
  return new HistoryRewrittenError({ sequence: point.last ?? 0, hash: point.hash }, common, { cause: error });
}

function readFrame(point: Point, { id, point: said, data }: SseFrame): EventItem | undefined {
  if (data !== null) {
    const event = toCamel(parseJson(data) as object) as unknown as EventView;
    return point.take(event) ? { kind: "event", event } : undefined;
  }
  if (id === undefined) return undefined;
  const isFirst = !point.isOpen;
  const sequence = sequenceOf(id);
  const known = readEventPoint(said ?? "");
  point.skipTo(sequence, known?.sequence === sequence ? known.hash : null);
  return isFirst ? { kind: "open" } : undefined;
}

/** Pure: how far a reader is. */
export class Point {
  #last: number | null;
  #hash: string | null = null;
  #isOpen = false;
  readonly #isFiltered: boolean;
  readonly trail = new Trail();

  constructor({ after, afterHash }: Pick<EventsOptions, "after" | "afterHash">, filtered: boolean) {
    this.#last = after ?? null;
    if (after !== undefined && afterHash !== undefined) this.#know(after, afterHash);
    this.#isFiltered = filtered;
  }

  /** Of the last one, where it is known. */
  get hash(): string | null {
    return this.#hash;
  }

  /** What a node is asked with: it goes on from there, and only where its history has that event. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#last === null) return {};
    const id = { "last-event-id": String(this.#last) };
    if (this.#hash === null) return id;
    return { ...id, "x-tenure-event-point": eventPointText({ sequence: this.#last, hash: this.#hash }) };
  }

  get last(): number | null {
    return this.#last;
  }

  /** A server has said where it begins. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** There is nothing for this reader up to here. */
  skipTo(sequence: number, hash: string | null): void {
    this.#isOpen = true;
    if (this.#last !== null && sequence < this.#last) return;
    if (sequence === this.#last && this.#hash !== null) return;
    this.#last = sequence;
    this.#know(sequence, hash);
  }

  /**
   * Whether it is new. Throws where one is missing before it: then the stream is opened again from the last. HISTORY_REWRITTEN
   * where it does not continue the last one: this reader's history was left, or that of a node which has not noticed yet.
   */
  take({ sequence, previousHash, eventHash }: Pick<EventView, "sequence" | "previousHash" | "eventHash">): boolean {
    if (!Number.isSafeInteger(sequence)) throw unsupported("an event without a sequence");
    if (this.#last !== null && sequence <= this.#last) return false;
    if (!this.#isFiltered && this.#last !== null && sequence !== this.#last + 1) {
      const text = `event ${sequence} came behind ${this.#last}: what is between is missing.`;
      throw new TenureError("BACKEND_UNAVAILABLE", text);
    }
    const isNext = this.#last !== null && sequence === this.#last + 1;
    if (isNext && this.#hash !== null && previousHash !== undefined && previousHash !== this.#hash) {
      throw new TenureError(
        "HISTORY_REWRITTEN",
        `event ${sequence} does not continue event ${this.#last} as it was seen.`,
      );
    }
    this.#last = sequence;
    this.#know(sequence, eventHash ?? null);
    return true;
  }

  #know(sequence: number, hash: string | null): void {
    this.#hash = hash;
    if (hash !== null && sequence > 0) this.trail.add(sequence, hash);
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
