// All scopes, folded from the log: what is applied on this node. Equal on every node at the same position.
// Invariants:
// - At most SCOPES_MAX are kept. Where a new one is granted and all places are taken, the one that has been free longest is
//   forgotten: an epoch is a place in the log, so forgetting a scope never brings an old epoch back. One that is held is
//   never forgotten.
// - An event is applied where it fits; what is done with one that does not, the record decides (core/state).

import { assert } from "../kit/assert.ts";
import { SCOPES_MAX } from "../kit/limits.ts";
import { SortedNames } from "../kit/keyed/sorted-names.ts";
import type { ScopeEvent } from "./events.ts";
import { SCOPES_UNPREPARED_MAX } from "./limits.ts";
import { evolveScope, type ScopeState } from "./scope-state.ts";
import { decodeScopes, encodeScopes, prepareScope } from "./snapshot.ts";

/** What decisions look at: the applied state, or the leader's head on top of it. */
export interface ScopesReader {
  /** Epochs are counted from here: see `epochAt`. */
  readonly epochBase: number;
  get(scope: string): ScopeState | undefined;
  /** So many more scopes could be held. */
  readonly room: number;
}

export class ScopesFold implements ScopesReader {
  readonly #scopes = new Map<string, ScopeState>();
  /** Those that nobody holds, in the order in which they became free. */
  readonly #free = new Set<string>();
  readonly #scopesMax: number;
  /** In the order of their last change: a scope that changes all the time is prepared when the snapshot is taken. */
  readonly #unprepared = new Set<string>();
  #epochBase = 0;
  #names = new SortedNames();

  constructor(scopesMax = SCOPES_MAX) {
    this.#scopesMax = scopesMax;
  }

  get epochBase(): number {
    return this.#epochBase;
  }

  get size(): number {
    return this.#scopes.size;
  }

  get held(): number {
    return this.#scopes.size - this.#free.size;
  }

  get scopesMax(): number {
    return this.#scopesMax;
  }

  get room(): number {
    return this.#scopesMax - this.held;
  }

  get(scope: string): ScopeState | undefined {
    return this.#scopes.get(scope);
  }

  /** By name: at most `limit` after the name `after`, from the first where that is null. */
  list(after: string | null, limit: number): readonly ScopeState[] {
    return this.#names.page(after, limit).map((name) => this.#scopes.get(name) as ScopeState);
  }

  /** In no order. */
  all(): Iterable<ScopeState> {
    return this.#scopes.values();
  }

  /** Whether the event makes sense here. `epoch`: of a grant at its place in the log. `room`: so many may be held besides, when it happens. */
  fits(event: ScopeEvent, epoch: number, room = this.room): boolean {
    if (evolveScope(this.#scopes.get(event.scope), event, epoch) === null) return false;
    return event.kind !== "granted" || room > 0;
  }

  /** One that fits. */
  evolve(event: ScopeEvent, epoch: number): void {
    const before = this.#scopes.get(event.scope);
    const after = evolveScope(before, event, epoch);
    assert(after !== null, "an event that is applied fits");
    if (before === undefined) {
      this.#makeRoom();
      this.#names.add(event.scope);
    }
    this.#put(after);
    this.#prepareSome(after.scope);
  }

  snapshot(): Uint8Array {
    const free = [...this.#free].map((name) => this.#scopes.get(name) as ScopeState);
    const held = this.list(null, this.#names.size).filter(({ hold }) => hold !== null);
    this.#unprepared.clear();
    return encodeScopes({ epochBase: this.#epochBase, scopes: [...free, ...held] });
  }

  restore(data: Uint8Array): void {
    const { epochBase, scopes } = decodeScopes(data);
    this.#epochBase = epochBase;
    this.#scopes.clear();
    this.#free.clear();
    this.#unprepared.clear();
    this.#names = new SortedNames(scopes.map(({ scope }) => scope));
    for (const state of scopes) this.#put(state);
  }

  #prepareSome(changed: string): void {
    this.#unprepared.delete(changed);
    this.#unprepared.add(changed);
    if (this.#unprepared.size <= SCOPES_UNPREPARED_MAX) return;
    const [oldest] = this.#unprepared;
    if (oldest === undefined) return;
    this.#unprepared.delete(oldest);
    const state = this.#scopes.get(oldest);
    if (state !== undefined) prepareScope(state);
  }

  #put(state: ScopeState): void {
    this.#scopes.set(state.scope, state);
    if (state.hold === null) this.#free.add(state.scope);
    else this.#free.delete(state.scope);
  }

  #makeRoom(): void {
    if (this.#scopes.size < this.#scopesMax) return;
    const [oldest] = this.#free;
    assert(oldest !== undefined, "an event that is applied has room");
    this.#free.delete(oldest);
    this.#scopes.delete(oldest);
    this.#names.remove(oldest);
  }
}
