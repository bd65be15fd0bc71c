// Time that the events' clock has jumped over: nobody who led has seen it pass. The clocks were set, or nobody led. What is
// remembered for a time (idempotency keys, finished jobs) does not age by it, whoever was right: such a jump may be an honest
// weekend without a leader, or a clock that is days ahead, and no node can tell them apart (docs/decisions/0026).
//
// The first event after a jump says by how much (`skippedMs` in its payload), so every node knows the same.
//
// Invariants:
// - The time between two events, less what was skipped between them, has passed on the monotonic clocks of leaders.
// - At most CLOCK_SKIPS_MAX are kept. Past it the two oldest become one, at the later's time: what is older than that
//   is remembered for longer, nothing for less.

import { CLOCK_SKIPS_MAX } from "../../kit/limits.ts";
import type { DecideContext } from "../commands.ts";
import type { JobsEvent } from "../events.ts";
import type { BookState } from "./state.ts";

export interface SkipRecord {
  /** Of the event that told of it, in whole milliseconds; and its sequence. */
  readonly atMs: number;
  readonly byMs: number;
  readonly sequence: number;
}

export type Times = Pick<DecideContext, "nowMs" | "skippedMs">;

/** What of the time since `fromMs`, an event's, was seen to pass. */
export function witnessedMs(state: BookState, fromMs: number, { nowMs, skippedMs }: Times): number {
  let sumMs = nowMs - fromMs - skippedMs;
  for (const { atMs, byMs } of state.skips.values()) if (fromMs < atMs && atMs <= nowMs) sumMs -= byMs;
  return sumMs;
}

/** Before anything ages by this event's time. */
export function noteSkip(state: BookState, { payload, sequence }: JobsEvent, atMs: number): void {
  const byMs = payload["skippedMs"];
  if (typeof byMs !== "number" || !Number.isSafeInteger(byMs) || byMs <= 0) return;
  state.skips.set(String(sequence), { atMs, byMs, sequence });
  if (state.skips.size <= CLOCK_SKIPS_MAX) return;
  const [oldest, next] = [...state.skips.values()].sort((one, other) => one.sequence - other.sequence);
  state.skips.set(String(oldest!.sequence), undefined);
  state.skips.set(String(next!.sequence), { ...next!, byMs: oldest!.byMs + next!.byMs });
}
