// One elector's place at one scope of the store in memory.
//
//   idle ──acquire──▶ waiting ──granted──▶ holding ──release──▶ idle
//   any ──abandon──▶ idle: the session is dropped, and a late answer to it is nobody's
//
// Invariants: a session belongs to one acquire and is never used again after abandon (trap 39); an answer counts only
// for the session that asked; trust starts when the request left, also when that was before a freeze (trap 44).

import { StaleEpochError } from "../../core/kit/errors.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { Beat, Claim, Grant, Hold, Seat } from "../../ports/backends/backend.ts";
import type { Leader } from "../../ports/elector.ts";
import type { Life } from "./life.ts";
import { unreachable, type Session, type Store } from "./store.ts";

export class MemorySeat<Extras extends object> implements Seat<Extras> {
  readonly extras: (hold: Hold) => Extras;
  readonly #store: Store;
  readonly #life: Life;
  readonly #claim: Claim;
  readonly #requestTimeoutMs: number;
  readonly #stopWatching = new Set<() => void>();
  #session: Session | undefined;
  /** Rejects the acquire that waits. */
  #giveUp: ((error: unknown) => void) | undefined;

  constructor(
    store: Store,
    life: Life,
    claim: Claim,
    { requestTimeoutMs, extras }: { readonly requestTimeoutMs: number; readonly extras: (hold: Hold) => Extras },
  ) {
    this.extras = extras;
    this.#store = store;
    this.#life = life;
    this.#claim = claim;
    this.#requestTimeoutMs = requestTimeoutMs;
  }

  acquire(signal: AbortSignal): Promise<Grant> {
    this.abandon();
    const { scope } = this.#claim;
    return new Promise((resolve, reject) => {
      const ask = (): void => {
        const sentAt = this.#now();
        this.#life.send(() => {
          const epoch = this.#store.acquire(scope, session);
          if (epoch !== null) this.#life.answer(() => granted({ epoch, sentAt }));
          else if (session.ended) this.#life.answer(ended);
        });
      };
      const granted = (grant: Grant): void => {
        if (this.#session !== session) return;
        this.#stopWaiting(ask);
        resolve(grant);
      };
      const ended = (): void => {
        if (this.#session === session) this.abandon();
      };
      const session = this.#open(ask);
      this.#session = session;
      this.#giveUp = (error) => {
        this.#stopWaiting(ask);
        reject(error);
      };
      this.#life.reconnected.add(ask);
      if (signal.aborted) this.abandon();
      else ask();
    });
  }

  beat(epoch: number): Promise<Beat> {
    const session = this.#session;
    const sentAt = this.#now();
    return this.#call((answer, refuse) => {
      const held = session && this.#store.beat(this.#claim.scope, session, epoch);
      if (held) return answer({ sentAt, ...held });
      return refuse(() => {
        this.#claim.lost(epoch, "lease-gone");
        return new StaleEpochError(this.#claim.scope, epoch);
      });
    });
  }

  release(_epoch: number): Promise<void> {
    const session = this.#session;
    return this.#call((answer) => {
      if (session !== undefined) this.#store.resign(this.#claim.scope, session);
      answer(undefined);
    });
  }

  abandon(): void {
    const session = this.#session;
    this.#session = undefined;
    this.#giveUp?.(unreachable("acquire"));
    if (session !== undefined) this.#life.send(() => this.#store.end(session));
  }

  watch(tell: (leader: Leader | null) => void, _failed: (error: unknown) => void): () => void {
    const { scope } = this.#claim;
    let stopped = false;
    let last: Leader | null | undefined;
    const told = (leader: Leader | null): void => {
      if (stopped || (last !== undefined && last?.epoch === leader?.epoch)) return;
      last = leader;
      tell(leader);
    };
    const ask = (): void => this.#life.send(() => !stopped && this.#store.watch(scope, this.#life, told));
    const stop = (): void => {
      stopped = true;
      this.#life.reconnected.delete(ask);
      this.#store.unwatch(scope, told);
      this.#stopWatching.delete(stop);
    };
    this.#life.reconnected.add(ask);
    this.#stopWatching.add(stop);
    ask();
    return stop;
  }

  leader(): Promise<Leader | null> {
    return this.#call((answer) => answer(this.#store.leader(this.#claim.scope)));
  }

  close(): Promise<void> {
    for (const stop of this.#stopWatching) stop();
    this.abandon();
    return Promise.resolve();
  }

  /** One request and its answer; a line that is cut in between shows as silence, then as an error. */
  #call<T>(serve: (answer: (value: T) => void, refuse: (why: () => Error) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const { clock } = this.#life;
      const timer = clock.setTimer(clock.monotonicMs() + this.#requestTimeoutMs, () =>
        reject(unreachable("a request")),
      );
      const received = (settle: () => void): void =>
        this.#life.answer(() => {
          timer.cancel();
          settle();
        });
      this.#life.send(() =>
        serve(
          (value) => received(() => resolve(value)),
          (why) => received(() => reject(why())),
        ),
      );
    });
  }

  #open(woken: () => void): Session {
    const { identity, metadata } = this.#claim;
    const lost = (epoch: number): void => {
      if (this.#session !== session) return;
      // A grant whose answer was lost: nobody knew of this hold, the wait starts again with another session.
      if (this.#giveUp !== undefined) this.abandon();
      else this.#claim.lost(epoch, "lease-gone");
    };
    const session: Session = { life: this.#life, identity, metadata, ended: false, woken, lost };
    return session;
  }

  #stopWaiting(ask: () => void): void {
    this.#life.reconnected.delete(ask);
    this.#giveUp = undefined;
  }

  #now(): Instant {
    return { monotonicMs: this.#life.clock.monotonicMs(), wallMs: this.#life.clock.wallMs() };
  }
}
