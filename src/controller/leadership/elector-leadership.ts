// Leadership by an elector of the library, for those who act on it: campaigns for as long as the node runs.
//
//   stopped ──start──▶ campaigning ──a term──▶ leading ──lost, asked, handed over──▶ campaigning …        stop ends it
//
// - It leads while its term lasts and the gate is open. The gate is for efficiency: whether anything counts, the log decides
//   in the same step in which it writes.
// - What must be over before another leads is over first: the listeners hear that this node does not lead any more, and
//   then the scope is released.
// - A hand-over is bounded: where nobody takes over, this node campaigns again.

import { TenureError } from "../../core/kit/errors.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Elector, Term } from "../../ports/elector.ts";
import type { Logger } from "../../ports/logger.ts";
import type { GivenLeadership } from "./cleared-leadership.ts";
import { Confirmations } from "./confirmations.ts";
import { pause, triedWithin } from "../../loops/time.ts";
import { HANDING_OVER_MS_MAX, REFUSED_PAUSE_MS } from "./limits.ts";

export interface ElectorLeadershipOptions {
  readonly elector: Pick<Elector, "lead" | "gate">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** True: at some time after the call no higher epoch was in force in the log. */
  readonly confirm: (epoch: number) => Promise<boolean>;
}

/** What was given to this node. */
interface Given {
  readonly epoch: number;
  readonly confirmations: Confirmations;
  readonly release: () => void;
}

export class ElectorLeadership implements GivenLeadership {
  readonly #options: ElectorLeadershipOptions;
  readonly #listeners = new Set<() => void>();
  readonly #stopping = new AbortController();
  #campaign: Promise<void> | undefined;
  #given: Given | null = null;
  #handingOver: Timer | null = null;
  #isWilling = true;
  /** Ends the campaign that goes on; or, while this node does not want to lead, the wait for that to be over. */
  #turn = new AbortController();

  constructor(options: ElectorLeadershipOptions) {
    this.#options = options;
  }

  start(): void {
    this.#campaign ??= this.#run();
  }

  /** The scope is free, or surely will be, when it resolves. */
  async stop(): Promise<void> {
    this.#stopping.abort(new TenureError("ELECTOR_CLOSED", "the node is stopping"));
    await this.#campaign;
    this.#handedOver();
  }

  epoch(): number | null {
    const given = this.#given;
    return given !== null && this.#options.elector.gate.isLeader ? given.epoch : null;
  }

  held(): number | null {
    return this.#given?.epoch ?? null;
  }

  isTurningOver(): boolean {
    return this.#handingOver !== null;
  }

  async confirm(): Promise<boolean> {
    const given = this.#given;
    if (given === null || this.epoch() === null || given.confirmations.isFull) return false;
    return (await given.confirmations.ask()) && this.#given === given && this.epoch() !== null;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The gate may have closed or opened. */
  look(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Releases the scope, so that another leads. False: this node does not lead. */
  handOver(): boolean {
    const given = this.#given;
    if (given === null) return false;
    const { clock } = this.#options;
    this.#handingOver?.cancel();
    this.#handingOver = clock.setTimer(clock.monotonicMs() + HANDING_OVER_MS_MAX, () => this.#handedOver());
    given.release();
    return true;
  }

  /** As a hand-over, but nobody waits for a successor here. */
  giveUp(): void {
    this.#given?.release();
  }

  /** One that does not want to lead releases the scope, and campaigns no more. */
  setWilling(isWilling: boolean): void {
    if (isWilling === this.#isWilling) return;
    this.#isWilling = isWilling;
    if (isWilling || !this.handOver()) this.#turn.abort(new TenureError("ELECTOR_CLOSED", "the node was drained"));
  }

  /** Somebody leads, wherever. */
  heardOfLeader(): void {
    if (this.#given === null) this.#handedOver();
  }

  #handedOver(): void {
    if (this.#handingOver === null) return;
    this.#handingOver.cancel();
    this.#handingOver = null;
    this.look();
  }

  async #run(): Promise<void> {
    const { elector, clock, logger } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#turn = new AbortController();
      const turn = AbortSignal.any([signal, this.#turn.signal]);
      if (!this.#isWilling) {
        await aborted(turn);
        continue;
      }
      try {
        await elector.lead((term) => this.#lead(term), { signal: turn });
      } catch (error) {
        if (signal.aborted) return;
        if (turn.aborted) continue;
        const message = error instanceof Error ? error.message : String(error);
        logger.error({ event: "campaign-refused", code: TenureError.is(error) ? error.code : "bug" }, message);
        await pause(clock, REFUSED_PAUSE_MS, signal);
      }
    }
  }

  async #lead(term: Term): Promise<void> {
    const { epoch, signal } = term;
    const { clock, confirm } = this.#options;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const readIndex = async (timeoutMs: number): Promise<number | null> =>
      (await triedWithin(clock, timeoutMs, confirm(epoch))) === true ? epoch : null;
    const given: Given = { epoch, confirmations: new Confirmations({ readIndex }), release: resolve };
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) return;
    this.#given = given;
    this.#handedOver();
    this.look();
    await over;
    this.#given = null;
    given.confirmations.close();
    this.look();
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
