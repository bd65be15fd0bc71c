// The leader's head: the applied state, and on top of it what this leader has appended and is not applied yet (design D11).
// Invariants:
// - Decisions look here, so no two appends under way contradict each other.
// - A scope's place on top remembers the append that it came from: an answer that rests on it leaves when that append is
//   committed (trap 56a).
// - `Batch` is the caller's append; here only its identity and its positions count.

import { epochAt, evolveScope, type ScopeState } from "./scope-state.ts";
import type { ScopeEvent } from "./events.ts";
import type { ScopesFold, ScopesReader } from "./fold.ts";

interface Uncommitted<Batch> {
  readonly state: ScopeState;
  readonly position: number;
  readonly batch: Batch;
}

export class ScopesHead<Batch> implements ScopesReader {
  readonly #applied: ScopesFold;
  readonly #uncommitted = new Map<string, Uncommitted<Batch>>();

  constructor(applied: ScopesFold) {
    this.#applied = applied;
  }

  get generation(): number {
    return this.#applied.generation;
  }

  get hasRoom(): boolean {
    // Exact only when it may be close: most of the time one look is enough.
    if (this.#applied.held + this.#uncommitted.size < this.#applied.scopesMax) return true;
    let { held } = this.#applied;
    for (const [scope, { state }] of this.#uncommitted) {
      const isHeld = (this.#applied.get(scope)?.hold ?? null) !== null;
      if (isHeld !== (state.hold !== null)) held += isHeld ? -1 : 1;
    }
    return held < this.#applied.scopesMax;
  }

  get(scope: string): ScopeState | undefined {
    return this.#uncommitted.get(scope)?.state ?? this.#applied.get(scope);
  }

  /** The append on which the present value of this scope rests; null: it is committed. */
  underWay(scope: string): Batch | null {
    return this.#uncommitted.get(scope)?.batch ?? null;
  }

  /** An event that is being appended, at this position. */
  push(event: ScopeEvent, position: number, batch: Batch): void {
    const state = evolveScope(this.get(event.scope), event, epochAt(this.generation, position));
    if (state !== null) this.#uncommitted.set(event.scope, { state, position, batch });
  }

  /** The record at this position about this scope is applied. */
  applied(scope: string, position: number): void {
    const top = this.#uncommitted.get(scope);
    if (top !== undefined && top.position <= position) this.#uncommitted.delete(scope);
  }

  /** Appends were given up: what is left is pushed again. */
  clear(): void {
    this.#uncommitted.clear();
  }
}
