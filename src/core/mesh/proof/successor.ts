// How a line of a later generation begins. After a recovery or a restore a site goes on under a new ring, in a new line, whose first event
// is `controller:recovered {line, through, hash, frontier}`: it names the line before it, and the event of that line after which it
// continues. Sequences and the tree go on from there, so that one proof spans both lines; what the old line has after `through` is lost.
//
// Where a disk went back to an earlier state, the site wrote more before anybody could say so. The new line begins with that, in the name
// of the author before; its recovered event comes after it, and is the first of the new author.
//
// A recovered event proves nothing by itself: `through`, `hash` and `frontier` are compared with what is known of the old line.
//
//   old line known up to …   less than `through`: incomplete, the rest is fetched first
//                            exactly `through`: hash and frontier are equal, or it is refused
//                            more: a proof of consistency and one of inclusion say that they are of the old line at `through`
//
// Whether a new ring may speak for the controller at all, the registry says (it pins, and an operator approves): not this file.

import type { ChainEvent, EventPayload } from "../../events/event.ts";
import { bytesOfHash, hexOf, isHash } from "../../events/hex.ts";
import { leafHash, MerkleFrontier } from "../../events/merkle.ts";
import { verifyConsistency, verifyInclusion } from "../../events/merkle-proof.ts";
import { DecodeError } from "../../kit/bytes.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { LineId, LineState, Ring } from "../model.ts";
import { bytesOfBase64, toBase64 } from "./base64.ts";
import { areHashes } from "./hashes.ts";
import { controllerOf, isLineId, lineIdOf } from "./line-id.ts";
import { frontierOf } from "./line-state.ts";

const RECOVERED = "controller:recovered";

type Hashes = Pick<Digest, "sha256" | "sha256Hex">;

/** Where a new line continues an old one. */
export interface Recovered {
  readonly line: LineId;
  readonly through: number;
  /** Of the event `through`; null where that is 0. */
  readonly hash: string | null;
  /** Of the tree of the first `through` events; empty where that is 0. */
  readonly frontier: Uint8Array;
}

/** That these are of the old line, where more of it is known. Hashes of 64 digits (RFC 6962), the lowest first. */
export interface RecoveredProof {
  /** From `through` to the known size. */
  readonly consistency: readonly string[];
  /** Of the event `through` in the tree of the known size. */
  readonly inclusion: readonly string[];
}

export type Succession =
  /** Before its first event, which `checkPage` demands to be the recovered one. */
  | { readonly kind: "line"; readonly state: LineState }
  /** Of the old line only so much is known: the rest of it first. */
  | { readonly kind: "incomplete"; readonly have: number }
  /** More of the old line is known: this takes a proof. */
  | { readonly kind: "unproven"; readonly from: number; readonly to: number }
  | { readonly kind: "refused"; readonly problem: string };

/** What the recovered event of a line that continues `old` carries. */
export function recoveredPayload(old: Pick<LineState, "line" | "size" | "hash" | "frontier">): EventPayload {
  return { line: old.line, through: old.size, hash: old.hash, frontier: toBase64(old.frontier) };
}

export function readRecovered(payload: EventPayload, digest: Hashes): Recovered | null {
  const { line, through, hash } = payload;
  const frontier = typeof payload["frontier"] === "string" ? bytesOfBase64(payload["frontier"]) : null;
  if (!isLineId(line) || frontier === null) return null;
  if (through === 0) return hash === null && frontier.length === 0 ? { line, through, hash, frontier } : null;
  if (!Number.isSafeInteger(through) || (through as number) < 0 || !isHash(hash)) return null;
  if (sizeOf(frontier, digest) !== through) return null;
  return { line, through: through as number, hash, frontier };
}

export interface SuccessionQuestion {
  /** The line before it. */
  readonly old: LineState;
  /** The first ring of the new line. */
  readonly ring: Ring;
  readonly recovered: Recovered;
  readonly proof?: RecoveredProof | undefined;
  readonly digest: Hashes;
}

export function successorOf({ old, ring, recovered, proof, digest }: SuccessionQuestion): Succession {
  const { line, through, hash, frontier } = recovered;
  if (line !== old.line) return refused("it continues another line");
  if (ring.controller !== old.ring.controller) return refused("its ring is another controller's");
  if (ring.generation !== old.ring.generation + 1)
    return refused(`generation ${ring.generation} follows ${old.ring.generation}`);
  if (through > old.size) return { kind: "incomplete", have: old.size };
  if (through === old.size) {
    if (hash !== old.hash || !areEqual(frontier, old.frontier))
      return refused(`it does not continue the event ${through}`);
  } else if (through > 0) {
    if (proof === undefined) return { kind: "unproven", from: through, to: old.size };
    if (!isProven(old, recovered, proof, digest))
      return refused(`it is not proven that it continues the event ${through}`);
  }
  // Of an earlier event than the last one the time is not known.
  const timestamp = through === old.size ? old.timestamp : 0;
  const state = {
    line: lineIdOf(ring, digest),
    ring,
    isStated: false,
    size: through,
    hash,
    timestamp,
    frontier,
    checkpoint: null,
  };
  return { kind: "line", state };
}

/**
 * Of the first event of its own author in a line that continues another one: whether it says so. `isFirst`: it is the line's first event at
 * all, so that `state` is where the line begins; else the site wrote more before it knew.
 */
export function recoveredProblem(event: ChainEvent, state: LineState, isFirst: boolean): string | null {
  if (event.eventType !== RECOVERED) return `the first event of an author of a later generation is ${RECOVERED}`;
  const { line, through, hash, frontier } = event.payload;
  if (!isLineId(line) || line === state.line || controllerOf(line) !== state.ring.controller)
    return "it continues no other line of its site";
  const isThis = isFirst
    ? through === state.size && hash === state.hash && frontier === toBase64(state.frontier)
    : Number.isSafeInteger(through) && (through as number) < event.sequence - 1;
  return isThis ? null : "it says that the line begins elsewhere";
}

function isProven(
  old: LineState,
  { through, hash, frontier }: Recovered,
  proof: RecoveredProof,
  digest: Hashes,
): boolean {
  if (hash === null || !areHashes(proof.consistency) || !areHashes(proof.inclusion)) return false;
  const root = frontierOf(old, digest).root();
  const firstRoot = MerkleFrontier.decode(frontier, digest).root();
  const consistency = proof.consistency.map(bytesOfHash);
  if (!verifyConsistency({ first: through, second: old.size, firstRoot, secondRoot: root, proof: consistency }, digest))
    return false;
  const leaf = leafHash(bytesOfHash(hash), digest);
  const inclusion = proof.inclusion.map(bytesOfHash);
  return verifyInclusion({ leafHash: leaf, index: through - 1, size: old.size, root, proof: inclusion }, digest);
}

/** Leaves of an encoded frontier; null where it is none. */
function sizeOf(frontier: Uint8Array, digest: Hashes): number | null {
  try {
    return MerkleFrontier.decode(frontier, digest).size;
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

function areEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && hexOf(left) === hexOf(right);
}

function refused(problem: string): Succession {
  return { kind: "refused", problem };
}
