// The chain of a site: each event names the hash of the one before it. The leader seals, every node checks the link when it
// applies, and the verifier (verifier.ts) goes through all of it.
//
// The clock is a hybrid one (design D14): an event's timestamp is the wall time of its draft, or one tick (a microsecond)
// after the last event's where that is later. So it grows strictly, whatever the wall clock does, and stays at the wall
// clock for as long as less than a million events are sealed in a second. Where events of other sites are known, it also lies after
// those whose clocks are near ours (the floor): so an effect of one of them sorts after it.

import { assert } from "../kit/assert.ts";
import { TenureError } from "../kit/errors.ts";
import type { Digest } from "../../ports/digest.ts";
import {
  type ChainEvent,
  decodeEvent,
  encodeEvent,
  type EventDraft,
  eventHashOf,
  isTimestamp,
  type StoredEvent,
} from "./event.ts";

/** The last event of a chain. */
export interface ChainHead {
  /** 0: there is none yet. */
  readonly sequence: number;
  /** Its `eventHash`; null where there is none. */
  readonly hash: string | null;
  readonly timestamp: number;
}

export const EMPTY_CHAIN: ChainHead = { sequence: 0, hash: null, timestamp: 0 };

export interface SealedEvent {
  readonly event: ChainEvent;
  /** What is stored, sent and hashed. Nobody may write to it. */
  readonly bytes: Uint8Array;
}

export type LinkChecked =
  | { readonly kind: "linked"; readonly event: ChainEvent; readonly head: ChainHead }
  | { readonly kind: "broken"; readonly reason: string };

const TICKS_PER_MS = 1_000;

export interface SealerOptions {
  readonly head: ChainHead;
  /** The site's incarnation: the author of all that is sealed. */
  readonly sourceControllerId: string;
  readonly leaderEpoch: number;
  readonly digest: Pick<Digest, "sha256Hex">;
  /** What is sealed has a later timestamp than this, whatever its draft says; 0: nothing is known that it must follow. */
  readonly floorMs?: (() => number) | undefined;
}

/** The leader's side of the chain, for one epoch. */
export class Sealer {
  readonly #options: SealerOptions;
  #head: ChainHead;

  constructor(options: SealerOptions) {
    checkHead(options.head);
    this.#options = options;
    this.#head = options.head;
  }

  /** Of the last event that was sealed, committed or not. */
  get head(): ChainHead {
    return this.#head;
  }

  /** Throws EVENT_INVALID, and seals nothing, where a draft's payload has no canonical form. */
  seal(draft: EventDraft): SealedEvent {
    const { sourceControllerId, leaderEpoch, digest } = this.#options;
    const { sequence: before, hash: previousHash } = this.#head;
    const stored: StoredEvent = {
      entityId: draft.entityId,
      entityType: draft.entityType,
      eventType: draft.eventType,
      id: draft.id,
      leaderEpoch,
      payload: draft.payload,
      previousHash,
      sequence: before + 1,
      sourceControllerId,
      timestamp: tickAfter(Math.max(this.#head.timestamp, this.#options.floorMs?.() ?? 0), draft.timestamp),
    };
    const bytes = encodeEvent(stored);
    const eventHash = eventHashOf(bytes, digest);
    const event = withHash(stored, eventHash);
    this.#head = { sequence: event.sequence, hash: eventHash, timestamp: event.timestamp };
    return { event, bytes };
  }

  /** Back to a head that it had, because what was sealed on it was refused. The next event takes the place. */
  rewind(head: ChainHead): void {
    checkHead(head);
    const isEarlier = head.sequence < this.#head.sequence && head.timestamp < this.#head.timestamp;
    const isSame = head.sequence === this.#head.sequence && head.hash === this.#head.hash;
    assert(
      isEarlier || isSame,
      "a chain is rewound to where it was",
      () => `${this.#head.sequence} to ${head.sequence}`,
    );
    this.#head = head;
  }
}

/**
 * Whether an event has its timestamp of the floor, and not of a clock: the next tick after it, or after another event that has. Of one
 * whose clock shows just that tick it is not known; then it may be either.
 */
export function isLifted(timestamp: number, before: ChainHead, floorMs: number, wasLifted: boolean): boolean {
  if (before.timestamp >= floorMs && !wasLifted) return false;
  return timestamp <= onTick(Math.max(before.timestamp, floorMs), nextTick);
}

/** The wall time, or the next tick after `last`. Ticks are counted in whole numbers, so that fractions never add up. */
export function tickAfter(last: number, wallMs: number): number {
  assert(isTimestamp(wallMs), "a draft has the wall time in milliseconds", () => String(wallMs));
  const wall = onTick(wallMs, Math.round);
  return wall > last ? wall : onTick(last, nextTick);
}

/** The whole milliseconds stay apart: multiplied by a thousand they would leave no room for an exact fraction. */
function onTick(timestamp: number, choose: (ticks: number) => number): number {
  const whole = Math.floor(timestamp);
  return whole + choose((timestamp - whole) * TICKS_PER_MS) / TICKS_PER_MS;
}

function nextTick(ticks: number): number {
  return Math.round(ticks) + 1;
}

/** Whether these bytes continue the chain: the one question of apply. Canonical form is the verifier's question. */
export function checkLink(head: ChainHead, bytes: Uint8Array, digest: Pick<Digest, "sha256Hex">): LinkChecked {
  const read = decodeEvent(bytes);
  if (read.kind === "malformed") return { kind: "broken", reason: read.problem };
  const { event } = read;
  const reason = linkProblem(head, event);
  if (reason !== null) return { kind: "broken", reason };
  const eventHash = eventHashOf(bytes, digest);
  return {
    kind: "linked",
    event: withHash(event, eventHash),
    head: { sequence: event.sequence, hash: eventHash, timestamp: event.timestamp },
  };
}

function linkProblem(head: ChainHead, event: StoredEvent): string | null {
  if (event.sequence !== head.sequence + 1) return `sequence ${event.sequence} follows ${head.sequence}`;
  if (event.previousHash !== head.hash) return `previousHash is not the hash of sequence ${head.sequence}`;
  if (event.timestamp <= head.timestamp) return `timestamp ${event.timestamp} is not behind ${head.timestamp}`;
  return null;
}

/** For whoever must stop where `checkLink` says "broken". */
export function chainBroken(sequence: number, reason: string): TenureError {
  return new TenureError(
    "CHAIN_BROKEN",
    `event ${sequence} does not continue the chain: ${reason}. This node stops before it serves another history than the others; verify the log on each node, and restore this one from a peer.`,
  );
}

export function withHash(event: StoredEvent, eventHash: string): ChainEvent {
  return {
    entityId: event.entityId,
    entityType: event.entityType,
    eventType: event.eventType,
    id: event.id,
    leaderEpoch: event.leaderEpoch,
    payload: event.payload,
    previousHash: event.previousHash,
    sequence: event.sequence,
    sourceControllerId: event.sourceControllerId,
    timestamp: event.timestamp,
    eventHash,
  };
}

export function checkHead(head: ChainHead): void {
  const isWhole = Number.isSafeInteger(head.sequence) && head.sequence >= 0;
  assert(isWhole && (head.sequence === 0) === (head.hash === null), "a chain's head has a hash unless it is empty");
}
