// Campaigns for a scope, in the order in which they came. A claim is one session's; several requests may wait for it, because
// a client that lost its connection asks again.
//
//   waiting ──▶ granting ──▶ granted | failed
//      │           └── a request is given up: its outcome is unknown, for the grant may be in force (trap 66)
//      └── nobody waits any more: it leaves the queue at once
//
// Invariants: a request is answered exactly once; it listens to its signal and its timer no longer than it waits; queues are
// bounded, for each scope and for all together.

import { TenureError } from "../../core/kit/errors.ts";
import { SCOPE_WAITERS_MAX, SCOPE_WAITERS_TOTAL_MAX } from "../../core/kit/limits.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { AcquireAnswer, AcquireRequest } from "../../ports/scopes.ts";

interface Waiter {
  readonly resolve: (answer: AcquireAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal;
  readonly onAbort: () => void;
  timer: Timer | null;
}

export class Claim {
  readonly request: AcquireRequest;
  /** Others of the same session that wait for the outcome in another way. */
  interested = 0;
  readonly #waiters = new Set<Waiter>();
  #isDecided = false;

  constructor(request: AcquireRequest) {
    this.request = request;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get isWanted(): boolean {
    return this.#waiters.size > 0 || this.interested > 0;
  }

  /** `left`: this request waits no longer, because its signal aborted or its time is over. */
  wait(clock: Clock, waitMs: number, signal: AbortSignal, left: () => AcquireAnswer): Promise<AcquireAnswer> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#forget(waiter);
        if (this.#isDecided) reject(givenUp());
        else resolve(left());
      };
      const waiter: Waiter = { resolve, reject, signal, onAbort: leave, timer: null };
      signal.addEventListener("abort", leave, { once: true });
      waiter.timer = clock.setTimer(clock.monotonicMs() + waitMs, leave);
      this.#waiters.add(waiter);
    });
  }

  /** It is being granted: the answer is near, and nobody's time runs out before it. */
  decided(): void {
    this.#isDecided = true;
    for (const waiter of this.#waiters) waiter.timer?.cancel();
  }

  settle(answer: AcquireAnswer): void {
    for (const waiter of this.#waiters) {
      this.#forget(waiter);
      waiter.resolve(answer);
    }
  }

  fail(error: unknown): void {
    for (const waiter of this.#waiters) {
      this.#forget(waiter);
      waiter.reject(error);
    }
  }

  #forget(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    waiter.timer?.cancel();
    waiter.signal.removeEventListener("abort", waiter.onAbort);
  }
}

function givenUp(): TenureError {
  return new TenureError(
    "OUTCOME_UNKNOWN",
    "The request was given up while its grant was being written: it may be in force. Ask again with the same session.",
  );
}

export class ClaimQueues {
  /** By scope, then by session; a map keeps the order of arrival. */
  readonly #queues = new Map<string, Map<string, Claim>>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  has(scope: string): boolean {
    return this.#queues.has(scope);
  }

  get(scope: string, session: string): Claim | undefined {
    return this.#queues.get(scope)?.get(session);
  }

  hasRoom(scope: string): boolean {
    return (this.#queues.get(scope)?.size ?? 0) < SCOPE_WAITERS_MAX && this.#total < SCOPE_WAITERS_TOTAL_MAX;
  }

  add(claim: Claim): void {
    const { scope, session } = claim.request;
    const queue = this.#queues.get(scope) ?? new Map<string, Claim>();
    queue.set(session, claim);
    this.#queues.set(scope, queue);
    this.#total++;
  }

  remove(claim: Claim): void {
    const { scope, session } = claim.request;
    const queue = this.#queues.get(scope);
    if (queue?.get(session) !== claim) return;
    queue.delete(session);
    this.#total--;
    if (queue.size === 0) this.#queues.delete(scope);
  }

  /** Takes the first out of the queue. */
  shift(scope: string): Claim | null {
    for (const claim of this.#queues.get(scope)?.values() ?? []) {
      this.remove(claim);
      return claim;
    }
    return null;
  }

  /** Takes everybody out. */
  drain(): Claim[] {
    const all = [...this.#queues.values()].flatMap((queue) => [...queue.values()]);
    this.#queues.clear();
    this.#total = 0;
    return all;
  }
}
