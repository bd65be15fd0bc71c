// An elector as its user holds it: one scope, one backend, and the loop between them (seat-loop.ts).
// States: those of core/trust's machine, next to open → closing → closed.
// Invariants: one term at a time, and no campaign while an earlier work has not settled; transitions reach the user in
// order, and whatever the user's callback throws changes nothing.

import { assert } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import { DRAIN_MS } from "../core/kit/limits.ts";
import { harmlessly, messageOf } from "../core/kit/user-code.ts";
import type { Random } from "../core/kit/random.ts";
import { Machine } from "../core/trust/machine.ts";
import type { Transition } from "../core/trust/transitions.ts";
import type { Backend, Hold, Seat } from "../ports/backends/backend.ts";
import type { Clock } from "../ports/clock.ts";
import type { Elector, ElectorStats, Leader, LeaderGate, LeadOptions, Term } from "../ports/elector.ts";
import type { LogFields, Logger } from "../ports/logger.ts";
import { checkOptions, type ElectorOptions, type Warn } from "./elector-options.ts";
import { Gate } from "./gate.ts";
import { lead, reasonOf } from "./lead.ts";
import { observeLeader } from "./observe.ts";
import { Complaints } from "./complaints.ts";
import { SeatLoop } from "./seat-loop.ts";
import { Counters } from "./stats.ts";
import { HeldTerm } from "./term.ts";

/** What an elector needs of the process that it runs in. */
export interface World {
  readonly clock: Clock;
  readonly random: Random;
  /** Unique for ever: part of the default identity. */
  readonly uuid: () => string;
  /** Where trouble is reported to a user who gave no logger. */
  readonly warn: Warn;
}

interface Waiter<Extras> {
  readonly sinceMs: number;
  /** By `acquire`: nobody but its user ends the term. */
  readonly byHand: boolean;
  readonly resolve: (term: HeldTerm & Extras) => void;
  readonly reject: (error: unknown) => void;
}

