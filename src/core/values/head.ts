// The leader's head of the values: the applied ones, and on top of them what this leader has appended (core/kit/keyed/head.ts).

import { KeyedHead } from "../kit/keyed/head.ts";
import type { ValuesFold, ValuesReader } from "./fold.ts";
import { evolveValue, type ValueEvent, type ValueState, weighValue } from "./value-state.ts";

export class ValuesHead<Batch> implements ValuesReader {
  readonly #applied: ValuesFold;
  readonly #head: KeyedHead<ValueState, Batch>;

  constructor(applied: ValuesFold) {
    this.#applied = applied;
    this.#head = new KeyedHead((name) => applied.get(name), weighValue);
  }

  get size(): number {
    return this.#applied.size + this.#head.ahead[0]!;
  }

  get bytes(): number {
    return this.#applied.bytes + this.#head.ahead[1]!;
  }

  get(name: string): ValueState | undefined {
    return this.#head.get(name);
  }

  underWay(name: string): Batch | null {
    return this.#head.underWay(name);
  }

  push(event: ValueEvent, version: number, position: number, batch: Batch): void {
    this.#head.push(event.name, evolveValue(event, version), position, batch);
  }

  applied(name: string, position: number): void {
    this.#head.applied(name, position);
  }

  recount(): void {
    this.#head.recount();
  }

  clear(): void {
    this.#head.clear();
  }
}
