// Readers of a cluster's events that outlive a rewritten history, and the judge of what each of them saw: all events of the history
// that there is in the end, each once and in order; or HISTORY_REWRITTEN before anything was passed over.
//
//   reading ──HISTORY_REWRITTEN──▶ what was seen after the common event is dropped ──▶ reading from there

import { createClient, type EventView, HistoryRewrittenError } from "../../src/client/index.ts";
import { TenureError } from "../../src/contract/errors.ts";
import { SseParser } from "../../src/client/sse.ts";

export interface SeenEvent {
  readonly sequence: number;
  readonly eventHash: string;
  readonly eventType: string;
}

export interface Rewrite {
  readonly seen: number;
  /** Null: the reader does not know it. */
  readonly common: number | null;
}

export interface ReaderOptions {
  readonly name: string;
  readonly urls: readonly string[];
  readonly key: string;
  /** Undefined: all. */
  readonly types?: readonly string[] | undefined;
}

const OUTAGE_MS = 300_000;
const AGAIN_MS = 100;

/** Over the SDK. */
export class EventReader {
  readonly name: string;
  readonly types: readonly string[] | undefined;
  seen: SeenEvent[] = [];
  readonly rewrites: Rewrite[] = [];
  /** What ended it, besides its stop. */
  error: unknown = null;
  readonly ended: Promise<void>;
  readonly #stop = new AbortController();

  constructor(options: ReaderOptions) {
    this.name = options.name;
    this.types = options.types;
    this.ended = this.#run(options).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.error = error;
    });
  }

  get last(): number {
    return this.seen.at(-1)?.sequence ?? 0;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }

  async #run({ urls, key, types }: ReaderOptions): Promise<void> {
    const client = createClient({ urls, key });
    const { signal } = this.#stop;
    let start: { after: number; afterHash?: string | undefined } = { after: 0 };
    for (;;) {
      try {
        for await (const event of client.events({ ...start, types, signal, outageMs: OUTAGE_MS })) this.#take(event);
      } catch (error) {
        if (!HistoryRewrittenError.is(error)) throw error;
        const { seen, common } = error;
        this.rewrites.push({ seen: seen.sequence, common: common?.sequence ?? null });
        this.seen = this.seen.filter(({ sequence }) => sequence <= (common?.sequence ?? 0));
        start = common === null ? { after: 0 } : { after: common.sequence, afterHash: common.hash };
      }
    }
  }

  #take({ sequence, eventHash, eventType }: EventView): void {
    this.seen.push({ sequence, eventHash, eventType });
  }
}

/** As a browser's EventSource with `ids=chained`: it sends back the last id, and ends with what is no 200. */
export class ChainedReader {
  readonly name = "an EventSource with ids=chained";
  readonly types = undefined;
  seen: SeenEvent[] = [];
  readonly rewrites: Rewrite[] = [];
  error: unknown = null;
  readonly ended: Promise<void>;
  readonly #stop = new AbortController();
  #lastId: string | null = null;

  constructor(urls: readonly string[], key: string) {
    this.ended = this.#run(urls, key);
  }

  get last(): number {
    return this.seen.at(-1)?.sequence ?? 0;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }

  async #run(urls: readonly string[], key: string): Promise<void> {
    for (let at = 0; !this.#stop.signal.aborted && this.rewrites.length === 0; at++) {
      await this.#read(urls[at % urls.length]!, key).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  async #read(url: string, key: string): Promise<void> {
    const headers = { "x-api-key": key, ...(this.#lastId === null ? {} : { "last-event-id": this.#lastId }) };
    const response = await fetch(`${url}/v1/events?since=0&ids=chained`, { headers, signal: this.#stop.signal });
    if (response.status === 409) {
      const { sequence } = (await response.json()) as { sequence: number };
      this.rewrites.push({ seen: sequence, common: null });
      return;
    }
    if (response.status !== 200) return await response.body?.cancel();
    const parser = new SseParser();
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
      for (const { id, data } of parser.push(bytes)) {
        if (id !== undefined) this.#lastId = id;
        if (data === null) continue;
        const event = JSON.parse(data) as { sequence: number; event_hash: string; event_type: string };
        this.seen.push({ sequence: event.sequence, eventHash: event.event_hash, eventType: event.event_type });
      }
    }
  }
}

/** What of one reader's events is not so in the history; empty: nothing was passed over, and nothing is of another history. */
export function problemsOf(
  { name, types, seen, rewrites, error }: Pick<EventReader, "name" | "types" | "seen" | "rewrites" | "error">,
  history: readonly SeenEvent[],
): string[] {
  // Restored without the archive: whoever had seen nothing of it yet is refused by a name of its own.
  const isCut = TenureError.is(error) && error.code === "LOG_COMPACTED" && seen.length === 0;
  if (isCut) return [];
  if (error !== null) return [`${name} ended: ${error instanceof Error ? error.message : "an odd value"}`];
  const wanted = history.filter(({ eventType }) => types === undefined || types.includes(eventType));
  // One that ended with the named error knows all that it is to know.
  const isOver = rewrites.some(({ common }) => common === null) && rewrites.length === 1;
  // What retention, or a restore without the archive, has cut off is no gap.
  const kept = seen.filter(({ sequence }) => sequence >= (history[0]?.sequence ?? 1));
  const problems: string[] = [];
  for (let at = 0; at < Math.max(kept.length, wanted.length); at++) {
    const [mine, theirs] = [kept[at], wanted[at]];
    if (mine !== undefined && mine.eventHash === theirs?.eventHash) continue;
    if (isOver) break;
    problems.push(`${name} has ${text(mine)} where the history has ${text(theirs)}`);
    break;
  }
  return problems;
}

function text(event: SeenEvent | undefined): string {
  return event === undefined ? "nothing" : `event ${event.sequence} (${event.eventHash.slice(0, 8)})`;
}
