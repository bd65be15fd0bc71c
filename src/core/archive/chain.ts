// What the archive knows of events: their bytes, their hashes, and that one follows the other. How an event is hashed,
// linked and parsed is core/events' business and comes in as a `Chain`.

import type { ChainEvent, ChainHead } from "../events/index.ts";

/** A committed event as this node's log has checked it; core/events' SealedEvent is one. */
export interface CommittedEvent {
  readonly event: Pick<ChainEvent, "sequence" | "eventHash" | "timestamp" | "sourceControllerId">;
  readonly bytes: Uint8Array;
}

/** An event as it is read again. */
export interface ArchivedEvent {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly eventHash: string;
}

/** A place in the chain, after one event or before the first. */
export interface ChainPoint extends ChainHead {
  /** Of the Merkle tree over all events up to here, as core/events encodes it; nothing where there are none. */
  readonly frontier: Uint8Array;
}

export const BEFORE_FIRST: ChainPoint = { sequence: 0, hash: null, timestamp: 0, frontier: new Uint8Array(0) };

export interface Chain {
  /** The hash of an event with these bytes. */
  hash(bytes: Uint8Array): string;
  /** Null where `from` is no place in a chain. */
  follow(from: ChainPoint): ChainWalk | null;
}

/** Walks along the chain from one point on. */
export interface ChainWalk {
  /** Takes the next event from a disk or a peer, and nothing on trust. False: the chain is broken, see `fault`. */
  check(bytes: Uint8Array): boolean;
  /** What is wrong with the events so far; `expected` is the last one's place in the chain, where that is known. */
  fault(expected: ChainPoint | null): { readonly sequence: number; readonly why: string } | null;
  /** Takes the next event from this node's own log, which has checked it. */
  take(event: CommittedEvent): void;
  point(): ChainPoint;
}

export function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function isSamePoint(a: ChainPoint, b: ChainPoint): boolean {
  return (
    a.sequence === b.sequence && a.hash === b.hash && a.timestamp === b.timestamp && isSameBytes(a.frontier, b.frontier)
  );
}
