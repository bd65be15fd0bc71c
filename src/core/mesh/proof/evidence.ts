// Evidence of a fork: two checkpoints of one line, both signed, of histories of which neither continues the other. Strict JSON that a third
// party verifies with nothing but the line's ring.
//
//   smaller   a note of m events with the root r
//   larger    a note of n ≥ m events
//   rootAt    the root of the larger one's history at m events, which is not r
//   path      proves (RFC 6962) that `rootAt` is that: empty where n = m, because then the larger note says it itself
//
// Invariants:
// - Nothing is believed of who made it: both signatures and the proof are checked each time.
// - Both are signed under one ring, which is named by its hash. Whoever verifies brings the ring that is in force for the line: keys that
//   were removed prove nothing, because whoever found one on an old disk could freeze an honest site with it.

import { bytesOfHash, isHash } from "../../events/hex.ts";
import { verifyConsistency } from "../../events/merkle-proof.ts";
import type { Checkpoint, LineId, Ring } from "../model.ts";
import { areHashes } from "./hashes.ts";
import { checkNote, type ProofTools } from "./note.ts";
import { hasExactly, isRecord, ringHashOf } from "./ring.ts";

/** A `type`, not an interface: as a payload it must be JSON. */
export type Evidence = {
  readonly line: LineId;
  /** The hash of the ring that both notes are signed under. */
  readonly ring: string;
  readonly smaller: string;
  readonly larger: string;
  readonly rootAt: string;
  readonly path: readonly string[];
};

/** A proof about the tree of the larger checkpoint: its root at the size of the smaller one, and why. */
export interface PrefixProof {
  readonly rootAt: string;
  readonly path: readonly string[];
}

const EVIDENCE_FIELDS = ["larger", "line", "path", "ring", "rootAt", "smaller"];

/** Null where these two notes and this proof are no evidence. The notes in any order; of two of one size no proof is needed. */
export function evidenceOf(
  notes: readonly [string, string],
  proof: PrefixProof | null,
  ring: Ring,
  tools: ProofTools,
): Evidence | null {
  const [left, right] = notes.map((note) => checkNote(note, ring, tools));
  if (left?.kind !== "signed" || right?.kind !== "signed") return null;
  const isInOrder = left.checkpoint.size <= right.checkpoint.size;
  const [smaller, larger] = isInOrder ? notes : [notes[1], notes[0]];
  const top = isInOrder ? right.checkpoint : left.checkpoint;
  const { rootAt, path } =
    left.checkpoint.size === right.checkpoint.size ? { rootAt: top.root, path: [] } : (proof ?? NOTHING);
  const evidence = { line: top.line, ring: ringHashOf(ring, tools.digest), smaller, larger, rootAt, path };
  return verifyEvidence(evidence, ring, tools) ? evidence : null;
}

const NOTHING: PrefixProof = { rootAt: "", path: [] };

/** Whether it proves that the line, whose ring in force this is, was forked. False for whatever else it is. */
export function verifyEvidence(evidence: unknown, ring: Ring, tools: ProofTools): evidence is Evidence {
  if (!isEvidence(evidence) || evidence.ring !== ringHashOf(ring, tools.digest)) return false;
  const smaller = checkNote(evidence.smaller, ring, tools);
  const larger = checkNote(evidence.larger, ring, tools);
  if (smaller.kind !== "signed" || larger.kind !== "signed") return false;
  if (smaller.checkpoint.line !== evidence.line || larger.checkpoint.line !== evidence.line) return false;
  if (evidence.rootAt === smaller.checkpoint.root) return false;
  return isPrefix(smaller.checkpoint.size, larger.checkpoint, evidence, tools);
}

/** Whether the tree of this checkpoint has this root at this size. False where it is smaller. */
export function isPrefix(size: number, of: Checkpoint, { rootAt, path }: PrefixProof, tools: ProofTools): boolean {
  if (!isHash(rootAt) || !areHashes(path)) return false;
  const claim = {
    first: size,
    second: of.size,
    firstRoot: bytesOfHash(rootAt),
    secondRoot: bytesOfHash(of.root),
    proof: path.map(bytesOfHash),
  };
  return verifyConsistency(claim, tools.digest);
}

function isEvidence(value: unknown): value is Evidence {
  if (!isRecord(value) || !hasExactly(value, EVIDENCE_FIELDS)) return false;
  const { line, ring, smaller, larger, rootAt, path } = value;
  const areTexts = [line, ring, smaller, larger].every((text) => typeof text === "string");
  return areTexts && isHash(rootAt) && areHashes(path);
}
