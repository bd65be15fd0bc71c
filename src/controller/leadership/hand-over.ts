// How a leader of the servers' consensus hands over where nodes may have workers.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { TransferResult } from "../../core/raft/types.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Lead, Members } from "../../ports/consensus.ts";
import { triedWithin } from "../../loops/time.ts";
import { EMPTY_MS_MAX, GIVE_UP_MS_MAX } from "./limits.ts";

export interface HandOverOptions {
  readonly consensus: Pick<Lead, "status" | "transfer" | "stepDown"> & Pick<Members, "followerOf">;
  readonly clock: Clock;
  /** Ends the worker of a node that is to lead next. */
  readonly empty: (peer: PeerKey) => Promise<void>;
}

/** The successor's worker is ended first, so that its gate opens at once. */
export async function handOver(
  { consensus, clock, empty }: HandOverOptions,
  target: PeerKey | null,
  force?: boolean,
): Promise<TransferResult> {
  const next = target ?? likelyNext(consensus);
  if (next !== null) await triedWithin(clock, EMPTY_MS_MAX, empty(next));
  const result = await consensus.transfer(next, force);
  // It was our own choice, and may have been a bad one.
  const isOver = result.success || result.isUnknown || target !== null || next === null;
  return isOver ? result : consensus.transfer(null, force);
}

/** Elected, and not alone on its node. */
export async function giveUp({ consensus, clock }: HandOverOptions, term: number): Promise<void> {
  // The next one is not emptied first: that takes as long as to clear it, and nobody leads meanwhile.
  const result = await triedWithin(clock, GIVE_UP_MS_MAX, consensus.transfer(null));
  const { role, term: now } = consensus.status();
  if (result?.success !== true && role === "leader" && now === term) consensus.stepDown();
}

/** Whom consensus would choose, about: healthy, willing, and furthest. */
function likelyNext(consensus: HandOverOptions["consensus"]): PeerKey | null {
  const { configuration, peer: self } = consensus.status();
  let best: { readonly peer: PeerKey; readonly match: number } | null = null;
  for (const peer of configuration.voters) {
    const view = peer === self ? null : consensus.followerOf(peer);
    if (view === null || view.unhealthy || !view.willing) continue;
    if (best === null || view.match > best.match) best = { peer, match: view.match };
  }
  return best?.peer ?? null;
}
