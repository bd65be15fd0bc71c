// The scopes under one leadership: who holds what, until when, and who waits. Nothing of it outlives it: the next leader counts every lease anew.
//
// What may be answered, and when: state/state-desk.ts. A renewal, and a grant that is repeated, are refused or confirmed as of after the request
// arrived.

import { StaleEpochError } from "../../core/kit/errors.ts";
import { LOOP_STALL_MS } from "../../core/kit/limits.ts";
import {
  decide,
  type HoldState,
  type ScopeCommand,
  type ScopeDecision,
  type ScopeEvent,
  type ScopesFold,
} from "../../core/scopes/index.ts";
import { isOfScope, type StateChange, type StateRecord } from "../../core/state/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { AcquireAnswer, AcquireRequest, RenewAnswer } from "../../ports/scopes.ts";
import { Leases } from "../leases.ts";
import { Slice } from "../slice.ts";
import type { Appends, Batch } from "../state/appends.ts";
import { overloaded, type StateDesk } from "../state/state-desk.ts";
import { Claim, ClaimQueues } from "./claims.ts";
import { BUSY_RETRY_MS, EXPIRY_RETRY_MS, HOLD_AGAIN_MAX, SCOPE_LEASES_CHECK_MS } from "./limits.ts";

export interface ScopesReignOptions {
  readonly desk: StateDesk;
  readonly applied: ScopesFold;
  /** The cluster is paused: no hold ends by the passing of time. `restartLeases` when it is not any more. */
  readonly isPaused: () => boolean;
}

export class ScopesReign {
  readonly #options: ScopesReignOptions;
  readonly #desk: StateDesk;
  readonly #clock: Clock;
  readonly #appends: Appends;
  readonly #claims = new ClaimQueues();
  /** Claims whose grants are under way, by scope. */
  readonly #granting = new Map<string, Claim>();
  readonly #leases = new Leases();
  /** Scopes that may be free though somebody waits: a grant of theirs was refused. */
  readonly #owed = new Set<string>();
  /** Before it they are not tried again. */
  #owedAtMs = 0;
  #timer: Timer | null = null;

  /** Every lease starts at its full duration. */
  constructor(options: ScopesReignOptions) {
    this.#options = options;
    this.#desk = options.desk;
    this.#clock = options.desk.clock;
    this.#appends = options.desk.appends;
    this.restartLeases();
  }

  get waiting(): number {
    return this.#claims.total;
  }

  // ---- its beginning and its end -------------------------------------------------------------------

  restartLeases(): void {
    this.#leases.clear();
    const nowMs = this.#clock.monotonicMs();
    for (const { scope, hold } of this.#options.applied.all()) {
      if (hold !== null) this.#leases.start(scope, hold.epoch, hold.ttlMs, nowMs);
    }
    this.#arm();
  }

