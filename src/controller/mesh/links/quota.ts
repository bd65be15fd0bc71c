// How much one peer may send: events and bytes in a second, refilled as time passes. What does not fit is refused with the time after which
// it will; a request that is larger than a whole second's share is let in when the share is full, and owes the rest.

import type { Clock } from "../../../ports/clock.ts";
import { PEER_BYTES_PER_S_MAX, PEER_EVENTS_PER_S_MAX } from "../limits.ts";

export class PeerQuota {
  readonly #clock: Clock;
  #events = PEER_EVENTS_PER_S_MAX;
  #bytes = PEER_BYTES_PER_S_MAX;
  #atMs: number;
  #owesUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#atMs = clock.monotonicMs();
  }

  /** So long what it sent last, which was refused, would not fit; 0: there is nothing, or it would. */
  get owedMs(): number {
    return Math.max(0, this.#owesUntilMs - this.#clock.monotonicMs());
  }

  /** 0: it was taken. Otherwise nothing was, and it fits after so long. */
  take(events: number, bytes: number): number {
    this.#refill();
    const waitMs = Math.max(
      lackMs(Math.min(events, PEER_EVENTS_PER_S_MAX) - this.#events, PEER_EVENTS_PER_S_MAX),
      lackMs(Math.min(bytes, PEER_BYTES_PER_S_MAX) - this.#bytes, PEER_BYTES_PER_S_MAX),
    );
    if (waitMs > 0) {
      this.#owesUntilMs = this.#atMs + waitMs;
      return waitMs;
    }
    this.#events -= events;
    this.#bytes -= bytes;
    return 0;
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    const passedS = Math.max(0, nowMs - this.#atMs) / 1_000;
    this.#atMs = nowMs;
    this.#events = Math.min(PEER_EVENTS_PER_S_MAX, this.#events + passedS * PEER_EVENTS_PER_S_MAX);
    this.#bytes = Math.min(PEER_BYTES_PER_S_MAX, this.#bytes + passedS * PEER_BYTES_PER_S_MAX);
  }
}

function lackMs(lacking: number, perS: number): number {
  return lacking <= 0 ? 0 : Math.ceil((lacking / perS) * 1_000);
}
