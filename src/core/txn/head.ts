// The leader's head of the transactions: the applied ones, and on top of them what this leader has appended (core/kit/keyed/head.ts).

import type { TxnEvent } from "./events.ts";
import type { TxnsFold } from "./fold.ts";
import type { TcFence, TxnReserved, TxnState } from "./model.ts";
import type { LockKey, TxnsReader } from "./view.ts";

export class TxnsHead<Batch> implements TxnsReader {
  readonly #applied: TxnsFold;

  constructor(applied: TxnsFold) {
    this.#applied = applied;
  }
  get horizon(): string | null {
    return this.#applied.horizon;
  }
  get fence(): TcFence | null {
    throw new Error("not written yet");
  }
  get staged(): number {
    throw new Error("not written yet");
  }
  get prepared(): number {
    throw new Error("not written yet");
  }
  get unsettled(): number {
    throw new Error("not written yet");
  }
  get bytes(): number {
    throw new Error("not written yet");
  }
  get reserved(): TxnReserved {
    return this.#applied.reserved;
  }
  get(id: string): TxnState | undefined {
    return this.#applied.get(id);
  }
  lockedBy(key: LockKey): string | null {
    return this.#applied.lockedBy(key);
  }
  underWay(id: string): Batch | null {
    throw new Error(`not written yet: ${id}`);
  }
  push(event: TxnEvent, place: number, position: number, batch: Batch): void {
    throw new Error(`not written yet: ${event.kind} ${place} ${position} ${String(batch)}`);
  }
  applied(event: TxnEvent, position: number): void {
    throw new Error(`not written yet: ${event.kind} ${position}`);
  }
  recount(): void {}
  clear(): void {}
}
