// A history that was rewritten under its reader (trap 82): which points the reader remembers of the one it saw, and the search
// for the last of them that the cluster still has. Only there can it start again without missing anything.

import type { EventPoint } from "../contract/event-point.ts";
import { TenureError } from "../contract/errors.ts";
import type { Caller } from "./caller.ts";
import { KNOWN_POINTS_MAX } from "./limits.ts";
import { Pauses } from "./pauses.ts";

export type KnownPoint = EventPoint & { readonly hash: string };

/** The cluster does not have an event that this reader has seen. */
export class HistoryRewrittenError extends TenureError {
  /** The last event that the reader saw of the history that is no more. */
  readonly seen: EventPoint;
  /**
   * The last event known to be in both histories: start again with `after` and `afterHash` from it. What was seen after it may not
   * have happened. Null: none is known; start with `after: 0`, or with the first that is kept.
   */
  readonly common: KnownPoint | null;

  constructor(seen: EventPoint, common: KnownPoint | null, options?: { cause?: unknown }) {
    const from =
      common === null
        ? "No earlier event of both is known: start again with the first that is kept."
        : `Both have the events up to ${common.sequence}; what was seen after it may not have happened. Start again after ${common.sequence}.`;
    super(
      "HISTORY_REWRITTEN",
      `the cluster's history was rewritten (restored, recovered, or promoted without its end): it has no such event ${seen.sequence} as was seen here. ${from}`,
      options,
    );
    this.name = "HistoryRewrittenError";
    this.seen = seen;
    this.common = common;
  }

  static override is(value: unknown): value is HistoryRewrittenError {
    return TenureError.is(value) && value.code === "HISTORY_REWRITTEN" && "common" in value;
  }
}

/** Pure: points in order, bounded. */
export class Trail {
  #points: KnownPoint[] = [];

  add(sequence: number, hash: string): void {
    this.#points.push({ sequence, hash });
    if (this.#points.length < KNOWN_POINTS_MAX) return;
    const half = KNOWN_POINTS_MAX / 2;
    this.#points = this.#points.filter((_point, at) => at >= half || at % 2 === 0);
  }

  get points(): readonly KnownPoint[] {
    return this.#points;
  }
}

/** The last point that the cluster has, by halves: what is common is a beginning of both. Null: none, or no answer in time. */
export async function lastCommon(
  caller: Caller,
  points: readonly KnownPoint[],
  signal: AbortSignal | undefined,
  outageMs: number,
): Promise<KnownPoint | null> {
  const pauses = new Pauses(outageMs);
  let common: KnownPoint | null = null;
  for (let low = 0, high = points.length; low < high;) {
    const middle = (low + high) >> 1;
    const point = points[middle]!;
    try {
      const found = await isThere(caller, point, signal);
      if (found === "yes") common = point;
      if (found === "no") high = middle;
      else low = middle + 1;
    } catch (error) {
      signal?.throwIfAborted();
      if (!TenureError.is(error)) throw error;
      // Nobody leads for now: what is not known yet is no end of the search.
      if (!error.retryable || !(await pauses.take(signal))) return common;
    }
  }
  return common;
}

/**
 * Of a site that is distributed these routes are about everything that arrived; `line=own` asks for its own events alone. A release that does not know
 * that has no others.
 */
export async function ofOwnLine<T>(path: string, ask: (path: string) => Promise<T>): Promise<T> {
  try {
    return await ask(`${path}${path.includes("?") ? "&" : "?"}line=own`);
  } catch (error) {
    if (!TenureError.is(error) || error.code !== "BAD_REQUEST") throw error;
    return ask(path);
  }
}

/** "cut": retention has cut it off. */
export async function isThere(
  caller: Caller,
  { sequence, hash }: KnownPoint,
  signal: AbortSignal | undefined,
): Promise<"yes" | "no" | "cut"> {
  try {
    const path = `/api/events/since/${sequence - 1}?limit=1&consistency=linearizable`;
    type Page = { readonly events: readonly { readonly eventHash: string }[] };
    const { events } = await ofOwnLine(path, (asked) => caller.readJson<Page>(asked, { signal }));
    return events[0]?.eventHash === hash ? "yes" : "no";
  } catch (error) {
    if (!TenureError.is(error) || error.code !== "LOG_COMPACTED") throw error;
    return "cut";
  }
}
