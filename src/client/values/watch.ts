// A watch of values: what there is, then each change, over whichever nodes there are. Where its node does not keep what comes next, it lists again and gives
// what differs.
//
//   listing ──all pages──▶ following ──reset──▶ listing, or LOG_COMPACTED where it began after a version      ended by its reader

import { TenureError } from "../../contract/errors.ts";
import { parseJson } from "../../contract/parse-json.ts";
import { toCamel } from "../../contract/snake-case.ts";
import { WatchedValues } from "../../contract/watched-values.ts";
import type { StoredChange, ValueItem } from "../../ports/stored-values.ts";
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
  const state = new WatchedValues(after);
  const read = ({ id, event, data }: SseFrame): ValueItem | typeof RESET | undefined => {
    if (event === "reset") return RESET;
    return state.take(id, data === null ? undefined : (toCamel(parseJson(data) as object) as unknown as StoredChange));
  };
  for (let pauses = new Pauses(outageMs); ;) {
    let failure: unknown;
    let listedAtMs = Infinity;
    try {
      if (state.point === null) {
        state.beginList();
        for await (const page of pagesOf(caller, { signal }, prefix)) yield* state.page(page);
        yield* state.endList();
      }
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
      for await (const item of streamItems(caller, request, read, options)) {
        if (item === RESET) break;
        yield item;
      }
      failure = new TenureError(
        "LOG_COMPACTED",
        `the servers do not have all changes of values after version ${state.point}: some are not kept any more, or there is no such version yet. Watch without \`after\`, and compare.`,
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

const RESET = Symbol("reset");
