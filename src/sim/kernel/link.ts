// One direction between two nodes: how long messages take, which are lost, doubled or damaged, and whether the
// way is open. States: open, cut (on purpose) and flapped (down for this phase of flapping), the last two at once
// or alone; both must end before messages pass.
// Invariants: everything random comes from this link's own stream, so traffic on one link never changes another;
// an in-order link never delivers a message before one that was sent earlier.

import type { Random } from "../../core/kit/random.ts";
import type { Owner } from "./event-heap.ts";

export interface LinkModel {
  readonly latencyMinMs: number;
  /** Mean of the exponential tail above the minimum. */
  readonly latencyTailMs: number;
  readonly lossRate: number;
  readonly duplicateRate: number;
  /** Share of messages that arrive truncated or with a flipped bit. */
  readonly corruptRate: number;
  /** As over one TCP connection. Otherwise each message has its own latency and they overtake each other. */
  readonly inOrder: boolean;
  /** Infinity: no transmission time. */
  readonly bytesPerMs: number;
  /** Bytes under way beyond which messages are dropped. */
  readonly queueBytesMax: number;
  /** How often a message under way survives a restart of its receiver and reaches the next life. */
  readonly acrossLivesRate: number;
}

export const LAN: LinkModel = {
  latencyMinMs: 0.1,
  latencyTailMs: 0.2,
  lossRate: 0,
  duplicateRate: 0,
  corruptRate: 0,
  inOrder: true,
  bytesPerMs: Infinity,
  queueBytesMax: 8 * 1024 * 1024,
  acrossLivesRate: 0.25,
};

/** Each is called when the condition really met a message. */
export interface LinkWatch {
  cut?: (() => void) | undefined;
  lost?: (() => void) | undefined;
  duplicated?: (() => void) | undefined;
  carried?: (() => void) | undefined;
}

export class Link {
  readonly from: string;
  readonly to: string;
  readonly owner: Owner;
  readonly random: Random;
  model: LinkModel;
  cut = false;
  flapped = false;
  /** The fault that toggles this link now; a heal takes it off. */
  flapper: object | undefined;
  watch: LinkWatch = {};
  queuedBytes = 0;
  #busyUntilMs = 0;
  #lastArrivalMs = 0;

  constructor(from: string, to: string, owner: Owner, random: Random, model: LinkModel) {
    this.from = from;
    this.to = to;
    this.owner = owner;
    this.random = random;
    this.model = model;
  }

  get open(): boolean {
    return !this.cut && !this.flapped;
  }

  /** When the last message under way arrives on an in-order link: a reset comes after it. */
  get drainedAtMs(): number {
    return this.model.inOrder ? this.#lastArrivalMs : 0;
  }

  sampleLatencyMs(): number {
    return this.model.latencyMinMs - Math.log(1 - this.random.next()) * this.model.latencyTailMs;
  }

  /** When a message sent now arrives, and whether it overtakes one that was sent before it. */
  arrival(nowMs: number, sizeBytes: number): { atMs: number; overtakes: boolean } {
    this.#busyUntilMs = Math.max(nowMs, this.#busyUntilMs) + sizeBytes / this.model.bytesPerMs;
    const atMs = this.#busyUntilMs + this.sampleLatencyMs();
    if (atMs >= this.#lastArrivalMs) {
      this.#lastArrivalMs = atMs;
      return { atMs, overtakes: false };
    }
    if (this.model.inOrder) return { atMs: this.#lastArrivalMs, overtakes: false };
    return { atMs, overtakes: true };
  }
}

/** The damage that a decoder must survive: cut off anywhere, or one bit flipped. */
export function damage(bytes: Uint8Array, random: Random): Uint8Array {
  if (bytes.length === 0) return bytes;
  const place = random.below(bytes.length);
  if (random.chance(0.5)) return bytes.slice(0, place);
  const damaged = bytes.slice();
  damaged[place] = (damaged[place] as number) ^ (1 << random.below(8));
  return damaged;
}
