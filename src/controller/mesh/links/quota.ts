// How much one peer may send in a second: requests, bytes and events, each refilled as time passes. What does not fit is refused with the time
// after which it will; what is larger than a whole second's share is let in when the share is full, and owes the rest.
//
//   may send ──a request that does not fit──▶ has to wait ──the time is over──▶ may send
//                                               └─ sends all the same: refused; from the ninth on it is `early`, and whoever answers it takes its time
//
// Deliveries and other requests wait apart: whoever has delivered too much may still dial and ask.
//
// What comes down a stream is not refused, as nobody would be answered: the reader stops reading (`owe`), and the sender's writes wait.

import type { Clock } from "../../../ports/clock.ts";
import type { Arrival } from "../../../ports/mesh/links.ts";
import {
  EARLY_FORGIVEN_MAX,
  EARLY_FORGIVEN_MS,
  PEER_BYTES_PER_S_MAX,
  PEER_EVENTS_PER_S_MAX,
  PEER_REQUESTS_PER_S_MAX,
} from "../limits.ts";

const MS_PER_S = 1_000;

export class PeerQuota {
  readonly #requests: Share;
  readonly #bytes: Share;
  readonly #events: Share;
  readonly #deliveries: Wait;
  readonly #others: Wait;

  constructor(clock: Clock) {
    this.#requests = new Share(clock, PEER_REQUESTS_PER_S_MAX);
    this.#bytes = new Share(clock, PEER_BYTES_PER_S_MAX);
    this.#events = new Share(clock, PEER_EVENTS_PER_S_MAX);
    this.#deliveries = new Wait(clock);
    this.#others = new Wait(clock);
  }

  /** A request has come, and nothing of its body was read. */
  arrives(bytes: number, isDelivery: boolean): Arrival {
    const wait = isDelivery ? this.#deliveries : this.#others;
    const refusal = wait.refusal();
    if (refusal !== null) return refusal;
    const retryAfterMs = Math.max(this.#requests.lackMs(1), this.#bytes.lackMs(bytes));
    if (retryAfterMs > 0) {
      wait.begin(retryAfterMs);
      return { kind: "limited", retryAfterMs };
    }
    this.#requests.spend(1);
    this.#bytes.spend(bytes);
    return { kind: "let-in" };
  }

  /** Of a delivery: deliveries wait where these are too many. 0: they were taken. Otherwise nothing was, and they fit after so long. */
  deliver(events: number): number {
    const waitMs = this.take(events);
    if (waitMs > 0) this.#deliveries.begin(waitMs);
    return waitMs;
  }

  /** The same for whatever else costs as much as events do: nobody has to wait with another request. */
  take(events: number): number {
    const waitMs = this.#events.lackMs(events);
    if (waitMs === 0) this.#events.spend(events);
    return waitMs;
  }

  /** Of a stream: it was read, and so long nothing more is. */
  owe({ events, bytes }: { readonly events: number; readonly bytes: number }): number {
    this.fine({ events, bytes });
    return Math.max(this.#events.lackMs(0), this.#bytes.lackMs(0));
  }

  /** What was taken has cost more than the like of it does. */
  fine({ events = 0, bytes = 0 }: { readonly events?: number; readonly bytes?: number }): void {
    this.#events.spend(events);
    this.#bytes.spend(bytes);
  }
}

/** Of one thing. */
class Share {
  readonly #clock: Clock;
  readonly #perS: number;
  #left: number;
  #atMs: number;

  constructor(clock: Clock, perS: number) {
    this.#clock = clock;
    this.#perS = perS;
    this.#left = perS;
    this.#atMs = clock.monotonicMs();
  }

  /** So long it takes until so much is there; 0: it is. */
  lackMs(count: number): number {
    const nowMs = this.#clock.monotonicMs();
    const refilled = (Math.max(0, nowMs - this.#atMs) / MS_PER_S) * this.#perS;
    this.#atMs = nowMs;
    this.#left = Math.min(this.#perS, this.#left + refilled);
    const lacking = Math.min(count, this.#perS) - this.#left;
    return lacking <= 0 ? 0 : Math.ceil((lacking / this.#perS) * MS_PER_S);
  }

  spend(count: number): void {
    this.#left -= count;
  }
}

/** What a peer was asked to wait, in whole seconds: Retry-After has no others. */
class Wait {
  readonly #clock: Clock;
  #untilMs = -Infinity;
  #early = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(ms: number): void {
    this.#untilMs = this.#clock.monotonicMs() + Math.ceil(ms / MS_PER_S) * MS_PER_S;
    this.#early = 0;
  }

  /** Null: it does not have to wait. */
  refusal(): Arrival | null {
    const retryAfterMs = this.#untilMs - this.#clock.monotonicMs();
    if (retryAfterMs <= EARLY_FORGIVEN_MS) return null;
    this.#early++;
    return this.#early > EARLY_FORGIVEN_MAX ? { kind: "early" } : { kind: "limited", retryAfterMs };
  }
}
