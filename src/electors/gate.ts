// The gate: "do I lead, for which epoch, until when", asked in the process and answered at once.
// Invariants: nothing is cached, both clocks are read at each call (trap 34), and a closed gate says why.

import { assertNever } from "../core/kit/assert.ts";
import { NotLeaderError, type NotLeaderReason } from "../core/kit/errors.ts";
import { type Deadline, remainingMs } from "../core/trust/window.ts";
import type { Clock } from "../ports/clock.ts";
import type { CheckOptions, Leader, LeaderGate } from "../ports/elector.ts";

export interface GateSource {
  readonly scope: string;
  readonly clock: Clock;
  readonly hold: { readonly epoch: number; readonly deadline: Deadline } | null;
  /** Who leads, as far as this instance has heard. */
  readonly leader: Leader | null;
  /** Of the last term that this instance had; 0 before the first. */
  readonly lastEpoch: number;
  blocked(effect: string): void;
}

export class Gate implements LeaderGate {
  readonly #source: GateSource;
  readonly #clock: Clock;

  constructor(source: GateSource) {
    this.#source = source;
    this.#clock = source.clock;
  }

  get isLeader(): boolean {
    return this.remainingMs > 0;
  }

  get remainingMs(): number {
    const { hold } = this.#source;
    if (hold === null) return 0;
    return remainingMs(hold.deadline, this.#clock.monotonicMs(), this.#clock.wallMs());
  }

  requireLeader(options?: CheckOptions): number {
    const { hold } = this.#source;
    if (hold === null) return this.#refuse("not-leading", options);
    return this.#pass(hold, options);
  }

  ensureEpoch(epoch: number, options?: CheckOptions): void {
    const { hold } = this.#source;
    if (hold === null) return this.#refuse("not-leading", options);
    if (hold.epoch !== epoch) return this.#refuse("other-epoch", options, epoch);
    this.#pass(hold, options);
  }

  #pass(hold: NonNullable<GateSource["hold"]>, options: CheckOptions | undefined): number {
    const leftMs = remainingMs(hold.deadline, this.#clock.monotonicMs(), this.#clock.wallMs());
    if (leftMs === 0) return this.#refuse("suspended", options);
    // Written so that a forMs that is no number closes the gate.
    if (options?.forMs !== undefined && !(leftMs >= options.forMs)) return this.#refuse("too-short", options);
    return hold.epoch;
  }

  #refuse(reason: NotLeaderReason, options: CheckOptions | undefined, epoch?: number): never {
    this.#source.blocked(options?.effect ?? "unnamed");
    const { scope } = this.#source;
    const leader = this.#otherLeader();
    const what = options?.effect === undefined ? "" : ` (${options.effect})`;
    const why = this.#why(reason, options, epoch);
    throw new NotLeaderError(reason, `not allowed to act for scope "${scope}"${what}: ${why}`, leader);
  }

  /** What was heard may be of this instance's own last term, or older: then nobody else is known to lead. */
  #otherLeader(): Leader | null {
    const { leader, lastEpoch } = this.#source;
    return leader === null || leader.epoch <= lastEpoch ? null : leader;
  }

  #why(reason: NotLeaderReason, options: CheckOptions | undefined, epoch: number | undefined): string {
    const { hold } = this.#source;
    switch (reason) {
      case "not-leading":
        return this.#whyNotLeading();
      case "suspended":
        return `no heartbeat was answered in time, so epoch ${hold?.epoch} can't be trusted at this moment. Nothing was done; try again when the gate is open, or stop when the term's signal aborts.`;
      case "too-short":
        return `${Math.floor(this.remainingMs)} ms of trust are left and ${options?.forMs} ms are needed. Try again after the next heartbeat.`;
      case "other-epoch":
        return `this instance leads in epoch ${hold?.epoch}, and the work belongs to epoch ${epoch}, which is over. Drop it.`;
      default:
        return assertNever(reason, "Gate.why");
    }
  }

  #whyNotLeading(): string {
    const leader = this.#otherLeader();
    const { lastEpoch } = this.#source;
    const over = lastEpoch === 0 ? "this instance does not lead" : `this instance's term of epoch ${lastEpoch} is over`;
    return leader === null
      ? `${over}. Nothing was done; wait for the next term.`
      : `${over}, and ${leader.identity} leads in epoch ${leader.epoch}. Nothing was done here.`;
  }
}
