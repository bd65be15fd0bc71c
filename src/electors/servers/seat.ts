// One elector's place at one scope of Tenure's own servers.
//
//   free ──acquire──▶ campaigning ──granted──▶ holding ──release, abandon──▶ free
//                          └──failed, abandoned──▶ free
//
// Invariants
// - A campaign is a session: a random name that nobody else has. Asking again with it is asking once (leader-client.ts), so
//   an answer that was lost costs nothing, and a campaign follows the cluster's leader wherever it moves.
// - Trust starts when a request left that the lease was counted from after it (trap 44). That is a renewal, or an acquire
//   that was the only one of its session and was answered at once; a grant that was waited for, or that an earlier request
//   may have caused, is renewed before it is believed.
// - A session that may hold the scope and is not held by us is owed (owed.ts), so that we never wait for ourselves. What a request does
//   that arrives after it was resigned, the TTL ends.
// - Epochs are indices of the cluster's log. They grow for as long as it is the same cluster (members.ts sees to that).

import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { Beat, Claim, Grant, Hold, LossReason, Seat } from "../../ports/backends/backend.ts";
import type { Leader } from "../../ports/elector.ts";
import { Owed } from "../owed.ts";
import { passing, persist } from "../persistence.ts";
import type { ScopeState } from "./answers.ts";
import { follow, pauseEarly } from "./follow.ts";
import { givenUp, type LeaderClient } from "./leader-client.ts";
import type { ServersSettings } from "./options.ts";
import { ScopesClient } from "./scopes-client.ts";
import { serversTerm, type ServersTerm } from "./term.ts";
import { ValuesClient } from "./values-client.ts";

/** An acquire that took longer than this part of the heartbeat was waited for. */
const AT_ONCE = 0.25;

interface Holding {
  readonly epoch: number;
  readonly session: string;
  /** Aborts when it is let go: nothing that was asked for it is waited for any longer. */
  readonly life: AbortController;
  /** Ends the watch over the hold. */
  readonly unguarded: AbortController;
}

export class ServersSeat implements Seat<ServersTerm> {
  readonly #claim: Claim;
  readonly #settings: ServersSettings;
  readonly #client: LeaderClient;
  readonly #scopes: ScopesClient;
  /** For as long as the seat: what becomes of a write is known only after the term, where that ends first. */
  readonly #values: ValuesClient;
  readonly #newSession: () => string;
  readonly #life = new AbortController();
  /** With the epoch that it held; null where its grant, if there was one, was never heard of. */
  readonly #owed: Owed<number | null>;
  #attempt = new AbortController();
  #campaign: Promise<unknown> = Promise.resolve();
  #holding: Holding | undefined;
  #hasWorked = false;
  #closed: Promise<void> | undefined;

  constructor(claim: Claim, settings: ServersSettings, client: LeaderClient, newSession: () => string) {
    this.#claim = claim;
    this.#settings = settings;
    this.#client = client;
    this.#scopes = new ScopesClient(client, claim.scope);
    this.#values = new ValuesClient(client, this.#life.signal);
    this.#newSession = newSession;
    this.#owed = new Owed((session, epoch, signal) => this.#resign(session, epoch, signal), this.#life.signal);
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
    const { session, life } = this.#held(epoch);
    const renewed = await this.#scopes.renew(session, epoch, life.signal);
    if (renewed === null) throw this.#gone(epoch);
    return { sentAt: renewed.sentAt, resignRequested: renewed.resignRequested };
  }

