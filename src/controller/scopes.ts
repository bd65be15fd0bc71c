// Scopes that other processes lead through Tenure's own servers: the leader of the cluster decides, every node shows the
// applied state.
//
//   not leading ──established──▶ taking over (opens the log) ──▶ serving ──▶ not leading
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
// 3. The holder itself resigned: it trusts no longer when it sends that.
// All of it is measured by clocks that run at different rates; the client's margin pays for that. `forced` is the exception,
// as it says: an operator takes a scope from a holder who may still trust it, and only the epoch protects what it writes to.
//
// Epochs: a grant's is the place of its record in the log, so they only grow, also across leaders.

import { TenureError } from "../core/kit/errors.ts";
import type { Random } from "../core/kit/random.ts";
import type { RaftEvent } from "../core/raft/index.ts";
import { checkAcquire, checkHold, checkScope, decodeEvent, type ScopesFold, viewOf } from "../core/scopes/index.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Consensus } from "../ports/consensus.ts";
import type { Log, LogRecord } from "../ports/log.ts";
import type {
  AcquireAnswer,
  AcquireRequest,
  RenewAnswer,
  Scopes,
  ScopeTransition,
  ScopeView,
} from "../ports/scopes.ts";
import { Reign } from "./scopes-reign.ts";
import { ScopeWatchers } from "./scopes-watchers.ts";
import { Turnover } from "./leadership/turnover.ts";

/** An open that was refused (too much waits, a transfer) is tried again after about this time. */
const OPEN_RETRY_MS = 50;

export interface ScopesServiceOptions {
  readonly log: Log;
  /** What the log is folded into on this node. */
  readonly applied: ScopesFold;
  readonly consensus: Pick<Consensus, "status" | "readIndex" | "subscribe">;
  readonly clock: Clock;
  readonly random: Random;
}

export class ScopesService implements Scopes {
  readonly #options: ScopesServiceOptions;
  readonly #watchers = new ScopeWatchers();
  readonly #turnover: Turnover;
  readonly #stopEvents: () => void;
  #stopRecords: () => void = () => undefined;
  #reign: Reign | null = null;
  #retry: Timer | null = null;
  #isClosed = false;

  constructor(options: ScopesServiceOptions) {
    this.#options = options;
    this.#turnover = new Turnover(options.clock, () => this.#isTurningOver());
    this.#follow();
    this.#stopEvents = options.consensus.subscribe((event) => this.#event(event));
    const { role, established, term } = options.consensus.status();
    if (role === "leader" && established) this.#begin(term);
  }

  /** Who waits is told that this node does not lead. Safe to call twice. */
  close(): void {
    this.#isClosed = true;
    this.#stopEvents();
    this.#stopRecords();
    this.#endReign();
    this.#turnover.end();
    this.#watchers.close();
  }

  get stats(): { readonly scopes: number; readonly held: number; readonly waiting: number; readonly watching: number } {
    const { size, held } = this.#options.applied;
    return { scopes: size, held, waiting: this.#reign?.waiting ?? 0, watching: this.#watchers.total };
  }

  // ---- what the leader decides: in the turn in which it is asked, unless it must wait for a change of leaders ----

  async acquire(request: AcquireRequest, signal: AbortSignal): Promise<AcquireAnswer> {
    checkAcquire(request);
    if (this.#isTurningOver()) await this.#turnover.over();
    return this.#serving().acquire(request, signal);
  }

  async renew(scope: string, session: string, epoch: number): Promise<RenewAnswer> {
    checkHold(scope, session, epoch);
    if (this.#isTurningOver()) await this.#turnover.over();
    return this.#serving().renew(scope, session, epoch);
  }

  async resign(scope: string, session: string, epoch: number): Promise<void> {
    checkHold(scope, session, epoch);
    if (this.#isTurningOver()) await this.#turnover.over();
    return this.#serving().resign(scope, session, epoch);
  }

  async askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null> {
    checkScope(scope);
    if (this.#isTurningOver()) await this.#turnover.over();
    return this.#serving().askResign(scope, force);
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

  // ---- leadership ----------------------------------------------------------------------------------

  #serving(): Reign {
    const reign = this.#reign;
    if (reign === null || !this.#leads(reign.term)) {
      throw new TenureError("NOT_LEADER", "This node does not lead. Ask the leader.");
    }
    if (reign.state === "serving") return reign;
    throw new TenureError(
      "NOT_LEADER",
      reign.state === "opening"
        ? "This node is taking over: it was elected and opens its log. Retry in a moment."
        : "This node stopped leading. Ask the new leader.",
    );
  }

  /** This node is about to serve, or to know who does instead. */
  #isTurningOver(): boolean {
    if (this.#isClosed) return false;
    const { role, transfer } = this.#options.consensus.status();
    if (transfer === "handing-over" || transfer === "awaiting") return true;
    return role === "leader" && this.#reign?.state !== "serving";
  }

  #leads(term: number): boolean {
    const status = this.#options.consensus.status();
    return status.role === "leader" && status.term === term && status.established;
  }

  #event(event: RaftEvent): void {
    if (event.kind === "established") this.#begin(event.term);
    else if (event.kind === "role" && this.#reign !== null) {
      if (event.role !== "leader" || event.term !== this.#reign.term) this.#endReign();
    }
    this.#turnover.look();
  }

  #begin(term: number): void {
    if (this.#isClosed || this.#reign?.term === term) return;
    this.#endReign();
    const { log, applied, clock, consensus } = this.#options;
    const reign = new Reign({
      term,
      log,
      applied,
      clock,
      consensus,
      leads: () => this.#leads(term),
      onOver: () => this.#over(reign),
    });
    this.#reign = reign;
    void this.#open(reign);
  }

  /** Its head is not what the log has any more. Where this node still leads, it opens again and compares (ports/log.ts). */
  #over(reign: Reign): void {
    if (this.#reign !== reign) return;
    this.#reign = null;
    if (this.#leads(reign.term)) this.#begin(reign.term);
  }

  #endReign(): void {
    this.#retry?.cancel();
    this.#reign?.end();
    this.#reign = null;
  }

  async #open(reign: Reign): Promise<void> {
    const { log, clock, random } = this.#options;
    try {
      const opened = await log.open(reign.term);
      if (opened.outcome === "opened") reign.serve(opened.head.position);
      else reign.end();
      this.#turnover.look();
    } catch {
      // Whatever it was, it may pass; if leadership went with it, an event says so, and this stops.
      if (this.#reign !== reign) return;
      const waitMs = OPEN_RETRY_MS * random.between(0.5, 1.5);
      this.#retry = clock.setTimer(clock.monotonicMs() + waitMs, () => void this.#open(reign));
    }
  }

  // ---- records -------------------------------------------------------------------------------------

  #follow(): void {
    const { log } = this.#options;
    this.#stopRecords();
    this.#stopRecords = log.subscribe(
      log.head().position + 1,
      (record) => this.#applied(record),
      () => {
        // A snapshot was restored: the state has jumped.
        this.#follow();
        this.#watchers.allChanged();
        if (this.#reign?.state === "serving") this.#reign.restartLeases();
      },
    );
  }

  #applied({ data, position }: LogRecord): void {
    const event = decodeEvent(data);
    if (event.kind === "malformed" || event.kind === "later-version") return;
    this.#reign?.applied(event, position);
    this.#watchers.changed(event.scope);
  }
}
