// One elector's place at the lease of the coordinators. The coordinator renews by itself; a beat is the news that it did.
//
//   idle ──acquire──▶ wanting ──its gate has opened──▶ holding ──release──▶ idle
//   any ──abandon──▶ idle: the coordinator gives up whatever it has, or is about to have
//   holding ──the leadership is over──▶ lost: reported at once, and once
//
// Invariants: one seat of a node wants at a time; a beat is answered with a later proof than the one before, and with the time at which that
// was asked for, never with the time of its answer (trap 44); a leadership that was given up is never granted afterwards.

import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { Beat, Claim, Grant, LossReason, Seat } from "../../ports/backends/backend.ts";
import type { Quorum } from "../../ports/backends/quorum.ts";
import type { Timer } from "../../ports/clock.ts";
import type { Leader } from "../../ports/elector.ts";

/** Who wants, of the electors of one node: the lease belongs to the node and can't tell them apart. */
export class Chair {
  #taken: QuorumSeat | null = null;

  take(seat: QuorumSeat): boolean {
    if (this.#taken !== null && this.#taken !== seat) return false;
    this.#taken = seat;
    return true;
  }

  isTakenBy(seat: QuorumSeat): boolean {
    return this.#taken === seat;
  }

  free(seat: QuorumSeat): void {
    if (this.#taken === seat) this.#taken = null;
  }
}

interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

interface Holding {
  readonly epoch: number;
  /** Of the monotonic clock: the proof that the elector knows. */
  provedMs: number;
  beating: Waiting<Beat> | null;
}

export class QuorumSeat implements Seat {
  readonly #claim: Claim;
  readonly #quorum: Quorum;
  readonly #chair: Chair;
  readonly #watches = new Set<Watch>();
  readonly #stop: () => void;
  #wanting: Waiting<Grant> | null = null;
  #holding: Holding | null = null;

  constructor(claim: Claim, quorum: Quorum, chair: Chair) {
    this.#claim = claim;
    this.#quorum = quorum;
    this.#chair = chair;
    this.#stop = quorum.onChange(() => this.#look());
  }

  acquire(signal: AbortSignal): Promise<Grant> {
    this.abandon();
    if (signal.aborted) return Promise.reject(unavailable("the campaign was given up before it began"));
    if (!this.#chair.take(this)) return Promise.reject(busy(this.#claim.scope));
    return new Promise((resolve, reject) => {
      this.#wanting = { resolve, reject };
      this.#quorum.want(true);
    });
  }

  async beat(epoch: number): Promise<Beat> {
    const holding = this.#heldIn(epoch);
    this.#look();
    if (this.#holding !== holding) throw new StaleEpochError(this.#claim.scope, epoch);
    const { held } = this.#quorum;
    if (held !== null && held.provedAt.monotonicMs > holding.provedMs) {
      holding.provedMs = held.provedAt.monotonicMs;
      return { sentAt: held.provedAt };
    }
    return new Promise((resolve, reject) => {
      holding.beating = { resolve, reject };
    });
  }

  async release(epoch: number): Promise<void> {
    this.#heldIn(epoch);
    this.#leave(new StaleEpochError(this.#claim.scope, epoch));
    // The gate is closed and the work has ended: only now may the release leave.
    const isConfirmed = await this.#quorum.release(epoch);
    if (!isConfirmed)
      throw unavailable("no majority of the coordinators has confirmed the release; the lease ends by itself");
  }

  abandon(): void {
    if (!this.#chair.isTakenBy(this)) return;
    this.#leave(unavailable("the campaign was given up"));
    this.#quorum.want(false);
  }

  watch(tell: (leader: Leader | null) => void): () => void {
    const watch = new Watch(this.#claim, this.#quorum, tell);
    this.#watches.add(watch);
    // As every other answer, in a turn of its own.
    void Promise.resolve().then(() => watch.look());
    return () => {
      this.#watches.delete(watch);
      watch.stop();
    };
  }

  async leader(): Promise<Leader | null> {
    return leaderAt(this.#quorum, this.#claim.clock.monotonicMs());
  }

  extras(): object {
    return {};
  }

  async close(): Promise<void> {
    this.abandon();
    this.#stop();
    for (const watch of this.#watches) watch.stop();
    this.#watches.clear();
  }

  /** After each change. */
  #look(): void {
    if (this.#wanting !== null) this.#seize(this.#wanting);
    else if (this.#holding !== null) this.#keep(this.#holding);
    for (const watch of this.#watches) watch.look();
  }

  #seize({ resolve }: Waiting<Grant>): void {
    const { held } = this.#quorum;
    if (held === null) return;
    const { epoch, provedAt } = held;
    this.#wanting = null;
    this.#holding = { epoch, provedMs: provedAt.monotonicMs, beating: null };
    resolve({ epoch, sentAt: provedAt });
  }

  #keep(holding: Holding): void {
    const { held } = this.#quorum;
    const { epoch, beating } = holding;
    if (held?.epoch !== epoch) {
      this.#holding = null;
      beating?.reject(new StaleEpochError(this.#claim.scope, epoch));
      return this.#claim.lost(epoch, this.#whyLost(epoch));
    }
    if (beating === null || held.provedAt.monotonicMs <= holding.provedMs) return;
    holding.provedMs = held.provedAt.monotonicMs;
    holding.beating = null;
    beating.resolve({ sentAt: held.provedAt });
  }

  #whyLost(epoch: number): LossReason {
    const { leader } = this.#quorum;
    return leader !== null && leader.epoch > epoch ? "superseded" : "lease-gone";
  }

  #heldIn(epoch: number): Holding {
    if (this.#holding?.epoch === epoch) return this.#holding;
    throw new StaleEpochError(this.#claim.scope, epoch);
  }

  #leave(why: TenureError): void {
    this.#wanting?.reject(why);
    this.#holding?.beating?.reject(why);
    this.#wanting = null;
    this.#holding = null;
    this.#chair.free(this);
  }
}

/** Tells each leader once. Nobody reports that a lease has ended by itself, so a timer looks then. */
class Watch {
  readonly #claim: Claim;
  readonly #quorum: Quorum;
  readonly #tell: (leader: Leader | null) => void;
  /** Undefined: nothing was observed yet. */
  #observed: number | null | undefined;
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(claim: Claim, quorum: Quorum, tell: (leader: Leader | null) => void) {
    this.#claim = claim;
    this.#quorum = quorum;
    this.#tell = tell;
  }

  look(): void {
    if (this.#isStopped) return;
    const { clock } = this.#claim;
    const leader = leaderAt(this.#quorum, clock.monotonicMs());
    const epoch = leader?.epoch ?? null;
    this.#timer?.cancel();
    const { leader: observed } = this.#quorum;
    this.#timer = leader === null || observed === null ? null : clock.setTimer(observed.untilMs, () => this.look());
    if (this.#observed === epoch) return;
    this.#observed = epoch;
    this.#tell(leader);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }
}

function leaderAt({ leader }: Quorum, nowMs: number): Leader | null {
  if (leader === null || nowMs >= leader.untilMs) return null;
  const { epoch, identity, metadata } = leader;
  return { epoch, identity, metadata };
}

function unavailable(what: string): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", `${what}.`);
}

function busy(scope: string): TenureError {
  return new TenureError(
    "ELECTOR_BUSY",
    `another elector of this node campaigns for scope "${scope}" or leads: the lease belongs to the node. Use one elector.`,
  );
}