  async release(epoch: number): Promise<void> {
    const holding = this.#held(epoch);
    holding.unguarded.abort();
    await this.#scopes.resign(holding.session, epoch, holding.life.signal);
    if (this.#holding !== holding) return;
    this.#holding = undefined;
    holding.life.abort();
  }

  abandon(): void {
    this.#attempt.abort();
    const holding = this.#holding;
    if (holding === undefined) return;
    this.#holding = undefined;
    holding.life.abort();
    this.#owed.owe(holding.session, holding.epoch);
  }

  watch(tell: (leader: Leader | null) => void, failed: (error: unknown) => void): () => void {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#life.signal]);
    const { clock, random } = this.#claim;
    const { timing, waitMs } = this.#settings;
    let known: ScopeState | undefined;
    let told: Leader | null | undefined;
    void persist({ clock, random, timing, signal, failed }, async (worked) => {
      await follow({ scopes: this.#scopes, clock, random, waitMs, from: known, signal }, (state) => {
        worked();
        known = state;
        const isNew = told === undefined || told?.epoch !== state.leader?.epoch;
        told = state.leader;
        if (isNew && !signal.aborted) tell(told);
        return false;
      });
    });
    return () => stop.abort();
  }

  async leader(): Promise<Leader | null> {
    return (await this.#scopes.read(this.#life.signal)).leader;
  }

  extras(hold: Hold): ServersTerm {
    return serversTerm(this.#values, hold);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.abandon();
    await this.#campaign;
    await this.#owed.settle(this.#life.signal).catch(() => undefined);
    await this.#values.settled();
    this.#life.abort();
    this.#client.close();
  }

  async #win(signal: AbortSignal): Promise<Grant> {
    await this.#owed.settle(signal);
    for (;;) {
      const grant = await this.#run(this.#newSession(), signal);
      if (grant !== null) return grant;
    }
  }

  /** One session's campaign. Null: it was granted the scope, and lost it before that could be believed. */
  async #run(session: string, signal: AbortSignal): Promise<Grant | null> {
    const { clock, random, identity, metadata } = this.#claim;
    const { timing, waitMs } = this.#settings;
    let requests = 0;
    let mayHold = false;
    const sent = (): void => {
      requests++;
      mayHold = true;
    };
    const candidacy = { session, identity, metadata, ttlMs: timing.serverTimeoutMs, waitMs, sent };
    try {
      for (;;) {
        const askedMs = clock.monotonicMs();
        const acquired = await this.#scopes.acquire(candidacy, signal);
        if (acquired.granted) this.#checkTtl(acquired.ttlMs);
        this.#hasWorked = true;
        if (acquired.granted) {
          const tookMs = clock.monotonicMs() - acquired.sentAt.monotonicMs;
          const isAtOnce = requests === 1 && tookMs <= timing.heartbeatMs * AT_ONCE;
          const sentAt = isAtOnce ? acquired.sentAt : await this.#renewed(session, acquired.epoch, signal);
          if (sentAt === null) return null;
          // Abandoned while the answer was on its way to us: it stays owed.
          if (signal.aborted) throw givenUp();
          this.#hold(acquired.epoch, session);
          return { epoch: acquired.epoch, sentAt };
        }
        mayHold = false;
        if (clock.monotonicMs() - askedMs < waitMs / 2) await pauseEarly({ clock, random, signal });
      }
    } finally {
      if (mayHold && this.#holding?.session !== session) this.#owed.owe(session, null);
    }
  }

  async #renewed(session: string, epoch: number, signal: AbortSignal): Promise<Instant | null> {
    return (await this.#scopes.renew(session, epoch, signal))?.sentAt ?? null;
  }

  #checkTtl(ttlMs: number): void {
    const wanted = this.#settings.timing.serverTimeoutMs;
    if (ttlMs >= wanted) return;
    throw new TenureError(
      "BACKEND_UNSUPPORTED",
      `the cluster granted the scope for ${ttlMs} ms where ${wanted} ms were asked for, so a leader would trust itself too long. Ask for a shorter "ttlMs".`,
    );
  }

  #hold(epoch: number, session: string): void {
    const life = new AbortController();
    const unguarded = new AbortController();
    this.#holding = { epoch, session, life, unguarded };
    void this.#guardHold(epoch, AbortSignal.any([unguarded.signal, life.signal]));
  }

  /** Hears at once that the scope was taken away. Beats are the truth next to it, so it may fail. */
  async #guardHold(epoch: number, signal: AbortSignal): Promise<void> {
    const { clock, random, identity, metadata } = this.#claim;
    const { timing, waitMs } = this.#settings;
    const from: ScopeState = { epoch, leader: { epoch, identity, metadata } };
    await persist({ clock, random, timing, signal, failed: () => undefined }, async (worked) => {
      await follow({ scopes: this.#scopes, clock, random, waitMs, from, signal }, (state) => {
        worked();
        if (!signal.aborted) this.#claim.lost(epoch, reasonOf(state, epoch));
        return true;
      });
    });
  }

  async #resign(session: string, epoch: number | null, signal: AbortSignal): Promise<void> {
    const held = epoch ?? (await this.#epochOfOurs(signal));
    // Another session's hold is not touched by this, although it may have our identity: the server compares sessions.
    if (held !== null) await this.#scopes.resign(session, held, signal);
  }

  async #epochOfOurs(signal: AbortSignal): Promise<number | null> {
    const { leader } = await this.#scopes.read(signal);
    return leader?.identity === this.#claim.identity ? leader.epoch : null;
  }

  /** Reported at once, before anybody knows whether another holds it by now. */
  #gone(epoch: number): StaleEpochError {
    if (this.#holding?.epoch === epoch) this.#claim.lost(epoch, "lease-gone");
    return new StaleEpochError(this.#claim.scope, epoch);
  }

  #held(epoch: number): Holding {
    if (this.#holding?.epoch === epoch) return this.#holding;
    throw new StaleEpochError(this.#claim.scope, epoch);
  }
}

function reasonOf(state: ScopeState, epoch: number): LossReason {
  return state.epoch > epoch ? "superseded" : "lease-gone";
}
