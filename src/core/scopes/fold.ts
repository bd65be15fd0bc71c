// All scopes, folded from the log: what is applied on this node. Equal on every node at the same position.
// Invariants:
// - At most SCOPES_MAX are kept. Where a new one is granted and all places are taken, the one that has been free longest is
//   forgotten: an epoch is a place in the log, so forgetting a scope never brings an old epoch back. One that is held is
//   never forgotten.
// - A record that can't be read, or does not fit the state, changes nothing and is counted. One of a later format was
//   applied by others: FORMAT_UNSUPPORTED is thrown, and the node must end before its state is another one.
// - The names are kept in order as they come and go: a page of them costs what is on it, however many there are.

import { TenureError } from "../kit/errors.ts";
import { SCOPES_MAX } from "../kit/limits.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import { decodeEvent, SCOPE_EVENT_VERSION, type ScopeEvent } from "./events.ts";
import { SCOPES_UNPREPARED_MAX } from "./limits.ts";
import { epochAt, evolveScope, type ScopeState } from "./scope-state.ts";
import { decodeScopes, encodeScopes, prepareScope } from "./snapshot.ts";

/** What decisions look at: the applied state, or the leader's head on top of it. */
export interface ScopesReader {
  /** Epochs are counted from here: see `epochAt`. */
  readonly epochBase: number;
  get(scope: string): ScopeState | undefined;
  /** Whether one more scope could be held. */
  readonly hasRoom: boolean;
}

export class ScopesFold implements Fold, ScopesReader {
  readonly counts = { malformed: 0, unfit: 0 };
  readonly #scopes = new Map<string, ScopeState>();
  /** Those that nobody holds, in the order in which they became free. */
  readonly #free = new Set<string>();
  readonly #scopesMax: number;
  /** In the order of their last change: a scope that changes all the time is prepared when the snapshot is taken. */
  readonly #unprepared = new Set<string>();
  #epochBase = 0;
  /** In order. */
  #names: string[] = [];

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

  get hasRoom(): boolean {
    return this.held < this.#scopesMax;
  }

  get(scope: string): ScopeState | undefined {
    return this.#scopes.get(scope);
  }

  /** By name: at most `limit` behind the name `after`, from the first where that is null. */
  list(after: string | null, limit: number): readonly ScopeState[] {
    const from = after === null ? 0 : this.#placeBehind(after);
    return this.#names.slice(from, from + limit).map((name) => this.#scopes.get(name) as ScopeState);
  }

  /** In no order. */
  all(): Iterable<ScopeState> {
    return this.#scopes.values();
  }

  apply({ position, data }: LogRecord): void {
    const event = decodeEvent(data);
    if (event.kind === "malformed") this.counts.malformed++;
    else if (event.kind === "later-version") throw laterVersion(event.version);
    else if (!this.#evolve(event, position)) this.counts.unfit++;
  }

  snapshot(): Uint8Array {
    const free = [...this.#free].map((name) => this.#scopes.get(name) as ScopeState);
    const held = this.list(null, this.#names.length).filter(({ hold }) => hold !== null);
    this.#unprepared.clear();
    return encodeScopes({ epochBase: this.#epochBase, scopes: [...free, ...held] });
  }

  restore(data: Uint8Array, _head: LogHead): void {
    const { epochBase, scopes } = decodeScopes(data);
    this.#epochBase = epochBase;
    this.#scopes.clear();
    this.#free.clear();
    this.#unprepared.clear();
    this.#names = scopes.map(({ scope }) => scope).toSorted();
    for (const state of scopes) this.#put(state);
  }

  #evolve(event: ScopeEvent, position: number): boolean {
    const before = this.#scopes.get(event.scope);
    const after = evolveScope(before, event, epochAt(this.#epochBase, position));
    if (after === null) return false;
    if (before === undefined) {
      if (!this.#makeRoom()) return false;
      this.#names.splice(this.#placeBehind(event.scope), 0, event.scope);
    }
    this.#put(after);
    this.#prepareSome(after.scope);
    return true;
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

  #makeRoom(): boolean {
    if (this.#scopes.size < this.#scopesMax) return true;
    const [oldest] = this.#free;
    if (oldest === undefined) return false;
    this.#free.delete(oldest);
    this.#scopes.delete(oldest);
    this.#names.splice(this.#placeBehind(oldest) - 1, 1);
    return true;
  }

  /** Where the first name stands that is behind this one. */
  #placeBehind(name: string): number {
    let from = 0;
    let to = this.#names.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#names[middle] as string) <= name) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

function laterVersion(version: number): TenureError {
  return new TenureError(
    "FORMAT_UNSUPPORTED",
    `a record of a scope has format ${version}, and this node reads ${SCOPE_EVENT_VERSION} at most. It stops, because others have applied it: start the newer version of Tenure here too.`,
  );
}
