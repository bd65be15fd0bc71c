// Consensus as everybody but the engine sees it on a node that may have a worker: a leader counts as established only when
// its node is cleared (ports/clearance.ts). Until then it decides nothing, answers nothing as a leader and shows itself as a
// standby that is taking over; who can't be cleared in time lets another lead.
//
//   following ──established──▶ clearing ──cleared──▶ open ──role lost──▶ following (released)
//                                 └──refused, too late──▶ transfer, else step down; for a while no worker is started
//
// Invariant: `established` is shown for a term only between `opened(term)` and the next `release()`.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { RaftEvent, TransferResult } from "../../core/raft/types.ts";
import type { RaftStatus } from "../../core/raft/options.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Consensus } from "../../ports/consensus.ts";
import type { Logger } from "../../ports/logger.ts";

/** Somebody else leads sooner than a worker that can't be killed dies. */
const CLEAR_MS_MAX = 150;
/** A successor that does not answer is cleared when it is elected. */
const EMPTY_MS_MAX = 300;
/** For a hand-over by one that may do nothing meanwhile. */
const YIELD_MS_MAX = 1_000;

export interface ClearedConsensusOptions {
  readonly consensus: Consensus;
  readonly clearance: Clearance;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the worker of a node that is to lead next. */
  readonly empty?: ((peer: PeerKey) => Promise<void>) | undefined;
}

export class ClearedConsensus implements Consensus {
  readonly #inner: Consensus;
  readonly #clearance: Clearance;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #empty: ClearedConsensusOptions["empty"];
  readonly #listeners = new Set<(event: RaftEvent) => void>();
  readonly #stop: () => void;
  /** The term for which the node was cleared, or is being. */
  #term: number | null = null;
  #isOpen = false;
  #isLate = false;
  #limit: Timer | null = null;

  constructor({ consensus, clearance, clock, logger, empty }: ClearedConsensusOptions) {
    this.#inner = consensus;
    this.#clearance = clearance;
    this.#clock = clock;
    this.#logger = logger;
    this.#empty = empty;
    this.#stop = consensus.subscribe((event) => this.#event(event));
    const { role, established, term } = consensus.status();
    if (role === "leader" && established) void this.#clear({ kind: "established", term, index: 0 });
    else clearance.release();
  }

  close(): void {
    this.#stop();
    this.#limit?.cancel();
  }

  status(): RaftStatus {
    const status = this.#inner.status();
    // The usual case first, and without a copy.
    if (!status.established || (this.#isOpen && this.#term === status.term)) return status;
    return { ...status, established: false };
  }

  subscribe(listener: (event: RaftEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #event(event: RaftEvent): void {
    if (event.kind === "established") return void this.#clear(event);
    // Before anybody else hears of it; a worker may begin from here on.
    if (event.kind === "role" && event.role !== "leader") this.#release();
    this.#tell(event);
  }

  async #clear(event: RaftEvent & { kind: "established" }): Promise<void> {
    const { term } = event;
    this.#term = term;
    this.#isOpen = false;
    this.#limit?.cancel();
    const late = Promise.withResolvers<false>();
    this.#limit = this.#clock.setTimer(this.#clock.monotonicMs() + CLEAR_MS_MAX, () => late.resolve(false));
    const isCleared = await Promise.race([this.#clearance.clear(term), late.promise]).catch(() => false);
    if (this.#term !== term) return;
    this.#limit.cancel();
    const { role, established, term: now } = this.#inner.status();
    if (role !== "leader" || !established || now !== term) return;
    if (!isCleared) return void this.#yield(term);
    this.#isOpen = true;
    this.#clearance.opened(term);
    this.#tell(event);
  }

  /** Elected, and not alone on its node. */
  async #yield(term: number): Promise<void> {
    const why = `this node was elected (term ${term}), and its worker is not gone after ${CLEAR_MS_MAX} ms: another must lead`;
    this.#logger.error({ event: "not-cleared", term }, why);
    this.#isLate = true;
    const late = Promise.withResolvers<boolean>();
    const limit = this.#clock.setTimer(this.#clock.monotonicMs() + YIELD_MS_MAX, () => late.resolve(false));
    // The next one is not emptied first: that takes as long as to clear it, and nobody leads meanwhile.
    const transferred = this.#inner.transfer(null).then(
      ({ success }) => success,
      () => false,
    );
    const isDone = await Promise.race([transferred, late.promise]);
    limit.cancel();
    const { role, term: now } = this.#inner.status();
    if (!isDone && role === "leader" && now === term) this.#inner.stepDown();
  }

  /** The successor's worker is ended first, so that its gate opens at once. */
  async transfer(target: PeerKey | null, force?: boolean): Promise<TransferResult> {
    const next = target ?? this.#likelyNext();
    if (next !== null && this.#empty !== undefined) {
      const late = Promise.withResolvers<void>();
      const limit = this.#clock.setTimer(this.#clock.monotonicMs() + EMPTY_MS_MAX, () => late.resolve());
      await Promise.race([this.#empty(next).catch(() => undefined), late.promise]);
      limit.cancel();
    }
    const result = await this.#inner.transfer(next, force);
    // It was our own choice, and may have been a bad one.
    const isOver = result.success || result.isUnknown || target !== null || next === null;
    return isOver ? result : this.#inner.transfer(null, force);
  }

  /** Whom consensus would choose, about: healthy, willing, and furthest. */
  #likelyNext(): PeerKey | null {
    const { configuration, peer: self } = this.#inner.status();
    let best: { readonly peer: PeerKey; readonly match: number } | null = null;
    for (const peer of configuration.voters) {
      const view = peer === self ? null : this.#inner.followerOf(peer);
      if (view === null || view.unhealthy || !view.willing) continue;
      if (best === null || view.match > best.match) best = { peer, match: view.match };
    }
    return best?.peer ?? null;
  }

  #release(): void {
    if (this.#term === null) return;
    this.#term = null;
    this.#isOpen = false;
    this.#limit?.cancel();
    this.#clearance.release(this.#isLate);
    this.#isLate = false;
  }

  #tell(event: RaftEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  // ---- as it is ------------------------------------------------------------------------------------

  get peer(): Consensus["peer"] {
    return this.#inner.peer;
  }
  propose: Consensus["propose"] = (data) => this.#inner.propose(data);
  changeMembership: Consensus["changeMembership"] = (change) => this.#inner.changeMembership(change);
  replace: Consensus["replace"] = (nodeId) => this.#inner.replace(nodeId);
  clearDisks: Consensus["clearDisks"] = (cleared) => this.#inner.clearDisks(cleared);
  readIndex: Consensus["readIndex"] = (timeoutMs) => this.#inner.readIndex(timeoutMs);
  setWilling: Consensus["setWilling"] = (willing) => this.#inner.setWilling(willing);
  campaign: Consensus["campaign"] = () => this.#inner.campaign();
  reelect: Consensus["reelect"] = () => this.#inner.reelect();
  stepDown: Consensus["stepDown"] = () => this.#inner.stepDown();
  followerOf: Consensus["followerOf"] = (peer) => this.#inner.followerOf(peer);
  membersKnownTo: Consensus["membersKnownTo"] = (peer) => this.#inner.membersKnownTo(peer);
}
