// The newest events, in memory: whoever follows the log is here, however many they are, and costs neither a read nor a
// parse. Older ones come from the history.

import type { SealedEvent } from "../../core/events/index.ts";
import { TAIL_BYTES_MAX, TAIL_CUT_EVENTS, TAIL_EVENTS_MAX } from "./limits.ts";

export interface TailEvent {
  readonly sequence: number;
  readonly eventType: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly bytes: Uint8Array;
  readonly eventHash: string;
}

export class EventTail {
  #events: TailEvent[] = [];
  /** Of #events: those before it are let go. */
  #start = 0;
  #bytes = 0;

  push({ event, bytes }: SealedEvent): void {
    const { sequence, eventType, entityType, entityId, eventHash } = event;
    // A snapshot was restored in between: there is a gap.
    if (this.#events.at(-1)?.sequence !== sequence - 1) this.clear();
    this.#events.push({ sequence, eventType, entityType, entityId, bytes, eventHash });
    this.#bytes += bytes.length;
    while (this.#bytes > TAIL_BYTES_MAX || this.#events.length - this.#start > TAIL_EVENTS_MAX) {
      this.#bytes -= this.#events[this.#start]!.bytes.length;
      this.#start++;
    }
    if (this.#start < TAIL_CUT_EVENTS) return;
    this.#events = this.#events.slice(this.#start);
    this.#start = 0;
  }

  clear(): void {
    this.#events = [];
    this.#start = 0;
    this.#bytes = 0;
  }

  /** Those after `after`, of which the first is here. */
  *behind(after: number): Generator<TailEvent> {
    for (let at = this.#indexOf(after + 1); at < this.#events.length; at++) yield this.#events[at]!;
  }

  /** Null where it is not here. */
  hashOf(sequence: number): string | null {
    return this.has(sequence) ? this.#events[this.#indexOf(sequence)]!.eventHash : null;
  }

  has(sequence: number): boolean {
    const at = this.#indexOf(sequence);
    return at >= this.#start && at < this.#events.length;
  }

  #indexOf(sequence: number): number {
    const last = this.#events.at(-1);
    return last === undefined ? 0 : this.#events.length - 1 - (last.sequence - sequence);
  }
}