export class ScopeElector<Extras extends object> implements Elector<Extras> {
  readonly scope: string;
  readonly identity: string;
  readonly gate: LeaderGate;
  readonly #enabled: boolean;
  readonly #clock: Clock;
  readonly #seat: Seat<Extras>;
  readonly #machine: Machine;
  readonly #logger: Logger;
  readonly #complaints: Complaints;
  readonly #onTransition: ((transition: Transition) => void) | undefined;
  readonly #counters = new Counters();
  readonly #closing = new AbortController();
  readonly #loop: SeatLoop;
  #waiter: Waiter<Extras> | undefined;
  #term: HeldTerm | undefined;
  /** Of the last term here; 0 before the first. */
  #lastEpoch = 0;
  #lastLeader: Leader | null = null;
  /** By a campaign, a term, or a work that has not settled. */
  #occupied = false;
  /** The present term, where it came from `acquire`: its user is free again when it ends. */
  #acquired: HeldTerm | undefined;
  #led: Promise<unknown> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ElectorOptions<Extras>, world: World) {
    const checked = checkOptions(options, world.uuid, world.warn);
    const { backend, metadata, logger } = checked;
    this.scope = checked.scope;
    this.identity = checked.identity;
    this.#enabled = checked.enabled;
    this.#logger = logger;
    this.#onTransition = checked.onTransition;
    this.#clock = backend.clock ?? world.clock;
    this.#complaints = new Complaints(this.#clock);
    const { scope, identity } = this;
    this.#machine = new Machine({ scope, identity, timing: backend.timing, random: world.random.fork("machine") });
    this.#loop = this.#makeLoop();
    this.#seat = this.#takeSeat(backend, metadata, world.random.fork("seat"));
    this.#loop.sit(this.#seat);
    this.gate = this.#gate();
  }

  async lead<R>(
    work: (term: Term & Extras, lastError?: unknown) => Promise<R> | R,
    options: LeadOptions = {},
  ): Promise<R> {
    this.#occupy();
    let unsettled: Promise<unknown> | undefined;
    const led = lead<HeldTerm & Extras, R>(
      {
        clock: this.#clock,
        isOpen: () => this.gate.isLeader,
        closing: this.#closing.signal,
        campaign: (signal) => this.#campaign(signal, false),
        occupy: (running) => {
          unsettled = running;
          void running.then(() => {
            unsettled = undefined;
          });
        },
        complain: (what, error) => this.#warn(what, error),
      },
      work,
      options,
    );
    this.#led = led.then(
      () => undefined,
      () => undefined,
    );
    try {
      return await led;
    } finally {
      const free = (): void => {
        this.#occupied = false;
      };
      if (unsettled === undefined) free();
      else void unsettled.then(free);
    }
  }

  async acquire(options: { signal?: AbortSignal | undefined } = {}): Promise<Term & Extras> {
    this.#occupy();
    try {
      return await this.#campaign(options.signal, true);
    } catch (error) {
      this.#occupied = false;
      throw error;
    }
  }

  async leader(): Promise<Leader | null> {
    this.#mustBeOpen();
    const leader = await this.#seat.leader();
    this.#heard(leader);
    return leader;
  }

  observe(options: { signal?: AbortSignal | undefined } = {}): AsyncIterable<Leader | null> {
    this.#mustBeOpen();
    return observeLeader((tell) => this.#watch(tell), [options.signal, this.#closing.signal]);
  }

  stats(): ElectorStats {
    const { hold } = this.#machine;
    const counters = this.#counters;
    return {
      scope: this.scope,
      identity: this.identity,
      isLeader: this.gate.isLeader,
      epoch: hold?.epoch ?? 0,
      acquiredTotal: counters.acquired,
      acquireAttemptsTotal: counters.attempts,
      lostTotal: Object.fromEntries(counters.lost),
      effectsBlockedTotal: Object.fromEntries(counters.blocked),
      heartbeatAgeMs: hold === null ? null : Math.max(0, this.#clock.monotonicMs() - hold.provedAt.monotonicMs),
      acquireLatencyMs: counters.acquireLatencyMs.snapshot(),
      heartbeatUpdateMs: counters.heartbeatUpdateMs.snapshot(),
      deadlineSlackMs: counters.deadlineSlackMs.snapshot(),
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#closing.abort(new TenureError("ELECTOR_CLOSED", `the elector of scope "${this.scope}" was closed.`));
    // `lead` drains its work and resigns by itself; a term that was acquired by hand has nobody who would.
    await this.#led;
    if (this.#term !== undefined) await this.#loop.resign(this.#term.epoch);
    // A resignation that nobody awaited.
    await this.#loop.released();
    await this.#seat.close();
    this.#loop.stop();
  }

  #makeLoop(): SeatLoop {
    return new SeatLoop({
      clock: this.#clock,
      machine: this.#machine,
      counters: this.#counters,
      transition: (transition) => this.#pass(transition),
      asked: (epoch) => this.#asked(epoch),
      refused: (error) => {
        const waiter = this.#waiter;
        this.#waiter = undefined;
        waiter?.reject(error);
      },
      complain: (what, error) => this.#complain(what, error),
      content: () => this.#complaints.forget(),
    });
  }

  #takeSeat(backend: Backend<Extras>, metadata: Readonly<Record<string, string>>, random: Random): Seat<Extras> {
    return backend.seat({
      scope: this.scope,
      identity: this.identity,
      metadata,
      clock: this.#clock,
      random,
      logger: this.#logger,
      lost: (epoch, reason) => this.#loop.submit({ kind: "lost", epoch, reason }),
      heard: (epoch) => this.#loop.submit({ kind: "heard", epoch }),
    });
  }

  #gate(): LeaderGate {
    const machine = this.#machine;
    const heard = (): Leader | null => this.#lastLeader;
    const lastEpoch = (): number => this.#lastEpoch;
    return new Gate({
      scope: this.scope,
      clock: this.#clock,
      get hold() {
        return machine.hold;
      },
      get leader() {
        return heard();
      },
      get lastEpoch() {
        return lastEpoch();
      },
      blocked: (effect) => this.#counters.countBlocked(effect),
    });
  }

  #mustBeOpen(): void {
    if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
  }

  #occupy(): void {
    this.#mustBeOpen();
    if (this.#occupied) {
      throw new TenureError(
        "ELECTOR_BUSY",
        `this elector of scope "${this.scope}" campaigns or leads already, or the work of its last term has not settled. Create one elector for each piece of work, or wait.`,
      );
    }
    this.#occupied = true;
  }

  #campaign(signal: AbortSignal | undefined, byHand: boolean): Promise<HeldTerm & Extras> {
    const { promise, resolve, reject } = Promise.withResolvers<HeldTerm & Extras>();
    const signals = [signal, this.#closing.signal];
    const abort = (): void => {
      this.#waiter = undefined;
      this.#loop.submit({ kind: "unwant" });
      settled();
      reject(reasonOf(signal, this.#closing.signal));
    };
    const settled = (): void => {
      for (const one of signals) one?.removeEventListener("abort", abort);
    };
    if (signals.some((one) => one?.aborted === true)) {
      abort();
      return promise;
    }
    for (const one of signals) one?.addEventListener("abort", abort, { once: true });
    const sinceMs = this.#clock.monotonicMs();
    this.#waiter = {
      sinceMs,
      byHand,
      resolve: (term) => {
        settled();
        resolve(term);
      },
      reject: (error) => {
        settled();
        reject(error);
      },
    };
    // A permanent follower waits here until it is stopped (design D21).
    if (this.#enabled) this.#loop.submit({ kind: "want" });
    return promise;
  }

  #pass(transition: Transition): void {
    if (transition.kind === "leading") this.#begin(transition.epoch);
    if (transition.kind === "ended") this.#counters.countLost(transition.reason);
    const { kind, atMs: _, scope: _scope, ...rest } = transition;
    this.#logger.info(this.#fields(rest), MESSAGES[kind]);
    harmlessly(
      () => this.#onTransition?.(transition),
      (error) =>
        this.#logger.error(
          this.#fields({ error: messageOf(error) }),
          "onTransition failed; leadership is not affected",
        ),
    );
    if (transition.kind === "ended") this.#finish(transition);
  }

  #begin(epoch: number): void {
    const waiter = this.#waiter;
    assert(waiter !== undefined, "a grant has somebody who asked for it");
    this.#waiter = undefined;
    this.#counters.acquired++;
    this.#counters.acquireLatencyMs.record(this.#clock.monotonicMs() - waiter.sinceMs);
    this.#complaints.forget();
    const term = new HeldTerm({
      scope: this.scope,
      epoch,
      gate: this.gate,
      resign: (resigned) => this.#loop.resign(resigned),
    });
    const hold: Hold = {
      scope: this.scope,
      epoch,
      check: () => term.check(),
      lost: (reason) => this.#loop.submit({ kind: "lost", epoch, reason }),
    };
    this.#term = term;
    this.#lastEpoch = epoch;
    if (waiter.byHand) this.#acquired = term;
    waiter.resolve(Object.assign(term, this.#seat.extras(hold)));
  }

  /** `lead` drains its work and resigns; whoever acquired a term by hand has as long, then it is done for them. */
  #asked(epoch: number): void {
    const term = this.#term;
    assert(term?.epoch === epoch, "the term that shall end is the present one");
    this.#logger.info(this.#fields({ epoch }), "an operator asked this leader to step down");
    term.ask();
    if (this.#acquired !== term) return;
    const timer = this.#clock.setTimer(this.#clock.monotonicMs() + DRAIN_MS, () => void this.#loop.resign(epoch));
    void term.ended.then(() => timer.cancel());
  }

  #finish(transition: Transition & { kind: "ended" }): void {
    const term = this.#term;
    assert(term?.epoch === transition.epoch, "the term that ended is the present one");
    this.#term = undefined;
    if (this.#acquired === term) this.#occupied = false;
    this.#acquired = undefined;
    term.finish(transition.reason);
  }

  #watch(tell: (leader: Leader | null) => void): () => void {
    return this.#seat.watch(
      (leader) => {
        this.#heard(leader);
        tell(leader);
      },
      (error) => this.#complain("the leader can't be observed at this moment", error),
    );
  }

  #heard(leader: Leader | null): void {
    this.#lastLeader = leader;
    if (leader !== null) this.#loop.submit({ kind: "heard", epoch: leader.epoch });
  }

  #complain(what: string, error: unknown): void {
    if (this.#complaints.worthSaying(what, messageOf(error))) this.#warn(what, error);
  }

  #warn(what: string, error: unknown): void {
    const text = messageOf(error);
    const code = TenureError.is(error) ? error.code : undefined;
    this.#logger.warn(this.#fields({ code, error: text }), `${what}: ${text}`);
  }

  #fields(more: LogFields): LogFields {
    return { scope: this.scope, scope_key: this.#seat.scopeKey, identity: this.identity, ...more };
  }
}

const MESSAGES: Record<Transition["kind"], string> = {
  campaigning: "campaigning",
  leading: "leading",
  suspended: "the gate is closed: no heartbeat was answered in time",
  resumed: "the gate is open again",
  ended: "the term is over",
};
