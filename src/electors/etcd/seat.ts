// One elector's place at one scope in etcd.
//
//   free ──acquire──▶ campaigning ──won──▶ holding ──release, abandon──▶ free
//                          └──failed, abandoned──▶ free
//
// A win is a lease of our own and a create-only key on it. The lease is granted just before each try, so its clock in
// etcd starts after our `sentAt`; the try itself proves nothing about the lease's time and renews nothing.
//
// Invariants
// - A lease whose try was not answered with a win is owed: it is revoked, for sure, before the next try. Revoking
//   deletes a key that the lost answer may have created, and refuses a try that is still on its way. So an unknown
//   outcome never makes us wait for ourselves, and never gives us two keys.
// - A beat is a keepalive, then a linearizable look at the key. etcd answers keepalives without asking its quorum: a
//   leader that had lost it did so for 1.4 s, and one that was stopped for 3 s, and deposed meanwhile, renewed "for
//   60 s" when it went on (measured with 3.4.23 at its usual timeouts). So a keepalive counts only where the looks
//   before and after it were answered in its own Raft term; a new leader of etcd costs one more round.
// - The epoch is what etcd's revision makes it. A cluster that is restored from a backup goes back in time, and its
//   epochs with it, unless the restore bumps the revision: a seat that has seen a higher one gives up (session.ts).

import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { Beat, Claim, Grant, Hold, LossReason, Seat } from "../../ports/backends/backend.ts";
import type { Leader } from "../../ports/elector.ts";
import { type KeyValue, rangeIn, type TxnAnswer } from "./answers.ts";
import { follow, type KeyState, readKey } from "./follow.ts";
import { trimHistory } from "./history.ts";
import { type ScopeKeys, scopeKeys } from "./keys.ts";
import type { EtcdSettings } from "./options.ts";
import { BEAT_ROUNDS_MAX } from "../limits.ts";
import { Owed } from "../owed.ts";
import { passing, persist } from "../persistence.ts";
import { leaderOf } from "./records.ts";
import type { EtcdSession } from "./session.ts";
import { type EtcdTerm, etcdTerm } from "./term.ts";
import { createTxn, lookTxn, releaseTxn } from "./transactions.ts";

interface Holding {
  readonly epoch: number;
  readonly lease: string;
  readonly since: Instant;
  /** Aborts when it is let go: nothing that was asked for it is waited for any longer. */
  readonly life: AbortController;
  /** Ends the watch over the key. */
  readonly unguarded: AbortController;
  /** Of etcd, when it last told us of the key. */
  raftTerm: number;
  asked: boolean;
}

export class EtcdSeat implements Seat<EtcdTerm> {
  readonly #claim: Claim;
  readonly #settings: EtcdSettings;
  readonly #session: EtcdSession;
  readonly #keys: ScopeKeys;
  readonly #life = new AbortController();
  readonly #owed: Owed<null>;
  #attempt = new AbortController();
  #campaign: Promise<unknown> = Promise.resolve();
  #holding: Holding | undefined;
  #hasWorked = false;
  #closed: Promise<void> | undefined;

  constructor(claim: Claim, settings: EtcdSettings, session: EtcdSession) {
    this.#claim = claim;
    this.#settings = settings;
    this.#session = session;
    this.#keys = scopeKeys(settings.prefix, claim.scope);
    this.#owed = new Owed((lease, _, signal) => session.revoke(lease, signal), this.#life.signal);
  }

