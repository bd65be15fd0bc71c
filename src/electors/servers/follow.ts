// Follows one scope: tells what it is now, then each change, in the order of epochs. A server holds the question back until
// something differs from what we know; what happened between two questions is seen by the second. A question that is not
// answered in time is a failure, so a node that went silent costs one wait and no more.
//
// A scope that nobody holds may be forgotten by the cluster (SCOPES_MAX): who heard of its holder is notified that nobody leads.
//
// Invariants: nothing is told twice; a node that is behind never takes us back; a server that answers at once although
// nothing has changed is not asked at once again.

import type { Random } from "../../core/kit/random.ts";
import type { Clock } from "../../ports/clock.ts";
import { pause } from "../../loops/time.ts";
import { FOLLOW_PAUSE_MS } from "../limits.ts";
import { NEVER_LED, type ScopeState } from "./answers.ts";
import type { ScopesClient } from "./scopes-client.ts";

export interface Followed {
  readonly scopes: ScopesClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly waitMs: number;
  /** What is known already, and told; otherwise it is read. */
  readonly from?: ScopeState | undefined;
  readonly signal: AbortSignal;
}

/** Resolves when `tell` says "enough" (true); rejects when the signal aborts or nobody answers. The caller tries again. */
export async function follow(followed: Followed, tell: (state: ScopeState) => boolean): Promise<void> {
  const { scopes, clock, waitMs, signal } = followed;
  let known = followed.from;
  let isForgotten = false;
  for (;;) {
    const askedMs = clock.monotonicMs();
    const said: ScopeState =
      known === undefined
        ? await scopes.read(signal)
        : await scopes.changed(isForgotten ? NEVER_LED : known, waitMs, signal);
    isForgotten = said.epoch === NEVER_LED.epoch;
    const state: ScopeState = isForgotten && known !== undefined ? { epoch: known.epoch, leader: null } : said;
    if (known === undefined || isNews(state, known)) {
      known = state;
      if (tell(state)) return;
    } else if (clock.monotonicMs() - askedMs < waitMs / 2) {
      await pauseEarly(followed);
    }
  }
}

/** An epoch is granted once and ends once. */
function isNews(state: ScopeState, known: ScopeState): boolean {
  if (state.epoch !== known.epoch) return state.epoch > known.epoch;
  return known.leader !== null && state.leader === null;
}

export function pauseEarly({ clock, random, signal }: Pick<Followed, "clock" | "random" | "signal">): Promise<boolean> {
  return pause(clock, random.between(FOLLOW_PAUSE_MS / 2, FOLLOW_PAUSE_MS), signal);
}
