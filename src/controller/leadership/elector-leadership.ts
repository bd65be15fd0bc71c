// Leadership by an elector of the library, for those who act on it: campaigns for as long as the node runs.
//
//   stopped ──start──▶ campaigning ──a term──▶ leading ──lost, asked, handed over──▶ campaigning …        stop ends it
//
// - It leads while its term lasts and the gate is open. The gate is for efficiency: whether anything counts, the log decides
//   in the same step in which it writes.
// - What must be over before another leads is over first: the listeners are told that this node does not lead any more, and
//   then the scope is let go.
// - A hand-over is bounded: where nobody takes over, this node campaigns again.

import { TenureError } from "../../core/kit/errors.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Elector, Term } from "../../ports/elector.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Logger } from "../../ports/logger.ts";
import { Confirmations } from "./confirmations.ts";

/** What a person must mend was refused: it is tried again so seldom, and said each time. */
const REFUSED_PAUSE_MS = 5_000;
/** Somebody else leads sooner than a worker that can't be killed dies. */
const CLEAR_MS_MAX = 150;
/** Requests wait so long for a successor before they are told that nobody leads here. */
const HANDING_OVER_MS_MAX = 1_000;

export interface ElectorLeadershipOptions {
  readonly elector: Pick<Elector, "lead" | "gate">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** True: at some time after the call no higher epoch was in force in the log. */
  readonly confirm: (epoch: number) => Promise<boolean>;
  /** Where the node may have a worker: whoever can't be cleared of it lets the scope go. */
  readonly clearance?: Clearance | undefined;
}

interface Reign {
  readonly epoch: number;
  readonly confirmations: Confirmations;
  readonly handOver: () => void;
}

export class ElectorLeadership implements Leadership {
  readonly #options: ElectorLeadershipOptions;
  readonly #listeners = new Set<() => void>();
  readonly #stopping = new AbortController();
  #campaign: Promise<void> | undefined;
  #reign: Reign | null = null;
  #handingOver: Timer | null = null;
  #isClearing = false;
  #isWilling = true;
  /** Ends the campaign that goes on; or, while this node does not want to lead, the wait for that to be over. */
  #turn = new AbortController();

  constructor(options: ElectorLeadershipOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.clearance?.release();
    this.#campaign ??= this.#run();
  }

  /** The scope is free, or surely will be, when it resolves. */
  async stop(): Promise<void> {
    this.#stopping.abort(new TenureError("ELECTOR_CLOSED", "the node is stopping"));
    await this.#campaign;
    this.#handedOver();
  }

  epoch(): number | null {
    const reign = this.#reign;
    return reign !== null && this.#options.elector.gate.isLeader ? reign.epoch : null;
  }

  isTurningOver(): boolean {
    return this.#handingOver !== null || this.#isClearing;
  }

  async confirm(): Promise<boolean> {
    const reign = this.#reign;
    if (reign === null || this.epoch() === null || reign.confirmations.isFull) return false;
    return (await reign.confirmations.ask()) && this.#reign === reign && this.epoch() !== null;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The gate may have closed or opened. */
  look(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Lets the scope go, so that another leads. False: this node does not lead. */
  handOver(): boolean {
    const reign = this.#reign;
    if (reign === null) return false;
    const { clock } = this.#options;
    this.#handingOver?.cancel();
    this.#handingOver = clock.setTimer(clock.monotonicMs() + HANDING_OVER_MS_MAX, () => this.#handedOver());
    reign.handOver();
    return true;
  }

  /** One that does not want to lead lets go, and campaigns no more. */
  setWilling(isWilling: boolean): void {
    if (isWilling === this.#isWilling) return;
    this.#isWilling = isWilling;
    if (isWilling || !this.handOver()) this.#turn.abort(new TenureError("ELECTOR_CLOSED", "the node was drained"));
  }

  /** Somebody leads, wherever. */
  heardOfLeader(): void {
    if (this.#reign === null) this.#handedOver();
  }

  #handedOver(): void {
    if (this.#handingOver === null) return;
    this.#handingOver.cancel();
    this.#handingOver = null;
    this.look();
  }

  async #run(): Promise<void> {
    const { elector, logger } = this.#options;
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
        await this.#pause(REFUSED_PAUSE_MS);
      }
    }
  }

  async #lead(term: Term): Promise<void> {
    const { epoch, signal } = term;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const readIndex = async (timeoutMs: number): Promise<number | null> =>
      (await this.#within(timeoutMs, this.#options.confirm(epoch))) ? epoch : null;
    const reign: Reign = { epoch, confirmations: new Confirmations({ readIndex }), handOver: resolve };
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) return;
    if (!(await this.#cleared(epoch))) return;
    if (signal.aborted) return this.#options.clearance?.release();
    this.#reign = reign;
    this.#options.clearance?.opened(epoch);
    this.#handedOver();
    this.look();
    await over;
    this.#reign = null;
    reign.confirmations.close();
    this.look();
    this.#options.clearance?.release();
  }

  /** False: the worker is not gone, and another must lead. */
  async #cleared(epoch: number): Promise<boolean> {
    const { clearance, logger } = this.#options;
    if (clearance === undefined) return true;
    this.#isClearing = true;
    this.look();
    const isCleared = await this.#within(CLEAR_MS_MAX, clearance.clear(epoch)).catch(() => false);
    this.#isClearing = false;
    if (isCleared) return true;
    const why = `this node was elected (epoch ${epoch}), and its worker is not gone after ${CLEAR_MS_MAX} ms: another must lead`;
    logger.error({ event: "not-cleared", epoch }, why);
    clearance.release(true);
    this.look();
    return false;
  }

  async #within(limitMs: number, answer: Promise<boolean>): Promise<boolean> {
    const { clock } = this.#options;
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = clock.setTimer(clock.monotonicMs() + limitMs, () => resolve(false));
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
    }
  }

  async #pause(ms: number): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(clock.monotonicMs() + ms, resolve);
      const stopped = (): void => {
        timer.cancel();
        resolve();
      };
      signal.addEventListener("abort", stopped, { once: true });
    });
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
