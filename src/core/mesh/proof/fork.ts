// Heads of a line meet here: what another site's signed note says next to what is known. A fork is only called one with evidence
// that a third party verifies (evidence.ts); until then a difference is a suspicion, and is settled by a proof of consistency.
//
//   note ─▶ same · behind-known                 says what is known: needs no signature
//        ─▶ ahead · behind-unknown              nothing to compare yet: pages, or the root at that size, will say
//        ─▶ suspected                           another root than ours, but no signed note of ours to show for it
//        ─▶ fork                                with evidence
//        ─▶ unknown-key                         signed by no key of the ring in force: perhaps of a ring that is not known here yet (trap 73).
//                                               A reason to ask for pages at most, never to believe or to blame
//        ─▶ bad                                 malformed, of another line, or with a signature that is not valid

import type { Checkpoint, LineState } from "../model.ts";
import { type Evidence, evidenceOf, isPrefix, type PrefixProof } from "./evidence.ts";
import { rootOf } from "./line-state.ts";
import { checkNote, type ProofTools, readNote } from "./note.ts";

/** What is known of a line at one of its sizes. */
export interface KnownRoot {
  readonly root: string;
  /** Signed, of exactly that size; null where there is none. */
  readonly note: string | null;
}

export type HeadCompared =
  | { readonly kind: "same" }
  | { readonly kind: "ahead"; readonly checkpoint: Checkpoint }
  | { readonly kind: "behind-known" }
  | { readonly kind: "behind-unknown"; readonly checkpoint: Checkpoint }
  | { readonly kind: "suspected"; readonly checkpoint: Checkpoint; readonly note: string }
  | { readonly kind: "fork"; readonly evidence: Evidence }
  | { readonly kind: "unknown-key"; readonly checkpoint: Checkpoint; readonly problem: string }
  | { readonly kind: "bad"; readonly problem: string };

export interface HeadQuestion {
  readonly state: LineState;
  /** What is known at an earlier size; null: nothing. */
  readonly known: (size: number) => KnownRoot | null;
  readonly note: string;
}

export function compareHeads({ state, known, note }: HeadQuestion, tools: ProofTools): HeadCompared {
  const read = readNote(note);
  if (read.kind === "malformed") return { kind: "bad", problem: read.problem };
  const { checkpoint } = read;
  if (checkpoint.line !== state.line) return { kind: "bad", problem: "it is of another line" };
  const ours = knownAt(checkpoint.size, state, known, tools);
  if (ours?.root === checkpoint.root) return { kind: checkpoint.size === state.size ? "same" : "behind-known" };
  const signed = checkNote(note, state.ring, tools);
  if (signed.kind === "malformed") return { kind: "bad", problem: signed.problem };
  if (signed.kind === "unsigned") {
    const { isKeyKnown, problem } = signed;
    return isKeyKnown ? { kind: "bad", problem } : { kind: "unknown-key", checkpoint, problem };
  }
  if (ours === null) return { kind: checkpoint.size > state.size ? "ahead" : "behind-unknown", checkpoint };
  const evidence = ours.note === null ? null : evidenceOf([ours.note, note], null, state.ring, tools);
  return evidence === null ? { kind: "suspected", checkpoint, note } : { kind: "fork", evidence };
}

export type Settled =
  /** Both are of one history. Where a page raised the suspicion, whoever delivered that page had changed it. */
  | { readonly kind: "consistent" }
  | { readonly kind: "fork"; readonly evidence: Evidence }
  /** Nothing is decided: another proof is needed, from somebody else perhaps. */
  | { readonly kind: "unproven"; readonly problem: string };

export interface Suspicion {
  readonly state: LineState;
  /** The signed note that raised it. */
  readonly note: string;
  /** About the larger one's tree, ours or the note's: its root at the smaller size, and why. Not needed where both have one size, or one is empty. */
  readonly proof: PrefixProof | null;
}

export function settle({ state, note, proof }: Suspicion, tools: ProofTools): Settled {
  const signed = checkNote(note, state.ring, tools);
  if (signed.kind !== "signed") return { kind: "unproven", problem: signed.problem };
  const { checkpoint: theirs } = signed;
  if (theirs.line !== state.line) return { kind: "unproven", problem: "it is of another line" };
  const ours = { ...theirs, size: state.size, root: rootOf(state, tools.digest) };
  const [smaller, larger] = theirs.size < ours.size ? [theirs, ours] : [ours, theirs];
  const prefix = knownPrefix(smaller, larger) ?? proof;
  if (prefix === null || !isPrefix(smaller.size, larger, prefix, tools))
    return { kind: "unproven", problem: `there is no proof from ${smaller.size} to ${larger.size}` };
  if (prefix.rootAt === smaller.root) return { kind: "consistent" };
  const evidence = state.checkpoint === null ? null : evidenceOf([state.checkpoint, note], prefix, state.ring, tools);
  return evidence === null
    ? { kind: "unproven", problem: "of our own history no key of the ring in force has signed this size" }
    : { kind: "fork", evidence };
}

/** Where it takes no proof: of one size, and of nothing, which every history begins with. */
function knownPrefix(smaller: Checkpoint, larger: Checkpoint): PrefixProof | null {
  if (smaller.size === larger.size) return { rootAt: larger.root, path: [] };
  return smaller.size === 0 ? { rootAt: smaller.root, path: [] } : null;
}

function knownAt(size: number, state: LineState, known: HeadQuestion["known"], tools: ProofTools): KnownRoot | null {
  if (size === state.size) return { root: rootOf(state, tools.digest), note: state.checkpoint };
  return size < state.size ? known(size) : null;
}
