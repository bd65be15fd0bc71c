// The leader's head of the scopes: the applied ones, and on top of them what this leader has appended (core/kit/keyed/head.ts).

import { KeyedHead } from "../kit/keyed/head.ts";
import type { ScopeEvent } from "./events.ts";
import type { ScopesFold, ScopesReader } from "./fold.ts";
import { epochAt, evolveScope, type ScopeState } from "./scope-state.ts";

export class ScopesHead<Batch> implements ScopesReader {
  readonly #applied: ScopesFold;
  readonly #head: KeyedHead<ScopeState, Batch>;

  constructor(applied: ScopesFold) {
    this.#applied = applied;
    this.#head = new KeyedHead(
      (scope) => applied.get(scope),
      (state) => [Number((state?.hold ?? null) !== null)],
    );
  }

  get epochBase(): number {
    return this.#applied.epochBase;
  }

  get room(): number {
    return this.#applied.room - this.#head.ahead[0]!;
  }

  get(scope: string): ScopeState | undefined {
    return this.#head.get(scope);
  }

  underWay(scope: string): Batch | null {
    return this.#head.underWay(scope);
  }

  /** An event that is being appended, at this position. */
  push(event: ScopeEvent, position: number, batch: Batch): void {
    const state = evolveScope(this.get(event.scope), event, epochAt(this.epochBase, position));
    if (state !== null) this.#head.push(event.scope, state, position, batch);
  }

  applied(scope: string, position: number): void {
    this.#head.applied(scope, position);
  }

  recount(): void {
    this.#head.recount();
  }

  clear(): void {
    this.#head.clear();
  }
}
