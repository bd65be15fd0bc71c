// The leader's head: the applied state, and on top of it what this leader has appended and is not applied yet (design D11).
// Invariants:
// - Decisions look here, so no two appends under way contradict each other.
// - A scope's place on top remembers the append that it came from: an answer that rests on it leaves when that append is
//   committed (trap 56a).
// - `Batch` is the caller's append; here only its identity and its positions count.
// - How many scopes are held on top is counted as events come and go: a decision costs the same however many are under way.

import { epochAt, evolveScope, type ScopeState } from "./scope-state.ts";
import type { ScopeEvent } from "./events.ts";
import type { ScopesFold, ScopesReader } from "./fold.ts";

interface Uncommitted<Batch> {
  readonly state: ScopeState;
  readonly position: number;
  readonly batch: Batch;
  /** Scopes that are held here and not in the applied state: 1, 0 or -1. */
  heldAhead: number;
}

export class ScopesHead<Batch> implements ScopesReader {
  readonly #applied: ScopesFold;
  readonly #uncommitted = new Map<string, Uncommitted<Batch>>();
  /** The sum of all `heldAhead`. */
  #heldAhead = 0;

  constructor(applied: ScopesFold) {
    this.#applied = applied;
  }

  get epochBase(): number {
    return this.#applied.epochBase;
  }

  get hasRoom(): boolean {
    return this.#applied.held + this.#heldAhead < this.#applied.scopesMax;
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
    const state = evolveScope(this.get(event.scope), event, epochAt(this.epochBase, position));
    if (state === null) return;
    this.#heldAhead -= this.#uncommitted.get(event.scope)?.heldAhead ?? 0;
    const top = { state, position, batch, heldAhead: 0 };
    this.#uncommitted.set(event.scope, top);
    this.#count(top);
  }

  /** The record at this position about this scope is applied: to be said in the turn in which it is. */
  applied(scope: string, position: number): void {
    const top = this.#uncommitted.get(scope);
    if (top === undefined) return;
    this.#heldAhead -= top.heldAhead;
    if (top.position <= position) this.#uncommitted.delete(scope);
    else this.#count(top);
  }

  /** The applied state has jumped. */
  recount(): void {
    this.#heldAhead = 0;
    for (const top of this.#uncommitted.values()) this.#count(top);
  }

  /** Appends were given up: what is left is pushed again. */
  clear(): void {
    this.#uncommitted.clear();
    this.#heldAhead = 0;
  }

  /** Of one that is in no sum yet. */
  #count(top: Uncommitted<Batch>): void {
    const isHeldBefore = (this.#applied.get(top.state.scope)?.hold ?? null) !== null;
    top.heldAhead = Number(top.state.hold !== null) - Number(isHeldBefore);
    this.#heldAhead += top.heldAhead;
  }
}
