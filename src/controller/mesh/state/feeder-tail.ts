// The newest arrivals in memory, for the feeder of the mesh's views: whatever is applied goes through here, once.
//
// Invariants: arrivals are in order and without gaps; what waits is bounded, and where that is passed all of it goes, because the archives have it.

import type { Arrived } from "../receipts/arrivals.ts";
import { FEED_WAITING_BYTES_MAX, FEED_WAITING_MAX } from "../limits.ts";

export class FeederTail {
  #events: Arrived[] = [];
  #bytes = 0;

  get size(): number {
    return this.#events.length;
  }

  push(events: readonly Arrived[]): void {
    for (const event of events) this.#bytes += bytesOf(event);
    this.#events.push(...events);
    if (this.#events.length > FEED_WAITING_MAX || this.#bytes > FEED_WAITING_BYTES_MAX) this.clear();
  }

  has(arrival: number): boolean {
    const first = this.#events[0]?.arrival;
    return first !== undefined && first <= arrival && arrival < first + this.#events.length;
  }

  /** From this arrival on, so many at most. */
  from(arrival: number, max: number): readonly Arrived[] {
    const at = arrival - this.#events[0]!.arrival;
    return this.#events.slice(at, at + max);
  }

  dropThrough(arrival: number): void {
    const first = this.#events[0]?.arrival;
    if (first === undefined || first > arrival) return;
    for (const event of this.#events.splice(0, arrival - first + 1)) this.#bytes -= bytesOf(event);
  }

  clear(): void {
    this.#events = [];
    this.#bytes = 0;
  }
}

function bytesOf(event: Arrived): number {
  return "bytes" in event ? event.bytes.length : 0;
}
