// `servers(url).values()`: values for those who do not lead: read, listed, and followed as they change. Writing is a term's, or the SDK's.
//
//   listing ──all given──▶ following ──changes are not kept any more──▶ listing: what differs is given, deletions too
//      ▲                       └──breaks, silent──▶ pause ──▶ following, from where it was
//
// Invariants: what was given is not given again; no change is passed over without a word; memory holds a name and a version for each value that
// was given, and one piece of the stream, however slow the reader is.

import { TenureError } from "../../core/kit/errors.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { Random } from "../../core/kit/random.ts";
import { SseFrames } from "../../core/kit/sse.ts";
import { WatchedValues } from "../../core/kit/watched-values.ts";
import { checkValueName } from "../../core/values/limits.ts";
import { pause, retryInMs } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { StoredValue, ValueItem } from "../../ports/stored-values.ts";
import { WATCH_OUTAGE_MS, WATCH_PAUSE_MS_MAX, WATCH_PAUSE_MS_MIN, WATCH_STEADY_MS } from "../limits.ts";
import { type Fields, valueChangeOf } from "./answers.ts";
import type { LeaderClient } from "./leader-client.ts";
import { ValuesClient } from "./values-client.ts";

export interface ServersValues extends AsyncDisposable {
  /** Null: there is none. Everything that was confirmed before is in the answer. */
  get(name: string): Promise<StoredValue | null>;
  /** By name; asked for page by page, so they are not all of one moment. */
  list(options?: { readonly prefix?: string | undefined }): AsyncIterable<StoredValue>;
  /**
   * First all values, as `put`, then `current`, then each change in order; after changes that are not kept any more, what differs. With `after` only what
   * came after that version; it ends with LOG_COMPACTED where that is not kept any more. Ends without an error when the signal aborts, or at `close`;
   * with one where nobody has served it for a minute.
   */
  watch(options?: ValuesWatchOptions): AsyncIterable<ValueItem>;
  /** Ends what is under way. Safe to call twice. */
  close(): Promise<void>;
}

export interface ValuesWatchOptions {
  /** Of names; all, where it is left out. */
  readonly prefix?: string | undefined;
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ValuesWorld {
  readonly client: LeaderClient;
  readonly clock: Clock;
  readonly random: Random;
}

export class ServersValuesReader implements ServersValues {
  readonly #world: ValuesWorld;
  readonly #life = new AbortController();
  readonly #values: ValuesClient;

  constructor(world: ValuesWorld) {
    this.#world = world;
    this.#values = new ValuesClient(world.client, this.#life.signal);
  }

  async get(name: string): Promise<StoredValue | null> {
    checkValueName(name);
    return this.#values.get(name);
  }

  async *list({ prefix = "" }: { readonly prefix?: string | undefined } = {}): AsyncGenerator<StoredValue, void, void> {
    for await (const { values } of this.#values.pages(prefix, this.#life.signal)) yield* values;
  }

  async *watch({ prefix = "", after, signal }: ValuesWatchOptions = {}): AsyncGenerator<ValueItem, void, void> {
    const { clock, random } = this.#world;
    const stop = signal === undefined ? this.#life.signal : AbortSignal.any([signal, this.#life.signal]);
    const watched = new WatchedValues(after);
    let failingSinceMs: number | undefined;
    for (let failures = 0; !stop.aborted;) {
      const attempt = new AbortController();
      const either = AbortSignal.any([stop, attempt.signal]);
      let openedMs = Infinity;
      let failure: TenureError;
      try {
        if (watched.point === null) {
          watched.beginList();
          for await (const page of this.#values.pages(prefix, either)) yield* watched.page(page);
          yield* watched.endList();
        }
        const pieces = await this.#values.follow(prefix, watched.point ?? 0, either);
        openedMs = clock.monotonicMs();
        for await (const item of itemsOf(pieces, watched)) {
          if (item === RESET) {
            if (after !== undefined) throw compacted(watched.point ?? 0);
            watched.point = null;
            break;
          }
          failingSinceMs = undefined;
          yield item;
        }
        failure = new TenureError("BACKEND_UNAVAILABLE", "the stream of values ended, again and again.");
      } catch (error) {
        if (stop.aborted) return;
        if (!TenureError.is(error) || !error.retryable) throw error;
        failure = error;
      } finally {
        attempt.abort();
      }
      const nowMs = clock.monotonicMs();
      if (nowMs - openedMs >= WATCH_STEADY_MS) failingSinceMs = undefined;
      if (failingSinceMs === undefined) failures = 0;
      failingSinceMs ??= nowMs;
      if (nowMs - failingSinceMs >= WATCH_OUTAGE_MS) throw failure;
      await pause(clock, retryInMs(random, failures++, WATCH_PAUSE_MS_MIN, WATCH_PAUSE_MS_MAX), stop);
    }
  }

  async close(): Promise<void> {
    this.#life.abort();
    this.#world.client.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const RESET = Symbol("reset");

/** Until the stream ends, or says that it can't go on from there. */
async function* itemsOf(
  pieces: AsyncIterable<string>,
  watched: WatchedValues,
): AsyncGenerator<ValueItem | typeof RESET, void, void> {
  const frames = new SseFrames();
  for await (const piece of pieces) {
    for (const { id, event, data } of frames.push(piece)) {
      if (event === "reset") {
        yield RESET;
        return;
      }
      const item = watched.take(id, data === null ? undefined : valueChangeOf(parseJson(data) as Fields));
      if (item !== undefined) yield item;
    }
  }
}

function compacted(after: number): TenureError {
  return new TenureError(
    "LOG_COMPACTED",
    `the servers do not have all changes of values after version ${after}: some are not kept any more, or there is no such version yet. Watch without \`after\`, and compare.`,
  );
}
