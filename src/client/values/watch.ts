// A watch of values: what there is, then each change, over whichever nodes there are. Where its node does not keep what comes next, it lists again and gives
// what differs.
//
//   listing ──all pages──▶ following ──reset──▶ listing, or LOG_COMPACTED where it began after a version      ended by its reader

import { TenureError } from "../../contract/errors.ts";
import { parseJson } from "../../contract/parse-json.ts";
import { toCamel } from "../../contract/snake-case.ts";
import type { StoredValue, ValueItem } from "../../ports/stored-values.ts";
import { type Caller, readQuery } from "../caller.ts";
import { STREAM_OUTAGE_MS, STREAM_STEADY_MS } from "../limits.ts";
import { Pauses } from "../pauses.ts";
import type { SseFrame } from "../sse.ts";
import { type StreamOptions, streamItems } from "../streams.ts";
import { pagesOf } from "./pages.ts";

export interface ValuesWatch extends StreamOptions {
  /** Of names; all, where it is left out. */
  readonly prefix?: string | undefined;
  /** Only changes after this version. Left out: first what there is. */
  readonly after?: number | undefined;
}

export async function* watchValues(caller: Caller, options: ValuesWatch): AsyncGenerator<ValueItem, never, void> {
  const { prefix = "", after, signal, outageMs = STREAM_OUTAGE_MS } = options;
  const state = new Watched(after);
  for (let pauses = new Pauses(outageMs); ;) {
    let failure: unknown;
    let listedAtMs = Infinity;
    try {
      if (state.point === null) yield* listed(caller, state, prefix, signal);
      listedAtMs = performance.now();
    } catch (error) {
      signal?.throwIfAborted();
      if (!TenureError.is(error) || !error.retryable) throw error;
      failure = error;
    }
    if (failure === undefined) {
      const request = () => ({
        method: "GET" as const,
        path: `/v1/watch/values${readQuery({}, { prefix })}`,
        headers: { accept: "text/event-stream", "last-event-id": String(state.point) },
      });
      for await (const item of streamItems(caller, request, (frame) => state.read(frame), options)) {
        if (item === RESET) break;
        yield item;
      }
      failure = new TenureError(
        "LOG_COMPACTED",
        `the servers do not keep all changes of values after version ${state.point} any more. Watch without \`after\`, and compare.`,
      );
      if (after !== undefined) throw failure;
      state.point = null;
    }
    // A server that resets whatever it has listed costs no more than a poll.
    if (performance.now() - listedAtMs >= STREAM_STEADY_MS) pauses = new Pauses(outageMs);
    if (await pauses.take(signal)) continue;
    signal?.throwIfAborted();
    throw failure;
  }
}

/** Everything that there is and was not given yet, and what there is no more. */
async function* listed(
  caller: Caller,
  state: Watched,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<ValueItem, void, void> {
  const gone = new Set(state.known.keys());
  let asOf: number | undefined;
  for await (const page of pagesOf(caller, { signal }, prefix)) {
    // Changes since the first page come once more, and are left out where a later page had them.
    asOf ??= page.asOf;
    for (const value of page.values) {
      gone.delete(value.name);
      if (state.isNew(value)) yield { kind: "put", ...value };
    }
  }
  for (const name of gone) {
    state.known.delete(name);
    yield { kind: "deleted", name, version: null, updatedAtMs: null };
  }
  state.point = asOf ?? 0;
  yield { kind: "current", version: state.point };
}

const RESET = Symbol("reset");

type Change = Exclude<ValueItem, { kind: "current" }> & { readonly version: number };

/** How far a watch is. */
class Watched {
  /** Null: all values are to be listed. */
  point: number | null;
  /** Versions by name, as they were given. */
  readonly known = new Map<string, number>();
  readonly #isWhole: boolean;

  constructor(after: number | undefined) {
    this.point = after ?? null;
    this.#isWhole = after === undefined;
  }

  isNew({ name, version }: Pick<StoredValue, "name" | "version">): boolean {
    if ((this.known.get(name) ?? 0) >= version) return false;
    this.known.set(name, version);
    return true;
  }

  read({ id, event, data }: SseFrame): ValueItem | typeof RESET | undefined {
    if (event === "reset") return RESET;
    const point = this.point ?? 0;
    // Of changes that were made together the last one has an id: only then all of them are here.
    if (/^\d{1,15}$/.test(id ?? "")) this.point = Math.max(point, Number(id));
    if (data === null) return undefined;
    const item = toCamel(parseJson(data) as object) as unknown as Change;
    const { version } = item;
    if (!(version > point)) return undefined;
    if (!this.#isWhole) return this.isNew(item) ? item : undefined;
    if (item.kind === "put") return this.isNew(item) ? item : undefined;
    // What a list did not have was not given, and is not taken back.
    if (!((this.known.get(item.name) ?? Infinity) < version)) return undefined;
    this.known.delete(item.name);
    return item;
  }
}
