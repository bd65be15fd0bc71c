// Scopes that other processes lead through Tenure's own servers: the leader of the cluster decides, every node shows the
// applied state (leadership/reign.ts).
//
// Why no two clients trust their gate for one scope at one time. A client trusts a hold until s + ttl − margin, where s is
// when it SENT the request that was last answered (trap 44). Call a the time at which that request arrived: s ≤ a.
// 1. The same leader. It ends a hold when ttl has passed since the last such a, or since the grant was applied, which is
//    later than the arrival of its request. So the next grant comes after s + ttl.
// 2. A later leader. It ends no hold before it has served for a whole ttl, so it is enough that it was elected after a.
//    - A renewal was answered after a read of the Raft index that started after a: a majority took the old leader for its
//      leader after a. The later one was elected by a majority that has a node in common with it, after that.
//    - A grant was answered when it was committed in the old leader's term: a majority has stored it, after a; the later
//      leader was elected after that, by the same argument, and has the grant in its log.
//    - A grant that is told again is told as a renewal.
//    A cluster that was restored paused ends no hold, and counts each from its resumption, as a later leader does: whoever
//    trusts in it may have renewed with the cluster that it is a copy of until a moment before.
// 3. The holder itself resigned: it trusts no longer when it sends that.
// All of it is measured by clocks that run at different rates; the client's margin pays for that. `forced` is the exception,
// as it says: an operator takes a scope from a holder who may still trust it, and only the epoch protects what it writes to.
//
// Epochs: a grant's is the place of its record in the log, so they only grow, also across leaders.

import type { TenureError } from "../../core/kit/errors.ts";
import { checkAcquire, checkHold, checkScope, type ScopesFold, viewOf } from "../../core/scopes/index.ts";
import { isOfScope, type StateRecord } from "../../core/state/index.ts";
import type {
  AcquireAnswer,
  AcquireRequest,
  RenewAnswer,
  Scopes,
  ScopeTransition,
  ScopeView,
} from "../../ports/scopes.ts";
import type { Door } from "../leadership/reign.ts";
import type { ScopesReign } from "./scopes-reign.ts";
import { ScopeWatchers } from "./watchers.ts";

export interface ScopesServiceOptions {
  readonly door: () => Door<{ readonly scopes: ScopesReign }>;
  /** What is applied on this node. */
  readonly applied: ScopesFold;
  /** Why no new holds are granted; null: they are. Renewals write nothing, and resigning frees: they go on. */
  readonly refusesNew?: (() => TenureError | null) | undefined;
}

export class ScopesService implements Scopes {
  readonly #options: ScopesServiceOptions;
  readonly #watchers = new ScopeWatchers();
  #isClosed = false;

  constructor(options: ScopesServiceOptions) {
    this.#options = options;
  }

  /** Safe to call twice. */
  close(): void {
    this.#isClosed = true;
    this.#watchers.close();
  }

  get stats(): { readonly scopes: number; readonly held: number; readonly waiting: number; readonly watching: number } {
    const { applied, door } = this.#options;
    const waiting = door().current?.scopes.waiting ?? 0;
    return { scopes: applied.size, held: applied.held, waiting, watching: this.#watchers.total };
  }

  // ---- what the leader decides: in the turn in which it is asked, unless it must wait for a change of leaders ----

  async acquire(request: AcquireRequest, signal: AbortSignal): Promise<AcquireAnswer> {
    const refusal = this.#options.refusesNew?.() ?? null;
    if (refusal !== null) throw refusal;
    checkAcquire(request);
    return (this.#now() ?? (await this.#next())).acquire(request, signal);
  }

  async renew(scope: string, session: string, epoch: number): Promise<RenewAnswer> {
    checkHold(scope, session, epoch);
    return (this.#now() ?? (await this.#next())).renew(scope, session, epoch);
  }

  async resign(scope: string, session: string, epoch: number): Promise<void> {
    checkHold(scope, session, epoch);
    return (this.#now() ?? (await this.#next())).resign(scope, session, epoch);
  }

  async askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null> {
    checkScope(scope);
    return (this.#now() ?? (await this.#next())).askResign(scope, force);
  }

  #now(): ScopesReign | null {
    return this.#options.door().now()?.scopes ?? null;
  }

  async #next(): Promise<ScopesReign> {
    return (await this.#options.door().next()).scopes;
  }

  // ---- what every node shows -----------------------------------------------------------------------

  list(after: string | null, limit: number): readonly ScopeView[] {
    return this.#options.applied.list(after, limit).map(viewOf);
  }

  get(scope: string): ScopeView | null {
    const state = this.#options.applied.get(scope);
    return state === undefined ? null : viewOf(state);
  }

  history(scope: string): readonly ScopeTransition[] {
    return this.#options.applied.get(scope)?.history ?? [];
  }

  async changed(
    scope: string,
    known: { readonly epoch: number; readonly held: boolean },
    signal: AbortSignal,
  ): Promise<ScopeView | null> {
    checkScope(scope);
    const isDue = (): boolean => {
      const { epoch, hold } = this.#options.applied.get(scope) ?? { epoch: 0, hold: null };
      return epoch !== known.epoch || (hold !== null) !== known.held;
    };
    if (!this.#isClosed) await this.#watchers.wait(scope, isDue, signal);
    return this.get(scope);
  }

  // ---- records -------------------------------------------------------------------------------------

  applied(record: StateRecord): void {
    for (const change of record) if (isOfScope(change)) this.#watchers.changed(change.scope);
  }

  /** A snapshot was restored. */
  allChanged(): void {
    this.#watchers.allChanged();
  }
}
