// A controller's side of the channel to its supervisor (messages.ts): asks for its node to be cleared before it opens its gate,
// and says when it does not lead any more.
//
//   idle ──clear, empty──▶ asked ──cleared──▶ idle        the next question, `release` and, of an `empty`, time end one too
//
// The stamps in the log are of the clock that all processes of the machine share: "agent-gone" of the supervisor lies before
// "gate-open", and "gate-closed" before the next "agent-started".

import { EMPTIED } from "../core/supervise/node.ts";
import type { Clearance } from "../ports/clearance.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { CLEARANCE_HOLD_MS, EMPTY_ANSWER_MS, EMPTY_NODE_MS } from "./limits.ts";
import { type FromController, readCleared } from "./messages.ts";

export interface SupervisedClearanceOptions {
  readonly tell: (message: FromController) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly nowNs: () => bigint;
}

export class SupervisedClearance implements Clearance {
  readonly #options: SupervisedClearanceOptions;
  #asked: { readonly epoch: number; readonly resolve: (isCleared: boolean) => void } | null = null;
  #goneAtNs = "";
  #isOpen = false;

  constructor(options: SupervisedClearanceOptions) {
    this.#options = options;
  }

  /** What the supervisor said: nothing is known of its form. */
  heard(message: unknown): void {
    const cleared = readCleared(message);
    if (cleared === null || cleared.epoch !== this.#asked?.epoch) return;
    this.#goneAtNs = cleared.goneAtNs;
    this.#answer(true);
  }

  clear(epoch: number): Promise<boolean> {
    return this.#ask(epoch, { kind: "clear", epoch });
  }

  async empty(): Promise<boolean> {
    // Whoever leads, or is about to, has asked for more.
    if (this.#asked !== null || this.#isOpen) return false;
    const { clock } = this.#options;
    const answer = this.#ask(EMPTIED, { kind: "empty", forMs: EMPTY_NODE_MS });
    const forget = clock.setTimer(clock.monotonicMs() + EMPTY_ANSWER_MS, () => {
      if (this.#asked?.epoch === EMPTIED) this.#answer(false);
    });
    const isEmpty = await answer;
    forget.cancel();
    return isEmpty;
  }

  opened(epoch: number): void {
    this.#isOpen = true;
    const stamps = { gone_at_ns: this.#goneAtNs, at_ns: String(this.#options.nowNs()) };
    const text = `this node leads in epoch ${epoch}, and no worker runs on it`;
    this.#options.logger.info({ event: "gate-open", epoch, ...stamps }, text);
  }

  release(isLate = false): void {
    this.#answer(false);
    if (this.#isOpen) {
      const fields = { event: "gate-closed", at_ns: String(this.#options.nowNs()) };
      this.#options.logger.info(fields, "this node does not lead any more");
    }
    this.#isOpen = false;
    this.#options.tell({ kind: "released", holdMs: isLate ? CLEARANCE_HOLD_MS : 0 });
  }

  drained(isDrained: boolean): void {
    this.#options.tell({ kind: "drained", isDrained });
  }

  #ask(epoch: number, message: FromController): Promise<boolean> {
    this.#answer(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#asked = { epoch, resolve };
    this.#options.tell(message);
    return promise;
  }

  #answer(isCleared: boolean): void {
    this.#asked?.resolve(isCleared);
    this.#asked = null;
  }
}

/** The name under which a node's own worker is known. */
export function workerName(nodeId: string): string {
  return `${nodeId}-worker`;
}
