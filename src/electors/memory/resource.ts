// A resource for tests that checks epochs where it is written, as a fence does: what is not of the epoch in force
// is refused, whatever the writer believes.

import { StaleEpochError } from "../../core/kit/errors.ts";
import type { Store } from "./store.ts";

export interface TestResource<Value = unknown> {
  /** What was accepted, in order. */
  readonly writes: readonly { readonly epoch: number; readonly value: Value }[];
  /** How many were refused. */
  readonly refused: number;
  /** Rejects with StaleEpochError unless `epoch` is the one in force at this moment. */
  write(epoch: number, value: Value): Promise<void>;
}

export class FencedResource<Value> implements TestResource<Value> {
  readonly writes: { readonly epoch: number; readonly value: Value }[] = [];
  refused = 0;
  readonly #store: Store;
  readonly #scope: string;

  constructor(store: Store, scope: string) {
    this.#store = store;
    this.#scope = scope;
  }

  write(epoch: number, value: Value): Promise<void> {
    if (!this.#store.isInForce(this.#scope, epoch)) {
      this.refused++;
      return Promise.reject(new StaleEpochError(this.#scope, epoch));
    }
    this.writes.push({ epoch, value });
    return Promise.resolve();
  }
}
