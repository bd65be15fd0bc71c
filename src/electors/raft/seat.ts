// One node's elector over its own Raft: the scope is the cluster itself, the epoch is the term.
//
//   idle ──acquire──▶ waiting: willing, until established in a term of its own ──announced──▶ holding
//   holding ──release──▶ resigned notice, hand over or begin a term that is nobody's ──▶ idle
//   holding ──another term, no quorum──▶ lost
//
// Trust rests on the quorum: it runs from when a round of heartbeats left that a majority has answered, for the
// shortest election timeout less a margin; followers help nobody else for so long. Fast detection (design D6) and a
// hand-over may elect the next leader earlier: the gate is for efficiency, and exclusivity is the log's (trap 22).
//
// Invariants: a term is granted once; nothing is granted before the term's own entry is applied (design D9) and the notice
// with it; who does not campaign is not willing, so its node does not lead while another wants to.

import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { RaftEvent } from "../../core/raft/types.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { Beat, Claim, Grant, Seat } from "../../ports/backend.ts";
import type { Lead, Proposals } from "../../ports/consensus.ts";
import type { Leader } from "../../ports/elector.ts";
import type { LeaderBoard } from "./leader-board.ts";

/** Writes stop for a moment during a transfer, and a new leader's queue may be full. */
const RETRY_MS = 10;
/** An election, or two, pass before a question is given up. */
const READS_TIMEOUTS = 4;

interface Waiting {
  readonly resolve: (grant: Grant) => void;
  readonly reject: (error: unknown) => void;
}

export class RaftSeat implements Seat {
  readonly #consensus: Lead & Proposals;
  readonly #board: LeaderBoard;
  readonly #claim: Claim;
  readonly #readTimeoutMs: number;
  readonly #stop: (() => void)[] = [];
  readonly #watchers = new Set<() => void>();
  #waiting: Waiting | null = null;
  #announcing = 0;
  #epoch: number | null = null;
  /** The last term that was granted, or that was let go of unused. */
  #spentTerm = 0;

