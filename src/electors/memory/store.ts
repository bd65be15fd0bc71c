// The place where scopes are held, as a server would: sessions ask, it grants, and takes a hold back when its
// holder was silent for the server timeout.
// Invariants: a scope has at most one hold; each grant has a larger epoch than all before it; a session that ended
// holds nothing and is granted nothing; who waits is woken in the order of asking.

import { TenureError } from "../../core/kit/errors.ts";
import type { Timer } from "../../ports/clock.ts";
import type { Leader } from "../../ports/elector.ts";
import type { Life } from "./life.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** One connection of one elector. It ends once: by its process, by its elector, or by the server's timeout. */
export interface Session {
  readonly life: Life;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
  ended: boolean;
  /** The scope is free, or the session has ended: ask again. Called at the session's process. */
  woken(): void;
  /** The hold is gone, known for sure. Called at the session's process. */
  lost(epoch: number): void;
}

interface Hold {
  readonly session: Session;
  readonly epoch: number;
  expiry: Timer;
  resignRequested: boolean;
}

interface Scope {
  epoch: number;
  /** The last term was resigned: its epoch is over although nobody has followed yet. */
  resigned: boolean;
  hold: Hold | null;
  readonly waiters: Set<Session>;
  readonly watchers: Map<(leader: Leader | null) => void, Life>;
}

export class Store {
  readonly #time: VirtualTime;
  readonly #serverTimeoutMs: number;
  readonly #scopes = new Map<string, Scope>();

  constructor(time: VirtualTime, serverTimeoutMs: number) {
    this.#time = time;
    this.#serverTimeoutMs = serverTimeoutMs;
  }

  /** The epoch, or null: then the session waits and is woken. Asking twice while holding gives the same grant. */
  acquire(name: string, session: Session): number | null {
    if (session.ended) return null;
    const scope = this.#scope(name);
    if (scope.hold?.session === session) {
      this.#extend(name, scope.hold);
      return scope.hold.epoch;
    }
    if (scope.hold !== null) {
      scope.waiters.add(session);
      return null;
    }
    scope.waiters.delete(session);
    scope.epoch++;
    scope.resigned = false;
    scope.hold = { session, epoch: scope.epoch, expiry: this.#expiry(name, session), resignRequested: false };
    this.#announce(scope);
    return scope.epoch;
  }

  beat(name: string, session: Session, epoch: number): { resignRequested: boolean } | null {
    const { hold } = this.#scope(name);
    if (hold?.session !== session || hold.epoch !== epoch) return null;
    this.#extend(name, hold);
    return { resignRequested: hold.resignRequested };
  }

  resign(name: string, session: Session): void {
    const scope = this.#scope(name);
    if (scope.hold?.session === session) scope.resigned = true;
    this.end(session);
  }

  end(session: Session): void {
    session.ended = true;
    for (const name of this.#scopes.keys()) this.#release(name, session);
  }

  /** The connections of a process that died are closed by its machine, if that still reaches the server. */
  endAllOf(life: Life): void {
    for (const scope of this.#scopes.values()) {
      for (const [tell, watcher] of scope.watchers) if (watcher === life) scope.watchers.delete(tell);
      const sessions = [...scope.waiters, ...(scope.hold === null ? [] : [scope.hold.session])];
      for (const session of sessions) if (session.life === life) this.end(session);
    }
  }

  requestResign(name: string): boolean {
    const { hold } = this.#scope(name);
    if (hold !== null) hold.resignRequested = true;
    return hold !== null;
  }

  /** Until a higher one is granted, or until it is resigned: also when its holder is gone. */
  isInForce(name: string, epoch: number): boolean {
    const scope = this.#scope(name);
    return !scope.resigned && scope.epoch === epoch;
  }

  /** A newer one was granted: whoever writes with this one is stopped, also in the middle of it. */
  isOvertaken(name: string, epoch: number): boolean {
    return this.#scope(name).epoch > epoch;
  }

  leader(name: string): Leader | null {
    const { hold } = this.#scope(name);
    if (hold === null) return null;
    return { epoch: hold.epoch, identity: hold.session.identity, metadata: hold.session.metadata };
  }

  /** Adding a watcher that is there already only tells it the present leader again. */
  watch(name: string, life: Life, tell: (leader: Leader | null) => void): void {
    this.#scope(name).watchers.set(tell, life);
    const leader = this.leader(name);
    life.answer(() => tell(leader));
  }

  unwatch(name: string, tell: (leader: Leader | null) => void): void {
    this.#scope(name).watchers.delete(tell);
  }

  #release(name: string, session: Session): void {
    const scope = this.#scope(name);
    scope.waiters.delete(session);
    if (scope.hold?.session !== session) return;
    scope.hold.expiry.cancel();
    scope.hold = null;
    this.#announce(scope);
    for (const waiter of scope.waiters) waiter.life.answer(() => waiter.woken());
  }

  #scope(name: string): Scope {
    let scope = this.#scopes.get(name);
    if (scope === undefined) {
      scope = { epoch: 0, resigned: true, hold: null, waiters: new Set(), watchers: new Map() };
      this.#scopes.set(name, scope);
    }
    return scope;
  }

  #extend(name: string, hold: Hold): void {
    hold.expiry.cancel();
    hold.expiry = this.#expiry(name, hold.session);
  }

  #expiry(name: string, session: Session): Timer {
    return this.#time.schedule(this.#time.nowMs + this.#serverTimeoutMs, () => {
      const { epoch } = this.#scope(name);
      this.end(session);
      session.life.answer(() => session.lost(epoch));
    });
  }

  #announce(scope: Scope): void {
    const { hold } = scope;
    const leader = hold && { epoch: hold.epoch, identity: hold.session.identity, metadata: hold.session.metadata };
    for (const [tell, life] of scope.watchers) life.answer(() => tell(leader));
  }
}

export function unreachable(what: string): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `${what}: the test backend did not answer, because the test cut this instance off. heal() it, or expect this error.`,
  );
}
