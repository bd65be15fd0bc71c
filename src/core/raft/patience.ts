// How long a server without leadership waits for a leader: the election timeout (§5.2), stickiness (thesis
// §4.2.3), the report that a leader is silent, and fast detection (design D6). It only keeps the times; what
// is done when they are due is the step's business.
//
// - Stickiness: while a leader of this term was heard within the shortest election timeout, nobody else is
//   helped to depose it. It is waived, for one leader's term, by this server's own sight of its end.
// - With a lease it is a promise: whoever answers a leader helps nobody else, itself included, for the shortest
//   election timeout. The promise outlives its role and its term, and a restart, after which nobody knows
//   whether one was made (trap 21).
// - Who fails to be elected again and again waits longer each time, up to four times as long, until somebody is heard.
// - Whose leader was heard late recently, but was heard, waits longer by that (strain.ts), for itself and for others.
// - A silence is reported once. It lasts from the last word of a leader, whatever is campaigned meanwhile.

import type { PeerKey } from "../kit/ids.ts";
import {
  ELECTION_BACKOFF_MAX,
  ELECTION_FAILURES_FREE,
  FAST_PRE_VOTE_ATTEMPTS_MAX,
  FAST_PRE_VOTE_INTERVAL_MS,
  UNWILLING_PATIENCE,
} from "../kit/limits.ts";
import type { Random } from "../kit/random.ts";
import type { ServerState } from "./state.ts";

export class Patience {
  readonly #state: Readonly<ServerState>;
  readonly #random: Random;
  #electionDeadlineMs = Infinity;
  #lastHeard: PeerKey | null = null;
  #lastHeardTerm = -1;
  #lastHeardMs = -Infinity;
  #suspectReported = false;
  #quietUntilMs = -Infinity;
  #waivedTerm = -1;
  #fastAttemptsLeft = 0;
  #fastDueMs = Infinity;
  #failures = 0;

  constructor(state: Readonly<ServerState>, random: Random) {
    this.#state = state;
    this.#random = random;
    if (state.config.enableLease) this.#quietUntilMs = state.nowMs + state.config.electionTimeoutMaxMs;
    this.resetElectionTimer();
  }

  /** When anything of this is due. */
  get deadlineMs(): number {
    return Math.min(this.#electionDeadlineMs, this.#fastDueMs, this.#suspectAtMs);
  }

  // ---- the election timeout ------------------------------------------------------------------------

  get electionDeadlineMs(): number {
    return this.#electionDeadlineMs;
  }

  /** `isStrained`: longer where words come late. A hand-over is not: its leader waits for no longer. */
  resetElectionTimer(isStrained = true): void {
    const { config, nowMs } = this.#state;
    const { electionTimeoutMinMs: min, electionTimeoutMaxMs: max, enablePriority, nodePriority } = config;
    // At least a quarter of the range stays random, or two preferred nodes would split votes for ever.
    const share = enablePriority ? 1 - 0.75 * (nodePriority / 255) : 1;
    const timeoutMs = min + this.#random.next() * (max - min) * share + (isStrained ? this.#state.strainMs : 0);
    this.#electionDeadlineMs = nowMs + (timeoutMs + this.#backoffMs()) * this.#reluctance;
  }

  /** A campaign of ours came to nothing. */
  campaignFailed(): void {
    this.#failures++;
  }

  /** There is somebody, or the network has changed: the past failures say nothing any more. */
  takeHeart(): void {
    this.#failures = 0;
  }

  /**
   * Who is not willing leaves it to the others, but not for ever: those who are may lack entries that it has, and
   * nobody can be elected without them.
   */
  get #reluctance(): number {
    return this.#state.willing ? 1 : UNWILLING_PATIENCE;
  }

  /** Anything up to it: who failed together must not wait equally long, or votes split again. */
  #backoffMs(): number {
    const factor = Math.min(2 ** Math.max(0, this.#failures - ELECTION_FAILURES_FREE), ELECTION_BACKOFF_MAX);
    return factor === 1 ? 0 : this.#random.next() * (factor - 1) * this.#state.config.electionTimeoutMaxMs;
  }

  /** Our own loop stalled, and what the leader sent meanwhile may still be unread: hear it first. */
  waitOneBeat(): void {
    this.#electionDeadlineMs = this.#state.nowMs + this.#state.config.heartbeatIntervalMs;
  }

  /** We lead: whom we heard before is nobody to miss any more. */
  stopElectionTimer(): void {
    this.#electionDeadlineMs = Infinity;
    this.#lastHeard = null;
  }

  // ---- whether a leader is there -------------------------------------------------------------------

  heard(leader: PeerKey): void {
    const { nowMs, term } = this.#state;
    this.takeHeart();
    // Of one term there is one leader: it went on all the time.
    if (term === this.#lastHeardTerm) this.#state.strain.gapEnded(nowMs - this.#lastHeardMs, nowMs);
    this.#lastHeard = leader;
    this.#lastHeardTerm = term;
    this.#lastHeardMs = nowMs;
    this.#suspectReported = false;
    // It lives after all: what we saw of its connection is no reason any more to help depose it.
    this.#waivedTerm = -1;
  }

  /** A lease may rest on our silence. */
  get keepsPromise(): boolean {
    const { nowMs, config } = this.#state;
    if (!config.enableLease) return false;
    return nowMs < this.#quietUntilMs || nowMs - this.#lastHeardMs < config.electionTimeoutMinMs;
  }

  hearsLeader(): boolean {
    const { role, leader, nowMs, config, strainMs } = this.#state;
    if (role === "leader" || this.keepsPromise) return true;
    if (leader === null || this.isWaived) return false;
    return nowMs - this.#lastHeardMs < config.electionTimeoutMinMs + strainMs;
  }

  /** When the present leader was last heard; 0 where there is none. */
  get leaderContactMs(): number {
    const { leader } = this.#state;
    return leader !== null && leader === this.#lastHeard ? this.#lastHeardMs : 0;
  }

  reportSuspect(): void {
    const { nowMs, outbox } = this.#state;
    if (nowMs < this.#suspectAtMs) return;
    this.#suspectReported = true;
    outbox.emit({ kind: "leader-suspect", leader: this.#lastHeard, silentMs: nowMs - this.#lastHeardMs });
  }

  get #suspectAtMs(): number {
    if (this.#suspectReported || this.#lastHeard === null || this.#state.role === "leader") return Infinity;
    return this.#lastHeardMs + this.#state.config.failoverDetectionTimeoutMs;
  }

  // ---- fast detection ------------------------------------------------------------------------------

  /** This server saw that nobody listens at the leader of this term any more. */
  get isWaived(): boolean {
    return this.#waivedTerm === this.#state.term;
  }

  waive(): void {
    this.#waivedTerm = this.#state.term;
  }

  get fastDueMs(): number {
    return this.#fastDueMs;
  }

  startFastAttempts(delayMs: number): void {
    this.#fastAttemptsLeft = FAST_PRE_VOTE_ATTEMPTS_MAX;
    this.#fastDueMs = this.#state.nowMs + delayMs;
  }

  /** One is made now. */
  takeFastAttempt(): void {
    this.#fastAttemptsLeft--;
    this.#fastDueMs = this.#fastAttemptsLeft > 0 ? this.#state.nowMs + FAST_PRE_VOTE_INTERVAL_MS : Infinity;
  }

  stopFastAttempts(): void {
    this.#fastAttemptsLeft = 0;
    this.#fastDueMs = Infinity;
  }
}