  /** After the desk's. */
  end(): void {
    this.#timer?.cancel();
    this.#leases.clear();
    for (const claim of this.#claims.drain()) claim.fail(this.#desk.notLeader());
  }

  /** A record was applied here. */
  applied(event: ScopeEvent): void {
    if (this.#desk.isOver) return;
    const hold = this.#options.applied.get(event.scope)?.hold ?? null;
    if (event.kind === "granted" && hold !== null) {
      this.#leases.start(event.scope, hold.epoch, hold.ttlMs, this.#clock.monotonicMs());
      this.#arm();
      const claim = this.#claims.get(event.scope, hold.session);
      if (claim !== undefined) void this.#given(claim, hold);
    } else if (event.kind !== "granted" && hold === null) this.#leases.end(event.scope, event.epoch);
  }

  // ---- requests ------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest, signal: AbortSignal, attempt = 0): Promise<AcquireAnswer> {
    const { scope, session, waitMs } = request;
    if (signal.aborted) return this.#notGranted(scope);
    const hold = this.#holdOf(scope);
    if (hold?.session === session && attempt < HOLD_AGAIN_MAX) return this.#again(request, hold, signal, attempt);
    const queued = this.#claims.get(scope, session);
    if (queued !== undefined) return this.#wait(queued, waitMs, signal);
    this.#desk.admit();
    const lock = this.#appends.head.lockedBy({ scope });
    if (hold === null && lock === null && !this.#claims.has(scope)) return this.#grantNow(request, signal);
    if (waitMs === 0) {
      await this.#desk.settled({ scope }, ...(lock === null ? [] : [{ txn: lock }]));
      return this.#notGranted(scope);
    }
    if (!this.#claims.hasRoom(scope)) throw overloaded(`too many wait for scope "${scope}", or for all scopes`);
    const claim = new Claim(request);
    this.#claims.add(claim);
    return this.#wait(claim, waitMs, signal);
  }

  async renew(scope: string, session: string, epoch: number): Promise<RenewAnswer> {
    for (let attempt = 0; attempt < HOLD_AGAIN_MAX; attempt++) {
      const isExtended = isHold(this.#holdOf(scope), session, epoch);
      if (isExtended) this.#leases.touch(scope, epoch, this.#clock.monotonicMs());
      await this.#desk.confirmed();
      const hold = this.#holdOf(scope);
      await this.#appends.settled({ scope });
      if (!isHold(hold, session, epoch)) throw new StaleEpochError(scope, epoch);
      // Its end was being written when this arrived, and was given up since: it is in force, and was not extended.
      if (!isExtended) continue;
      // The wait may have let something happen: an end that is under way now is the next answer's business, not this one's.
      const resignRequested = this.#options.applied.get(scope)?.hold?.resignRequested ?? false;
      return { epoch, ttlMs: hold.ttlMs, resignRequested };
    }
    throw overloaded("the end of this hold is written and given up, again and again");
  }

  async resign(scope: string, session: string, epoch: number): Promise<void> {
    const decision = await this.#change({ kind: "resign", scope, session, epoch, atMs: this.#desk.wallMs() });
    if (decision.kind === "stale") throw new StaleEpochError(scope, epoch);
  }

  async askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null> {
    const kind = force ? "force" : "request-resign";
    const decision = await this.#change({ kind, scope, atMs: this.#desk.wallMs() });
    if (decision.kind === "event") return { epoch: decision.epoch };
    return decision.kind === "nothing" && decision.hold !== null ? { epoch: decision.hold.epoch } : null;
  }

  /** Decides, appends, and waits until it is committed. That there is nothing to do is said by a confirmed leader only. */
  async #change(command: ScopeCommand): Promise<ScopeDecision> {
    this.#desk.admit();
    let { decision, batch } = this.#free(command);
    if (batch === null) {
      await this.#desk.confirmed();
      ({ decision, batch } = this.#free(command));
    }
    await (batch === null ? this.#appends.settled({ scope: command.scope }) : batch.done);
    return decision;
  }

  // ---- grants --------------------------------------------------------------------------------------

  /** The same session asks again while it holds: an answer was lost. The lease restarts, as with a renewal. */
  async #again(request: AcquireRequest, hold: HoldState, signal: AbortSignal, attempt: number): Promise<AcquireAnswer> {
    const { scope, session } = request;
    this.#leases.touch(scope, hold.epoch, this.#clock.monotonicMs());
    const granting = this.#granting.get(scope);
    if (granting !== undefined) granting.interested++;
    try {
      await this.#appends.settled({ scope });
      // Also where the grant was just committed: that says nothing of the time at which this request arrived.
      await this.#desk.confirmed();
    } finally {
      if (granting !== undefined) granting.interested--;
    }
    const now = this.#holdOf(scope);
    if (!isHold(now, session, hold.epoch)) return this.acquire(request, signal, attempt + 1);
    return { granted: true, epoch: now.epoch, ttlMs: now.ttlMs };
  }

  /** A transaction has acquired the scope for a session that waits for it: that is its hold, and it would not renew what it does not know of. */
  async #given(claim: Claim, { epoch }: HoldState): Promise<void> {
    const { scope, session } = claim.request;
    this.#claims.remove(claim);
    claim.decided();
    try {
      await this.#desk.confirmed();
      await this.#appends.settled({ scope });
      const hold = this.#holdOf(scope);
      const isGiven = isHold(hold, session, epoch);
      claim.settle(isGiven ? { granted: true, epoch, ttlMs: hold.ttlMs } : this.#notGranted(scope));
    } catch (error) {
      claim.fail(error);
    }
  }

  #grantNow(request: AcquireRequest, signal: AbortSignal): Promise<AcquireAnswer> {
    const claim = new Claim(request);
    const answer = this.#wait(claim, request.waitMs, signal);
    const batch = this.#appends.begin();
    this.#grant(batch, claim);
    this.#appends.send(batch);
    return answer;
  }

  #wait(claim: Claim, waitMs: number, signal: AbortSignal): Promise<AcquireAnswer> {
    return claim.wait(this.#clock, waitMs, signal, () => {
      if (!claim.isWanted) this.#claims.remove(claim);
      return this.#notGranted(claim.request.scope);
    });
  }

  /** Adds the grant to the batch; false: there was no place, and the claim was told. */
  #grant(batch: Batch, claim: Claim): boolean {
    const { scope, session, identity, metadata, ttlMs } = claim.request;
    const command = { kind: "acquire", scope, session, identity, metadata, ttlMs, atMs: this.#desk.wallMs() } as const;
    const decision = decide(this.#appends.head.scopes, command, {
      position: this.#appends.positionIn(batch),
      locks: this.#appends.head,
    });
    if (decision.kind !== "event") {
      const { scopesMax } = this.#options.applied;
      const advice = "resign some, or wait until their leases end";
      claim.fail(overloaded(`${scopesMax} scopes are held, as many as a cluster has room for`, advice));
      return false;
    }
    this.#appends.add(batch, [decision.event]);
    this.#granting.set(scope, claim);
    claim.decided();
    batch.done.then(
      () => this.#granted(claim, decision.epoch),
      (error: unknown) => {
        if (this.#granting.get(scope) === claim) this.#granting.delete(scope);
        claim.fail(error);
      },
    );
    return true;
  }

  #granted(claim: Claim, epoch: number): void {
    const { scope, session, ttlMs } = claim.request;
    if (this.#granting.get(scope) === claim) this.#granting.delete(scope);
    const wasWanted = claim.isWanted;
    claim.settle({ granted: true, epoch, ttlMs });
    // Nobody would ever renew it.
    if (!wasWanted && !this.#desk.isOver) {
      this.#free({ kind: "resign", scope, session, epoch, atMs: this.#desk.wallMs() });
    }
  }

  /** Carries out what ends a hold, or asks for its end; who waits first is granted in the same append. */
  #free(command: ScopeCommand): { decision: ScopeDecision; batch: Batch | null } {
    const batch = this.#appends.begin();
    const decision = decide(this.#appends.head.scopes, command, {
      position: this.#appends.positionIn(batch),
      locks: this.#appends.head,
    });
    if (decision.kind !== "event") return { decision, batch: null };
    this.#appends.add(batch, [decision.event]);
    this.#grantNext(batch, command.scope);
    this.#appends.send(batch);
    return { decision, batch };
  }

  /** While a transaction locks it, it is granted to nobody: `freed` says when it is decided. */
  #grantNext(batch: Batch, scope: string): void {
    if (this.#holdOf(scope) !== null || this.#appends.head.lockedBy({ scope }) !== null) return;
    for (let claim = this.#claims.shift(scope); claim !== null; claim = this.#claims.shift(scope)) {
      if (this.#grant(batch, claim)) return;
    }
  }

  // ---- leases --------------------------------------------------------------------------------------

  #arm(pauseMs = 0): void {
    if (this.#desk.isOver || this.#timer !== null) return;
    if (this.#leases.size === 0 && this.#owed.size === 0) return;
    const nowMs = this.#clock.monotonicMs();
    const owedMs = this.#owed.size === 0 ? Infinity : this.#owedAtMs;
    const atMs = Math.max(nowMs + pauseMs, Math.min(this.#leases.nextMs, owedMs, nowMs + SCOPE_LEASES_CHECK_MS));
    this.#timer = this.#clock.setTimer(atMs, () => {
      this.#timer = null;
      this.#look(atMs);
    });
  }

  #look(dueMs: number): void {
    if (this.#desk.isOver) return;
    const nowMs = this.#clock.monotonicMs();
    // The process stood still, and renewals may be waiting outside: nobody's lease ends for that (trap 29).
    if (nowMs - dueMs >= LOOP_STALL_MS) this.#leases.stalled(nowMs - dueMs);
    if (this.#options.isPaused()) return this.#arm(SCOPE_LEASES_CHECK_MS);
    // What is due stays so until it can be written.
    if (!this.#desk.leads || this.#appends.isFull) return this.#arm(BUSY_RETRY_MS);
    const slice = new Slice(this.#clock);
    for (const { key: scope, epoch } of this.#leases.takeEach(nowMs, EXPIRY_RETRY_MS, slice)) {
      this.#free({ kind: "expire", scope, epoch, atMs: this.#desk.wallMs() });
    }
    if (nowMs >= this.#owedAtMs) this.#grantOwed();
    this.#arm();
  }

  /** As many as a slice of this turn and the appends have room for; one at least. */
  #grantOwed(): void {
    const slice = new Slice(this.#clock);
    for (const scope of this.#owed) {
      this.#owed.delete(scope);
      const batch = this.#appends.begin();
      this.#grantNext(batch, scope);
      this.#appends.send(batch);
      if (slice.isOver || this.#appends.isFull) return;
    }
  }

  /** A transaction has freed these, or locks them no longer, as the head has them. */
  freed(scopes: readonly string[]): void {
    const waited = scopes.filter((scope) => this.#claims.has(scope));
    if (this.#desk.isOver || waited.length === 0) return;
    for (const scope of waited) this.#owed.add(scope);
    this.#owedAtMs = this.#clock.monotonicMs();
    this.#timer?.cancel();
    this.#timer = null;
    this.#arm();
  }

  /** These records were given up. */
  refused(records: readonly StateRecord[]): void {
    const scopes = records.flat().flatMap((change) => (isOfScope(change) ? [change.scope] : lockedIn(change)));
    for (const scope of scopes) if (this.#claims.has(scope)) this.#owed.add(scope);
    // What the log has no room for now it has not in the next turn either.
    this.#owedAtMs = this.#clock.monotonicMs() + EXPIRY_RETRY_MS;
    this.#arm();
  }

  // ---- small things --------------------------------------------------------------------------------

  #holdOf(scope: string): HoldState | null {
    return this.#appends.head.scopes.get(scope)?.hold ?? null;
  }

  #notGranted(scope: string): AcquireAnswer {
    const hold = this.#options.applied.get(scope)?.hold ?? null;
    if (hold === null) return { granted: false, holder: null };
    const { epoch, identity, metadata } = hold;
    return { granted: false, holder: { epoch, identity, metadata } };
  }
}

/** Scopes that a transaction would have locked. */
function lockedIn(change: StateChange): readonly string[] {
  return change.kind === "txn-prepared" ? change.operations.flatMap((one) => ("scope" in one ? [one.scope] : [])) : [];
}

function isHold(hold: HoldState | null, session: string, epoch: number): hold is HoldState {
  return hold !== null && hold.epoch === epoch && hold.session === session;
}