  constructor(consensus: Lead & Proposals, board: LeaderBoard, claim: Claim, readTimeoutMs: number) {
    this.#consensus = consensus;
    this.#board = board;
    this.#claim = claim;
    this.#readTimeoutMs = readTimeoutMs;
    consensus.setWilling(false);
    this.#stop.push(
      consensus.subscribe((event) => this.#event(event)),
      board.subscribe(() => this.#tellWatchers()),
    );
  }

  acquire(signal: AbortSignal): Promise<Grant> {
    this.#give(new TenureError("BACKEND_UNAVAILABLE", "another campaign of this seat has begun"));
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abandoned());
      this.#waiting = { resolve, reject };
      this.#consensus.setWilling(true);
      const { leader, vote } = this.#consensus.status();
      // Who has voted in this term waits for the outcome first, or two would split the votes.
      if (leader === null && vote === null) this.#consensus.campaign();
      this.#seize();
    });
  }

  /** A round of heartbeats that began after this call, answered by a majority: the quorum was ours when it left. */
  async beat(epoch: number): Promise<Beat> {
    const sentAt = this.#now();
    if (this.#leads(epoch)) {
      const index = await this.#consensus.readIndex(this.#readTimeoutMs);
      if (index !== null && this.#leads(epoch)) return { sentAt };
    }
    if (this.#leads(epoch))
      throw new TenureError("BACKEND_UNAVAILABLE", "no majority has confirmed this leader in time");
    this.#lose(epoch);
    throw new StaleEpochError(this.#claim.scope, epoch);
  }

  async release(epoch: number): Promise<void> {
    this.#epoch = null;
    if (this.#leads(epoch)) {
      // Others hear at once that nobody leads, not only when they miss our heartbeats.
      const { identity, metadata } = this.#claim;
      await this.#board.announce(this.#consensus, { term: epoch, identity, metadata, isResigned: true });
      await this.#letGo(epoch);
    }
    this.#consensus.setWilling(this.#waiting !== null);
  }

  abandon(): void {
    const epoch = this.#epoch;
    this.#epoch = null;
    this.#give(abandoned());
    if (epoch !== null && this.#leads(epoch)) void this.#letGo(epoch);
    this.#consensus.setWilling(false);
  }

  watch(tell: (leader: Leader | null) => void): () => void {
    let last: Leader | null | undefined;
    const look = (): void => {
      const leader = this.#leader();
      if (last !== undefined && last?.epoch === leader?.epoch) return;
      last = leader;
      tell(leader);
    };
    let isStopped = false;
    // Where nothing is known yet, the cluster is asked first: this node may not have heard of a leader that is there.
    const begin = (): void => {
      if (isStopped) return;
      this.#watchers.add(look);
      look();
    };
    void this.leader().then(begin, begin);
    return () => {
      isStopped = true;
      this.#watchers.delete(look);
    };
  }

  async leader(): Promise<Leader | null> {
    const { clock } = this.#claim;
    const untilMs = clock.monotonicMs() + READS_TIMEOUTS * this.#readTimeoutMs;
    // While leadership changes hands there is nobody to ask.
    while ((await this.#consensus.readIndex(this.#readTimeoutMs)) === null) {
      if (this.#consensus.status().leader === null) return null;
      if (clock.monotonicMs() >= untilMs) {
        throw new TenureError("BACKEND_UNAVAILABLE", "the leader could not be asked in time; retry in a moment");
      }
      await new Promise<void>((resume) => clock.setTimer(clock.monotonicMs() + RETRY_MS, resume));
    }
    return this.#leader();
  }

  extras(): object {
    return {};
  }

  close(): Promise<void> {
    for (const stop of this.#stop.splice(0)) stop();
    this.#watchers.clear();
    this.abandon();
    return Promise.resolve();
  }

  // ---- campaigning ---------------------------------------------------------------------------------

  #event(event: RaftEvent): void {
    if (event.kind === "role") {
      if (this.#epoch !== null && !this.#leads(this.#epoch)) this.#lose(this.#epoch);
      this.#tellWatchers();
    }
    if (event.kind === "established") this.#seize();
  }

  /** Takes the term that this node has won, if somebody waits for it. */
  #seize(): void {
    const { role, established, term } = this.#consensus.status();
    if (this.#waiting === null || role !== "leader" || !established || this.#announcing === term) return;
    if (term === this.#spentTerm) return void this.#consensus.reelect();
    this.#announcing = term;
    void this.#announce(term);
  }

  async #announce(term: number): Promise<void> {
    const sentAt = this.#now();
    const { identity, metadata, clock } = this.#claim;
    const notice = { term, identity, metadata, isResigned: false };
    const { outcome } = await this.#board.announce(this.#consensus, notice);
    if (this.#announcing === term) this.#announcing = 0;
    if (!this.#leads(term)) return;
    if (outcome !== "committed") {
      clock.setTimer(clock.monotonicMs() + RETRY_MS, () => this.#seize());
      return;
    }
    const waiting = this.#waiting;
    this.#spentTerm = term;
    // Who waited has gone meanwhile: the term is over before it began.
    if (waiting === null) return void this.#letGo(term);
    this.#waiting = null;
    this.#epoch = term;
    waiting.resolve({ epoch: term, sentAt });
    this.#tellWatchers();
  }

  // ---- letting go ----------------------------------------------------------------------------------

  /** To somebody who is willing; or this node leads on without a will of its own, in a term that is nobody's. */
  async #letGo(epoch: number): Promise<void> {
    if (!(await this.#consensus.transfer(null)).success && this.#leads(epoch)) this.#consensus.reelect();
  }

  #lose(epoch: number): void {
    if (this.#epoch === epoch) this.#epoch = null;
    this.#claim.lost(epoch, "superseded");
  }

  #give(error: TenureError): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.reject(error);
  }

  #leads(epoch: number): boolean {
    const { role, term } = this.#consensus.status();
    return role === "leader" && term === epoch;
  }

  // ---- looking -------------------------------------------------------------------------------------

  #leader(): Leader | null {
    const { notice } = this.#board;
    const { term, leader } = this.#consensus.status();
    if (notice === null || notice.isResigned || notice.term !== term || leader === null) return null;
    return { epoch: notice.term, identity: notice.identity, metadata: notice.metadata };
  }

  #tellWatchers(): void {
    for (const look of this.#watchers) look();
  }

  #now(): Instant {
    const { clock } = this.#claim;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}

function abandoned(): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", "the campaign was abandoned");
}
