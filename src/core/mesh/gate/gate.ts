// Whether a node signs for its site's line. A disk that went back to an earlier state (a snapshot of a virtual machine, a copied folder)
// looks like any other: only the peers know that there was more. A site that went on signing from there would have signed two histories, and
// every peer would freeze its line. So after a start nothing is signed before the own line was compared with what every peer has of it.
//
//              every peer has a part of ours · a member that has run since says so · an operator says so
//   comparing ─────────────────────────────────────────────────────────────────────────────────────────▶ open, for the life of the process
//       │ a peer has more of the newest line, or another history
//       ▼
//    behind ─── an operator begins a new line ──▶ open
//
// Invariants:
// - Appending is not gated: a site that is cut off goes on.
// - Nothing that a peer says opens the gate for another peer.
// - Only what the own keys have signed, or what equals our own history, is believed. Anything else leaves its peer uncompared.
// - Of a line that has ended (a later generation continues it) peers may have more: that is what its end says.

import type { Checkpoint, LineId } from "../model.ts";
import { UNCLEAR_LINES_MAX } from "./limits.ts";

/** What a peer's head of an own line says, next to the own history. */
export type Finding =
  /** The peer has a part of ours, or all of it. */
  | { readonly kind: "part"; readonly line: LineId }
  /** Signed by this site, and longer than what is here. */
  | { readonly kind: "longer"; readonly line: LineId; readonly size: number; readonly have: number }
  /** Signed by this site, and another history at a size that is here. */
  | { readonly kind: "other"; readonly line: LineId; readonly size: number }
  /** It can't be said: of a line, or signed by a key, that this disk does not know. */
  | { readonly kind: "unclear"; readonly line: LineId; readonly size: number };

/** What is here of an own line. */
export interface OwnPart {
  readonly size: number;
  /** A later generation continues it. */
  readonly isEnded: boolean;
  /** The root at the head's size; null: the head is longer, or that part of the history is not kept any more. */
  readonly root: string | null;
}

/** `own`: null where this disk knows no such line. `isSigned`: under a ring that this disk knows of the line. */
export function findingOf(
  head: Pick<Checkpoint, "line" | "size" | "root">,
  own: OwnPart | null,
  isSigned: boolean,
): Finding {
  const { line, size, root } = head;
  if (own === null) return { kind: "unclear", line, size };
  if (own.isEnded || own.root === root) return { kind: "part", line };
  if (!isSigned) return { kind: "unclear", line, size };
  if (size > own.size) return { kind: "longer", line, size, have: own.size };
  // What retention has cut off was compared when it was exported.
  return own.root === null ? { kind: "part", line } : { kind: "other", line, size };
}

export type GateStanding =
  | { readonly kind: "open" }
  /** `missing`: peers that are not compared yet; `unclear`: those among them that have shown something of ours that this disk does not know. */
  | { readonly kind: "comparing"; readonly missing: readonly string[]; readonly unclear: readonly string[] }
  | { readonly kind: "behind"; readonly peer: string; readonly finding: Behind };

export type Behind = Extract<Finding, { kind: "longer" | "other" }>;

export class Gate {
  #isOpen = false;
  #behind: { readonly peer: string; readonly finding: Behind } | null = null;
  readonly #compared = new Set<string>();
  /** Of peers that have shown all that they have of ours: the lines of which it can't be said what that is. */
  readonly #unclear = new Map<string, Set<LineId>>();

  /** Compared since this process started, or said to be so. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Heads of own lines that a peer has, each compared. `isAll`: there are no others, so that none says that it has nothing of ours. */
  heard(peer: string, findings: readonly Finding[], isAll: boolean): void {
    const behind = findings.find((one) => one.kind === "longer" || one.kind === "other");
    if (behind !== undefined) {
      this.#behind ??= { peer, finding: behind };
      this.#compared.delete(peer);
      return;
    }
    const unclear = isAll ? new Set<LineId>() : this.#unclear.get(peer);
    if (unclear === undefined) return;
    this.#unclear.set(peer, unclear);
    for (const { kind, line } of findings) {
      // Names of lines that are not here need no signature: a peer may make up any number of them. One of them is enough to be unclear.
      if (kind !== "unclear") unclear.delete(line);
      else if (unclear.size < UNCLEAR_LINES_MAX) unclear.add(line);
    }
    if (unclear.size === 0) this.#compared.add(peer);
  }

  /** For good: compared, vouched for by a member of the site, or resumed by an operator. */
  open(): void {
    this.#isOpen = true;
    this.#behind = null;
  }

  /** `peers`: those that may have something of ours from this site itself, as the registry has them now. */
  standing(peers: readonly string[]): GateStanding {
    if (this.#isOpen) return { kind: "open" };
    if (this.#behind !== null) return { kind: "behind", ...this.#behind };
    const missing = peers.filter((peer) => !this.#compared.has(peer));
    if (missing.length === 0) return { kind: "open" };
    return { kind: "comparing", missing, unclear: missing.filter((peer) => (this.#unclear.get(peer)?.size ?? 0) > 0) };
  }
}