  async acquire(signal: AbortSignal): Promise<Grant> {
    this.#attempt = new AbortController();
    const either = AbortSignal.any([signal, this.#attempt.signal, this.#life.signal]);
    const campaign = this.#win(either);
    this.#campaign = campaign.catch(() => undefined);
    try {
      return await campaign;
    } catch (error) {
      throw this.#hasWorked ? passing(error) : error;
    }
  }

  async beat(epoch: number): Promise<Beat> {
    const holding = this.#held(epoch);
    const { signal } = holding.life;
    for (let round = 0; round < BEAT_ROUNDS_MAX; round++) {
      const before = holding.raftTerm;
      const sentAt = this.#now();
      const renewal = await this.#session.keepAlive(holding.lease, signal);
      if (!renewal.alive) throw this.#gone(epoch, "lease-gone");
      const look = await this.#session.txn(lookTxn(this.#keys, epoch), signal);
      if (!look.succeeded) throw this.#gone(epoch, rangeIn(look, 0).kvs.length > 0 ? "superseded" : "lease-gone");
      holding.raftTerm = look.raftTerm;
      if (renewal.raftTerm !== before || look.raftTerm !== before) continue;
      holding.asked = rangeIn(look, 0).kvs[0]?.value === String(epoch);
      return { sentAt, resignRequested: holding.asked };
    }
    throw new TenureError("BACKEND_UNAVAILABLE", "etcd changes its leader again and again; the hold is not proved.");
  }

  async release(epoch: number): Promise<void> {
    const holding = this.#held(epoch);
    holding.unguarded.abort();
    const { identity } = this.#claim;
    const now = this.#now();
    const heldMs = Math.round(now.monotonicMs - holding.since.monotonicMs);
    const reason = holding.asked ? "asked" : "resigned";
    const ended = { atMs: now.wallMs, epoch, identity, reason, heldMs };
    await this.#session.txn(releaseTxn(this.#keys, holding.lease, ended), holding.life.signal);
    // Deleted by this, or gone before: either way the scope is free. The lease is only litter now.
    if (this.#holding === holding) this.#letGo();
  }

  abandon(): void {
    this.#attempt.abort();
    this.#letGo();
  }

  watch(tell: (leader: Leader | null) => void, failed: (error: unknown) => void): () => void {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#life.signal]);
    let told: number | undefined;
    const { clock, random } = this.#claim;
    const { pollMs, timing } = this.#settings;
    void persist({ clock, random, timing, signal, failed }, async (worked) => {
      await follow({ session: this.#session, clock, key: this.#keys.leader, pollMs, signal }, (kv) => {
        worked();
        const epoch = kv?.createRevision ?? 0;
        if (epoch !== told && !signal.aborted) {
          told = epoch;
          tell(leaderOf(kv));
        }
        return false;
      });
    });
    return () => stop.abort();
  }

  async leader(): Promise<Leader | null> {
    const { kv } = await readKey(this.#session, this.#keys.leader, this.#life.signal);
    return leaderOf(kv);
  }

  extras(term: Hold): EtcdTerm {
    return etcdTerm(this.#session, this.#keys.leader, term, this.#life.signal);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.abandon();
    await this.#campaign;
    await this.#owed.settle(this.#life.signal).catch(() => undefined);
    this.#life.abort();
    this.#session.close();
  }

  async #win(signal: AbortSignal): Promise<Grant> {
    // The first campaign tries at once, so that a right that is missing is known now and not at the first failover.
    let state: KeyState = { kv: null, revision: 0 };
    await this.#owed.settle(signal);
    if (this.#hasWorked) state = await readKey(this.#session, this.#keys.leader, signal);
    for (;;) {
      if (state.kv !== null) await this.#untilFree(state, signal);
      await this.#owed.settle(signal);
      const tried = await this.#try(signal);
      if ("grant" in tried) return tried.grant;
      state = tried.state;
    }
  }

  async #try(signal: AbortSignal): Promise<{ grant: Grant } | { state: KeyState }> {
    const sentAt = this.#now();
    const { lease, ttlSeconds } = await this.#session.grant(this.#settings.ttlSeconds, signal);
    try {
      if (ttlSeconds < this.#settings.ttlSeconds) throw shortLease(ttlSeconds, this.#settings.ttlSeconds);
      const answer = await this.#session.txn(this.#createTxn(lease), signal);
      this.#hasWorked = true;
      if (!answer.succeeded) return { state: stateIn(answer) };
      // Abandoned while the answer was on its way to us: it stays owed.
      if (signal.aborted) throw givenUp();
      this.#hold(answer, lease, sentAt);
      if (ttlSeconds > this.#settings.ttlSeconds) this.#tellLonger(ttlSeconds);
      return { grant: { epoch: answer.revision, sentAt } };
    } finally {
      if (this.#holding?.lease !== lease) this.#owed.owe(lease, null);
    }
  }

  #tellLonger(ttlSeconds: number): void {
    this.#claim.logger.info(
      { scope: this.#claim.scope, ttl_seconds: this.#settings.ttlSeconds, granted_seconds: ttlSeconds },
      "etcd keeps leases longer than asked for, because of its election timeout: a silent leader costs that long",
    );
  }

  #createTxn(lease: string): object {
    const { identity, metadata } = this.#claim;
    const { wallMs } = this.#now();
    const won = { atMs: wallMs, epoch: 0, identity, reason: "acquired", heldMs: null };
    return createTxn(this.#keys, lease, { identity, metadata, acquiredAtMs: wallMs }, won);
  }

  async #untilFree(from: KeyState, signal: AbortSignal): Promise<void> {
    const { clock } = this.#claim;
    const { pollMs } = this.#settings;
    const followed = { session: this.#session, clock, key: this.#keys.leader, from, pollMs, signal };
    await follow(followed, (kv) => kv === null);
  }

  #hold({ revision: epoch, raftTerm }: TxnAnswer, lease: string, since: Instant): void {
    const life = new AbortController();
    const unguarded = new AbortController();
    this.#holding = { epoch, lease, since, life, unguarded, raftTerm, asked: false };
    const signal = AbortSignal.any([unguarded.signal, life.signal]);
    void this.#guardHold(epoch, signal);
    trimHistory(this.#session, this.#keys, signal).catch(() => undefined);
  }

  /** Hears at once that the key is gone. Beats are the truth next to it, so it needs no polls, and may fail. */
  async #guardHold(epoch: number, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#claim;
    const { timing } = this.#settings;
    const followed = { session: this.#session, clock, key: this.#keys.leader, pollMs: null, signal };
    // We wrote it: there is nothing to read before the first watch.
    let from: KeyState | undefined = { kv: ownKey(this.#keys.leader, epoch), revision: epoch };
    await persist({ clock, random, timing, signal, failed: () => undefined }, async (worked) => {
      const first = from;
      from = undefined;
      await follow({ ...followed, from: first }, (kv) => {
        worked();
        if (kv?.createRevision === epoch) return false;
        this.#gone(epoch, kv === null ? "lease-gone" : "superseded");
        return true;
      });
    });
  }

  #gone(epoch: number, reason: LossReason): StaleEpochError {
    if (this.#holding?.epoch === epoch) this.#claim.lost(epoch, reason);
    return new StaleEpochError(this.#claim.scope, epoch);
  }

  #held(epoch: number): Holding {
    if (this.#holding?.epoch === epoch) return this.#holding;
    throw new StaleEpochError(this.#claim.scope, epoch);
  }

  #letGo(): void {
    const holding = this.#holding;
    if (holding === undefined) return;
    this.#holding = undefined;
    holding.life.abort();
    this.#owed.owe(holding.lease, null);
  }

  #now(): Instant {
    const { clock } = this.#claim;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}

function stateIn(answer: TxnAnswer): KeyState {
  return { kv: rangeIn(answer, 0).kvs[0] ?? null, revision: answer.revision };
}

/** As far as following needs it. */
function ownKey(key: string, epoch: number): KeyValue {
  return { key, value: "", createRevision: epoch, modRevision: epoch, lease: "0" };
}

function shortLease(got: number, wanted: number): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `etcd granted a lease of ${got} s where ${wanted} s were asked for, so a leader would trust itself too long. Ask for a shorter "ttlSeconds".`,
  );
}

function givenUp(): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", "the campaign was given up by us.");
}
