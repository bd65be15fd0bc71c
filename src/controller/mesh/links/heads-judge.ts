// What other sites' heads say, next to what is known here: how much each of them has, which the spread goes by, and whether a line was forked.
//
//   note ──▶ same, or a part of what is known       nothing more to do
//        ──▶ ahead                                  pages will be asked for
//        ──▶ shorter than ours, at an unknown root  compared with our own history, now and then
//        ──▶ another root                           suspected ── a proof of consistency ──▶ consistent · forked, with evidence · asked again
//
// Invariants: a line is only called forked with evidence that anybody can verify; whoever shows a note is blamed for one that is malformed or
// wrongly signed, never the line; for each peer and line a proof is made or asked for at most every HEAD_PROOF_EVERY_MS: what one peer shows takes
// nothing away from another, or a liar could keep a fork from being proven.

import { assertNever } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { LineId, LineState } from "../../../core/mesh/model.ts";
import { compareHeads, type Evidence, type ProofTools, readNote, settle } from "../../../core/mesh/proof/index.ts";
import { giveWay } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { LineSource } from "../../../ports/mesh/lines.ts";
import type { LineConsistency } from "../../../ports/mesh/sites.ts";
import { Slice } from "../../slice.ts";
import type { Blame } from "./blame.ts";
import type { KnownLines } from "./intake-queue.ts";
import { HEAD_PROOF_EVERY_MS, PROOFS_REMEMBERED_MAX } from "../limits.ts";

/** Asks the site that showed a note for a proof; null: it can't be asked, because it is the one that dials. */
export type AskProof = ((line: LineId, from: number, to: number) => Promise<LineConsistency | null>) | null;

export interface HeadsJudgeOptions {
  readonly clock: Clock;
  readonly tools: ProofTools;
  readonly known: Pick<KnownLines, "isOwn" | "stateOf" | "firstRingOf">;
  /** How much there is of a line of this site itself; null: this disk has no such line. What its peers have of it the gate compares. */
  readonly ownSize: (line: LineId) => number | null;
  readonly lines: Pick<LineSource, "consistency">;
  readonly blame: Blame;
  readonly forked: (evidence: Evidence) => void;
}

export class HeadsJudge {
  readonly #options: HeadsJudgeOptions;
  /** By peer and line: when a proof may be made or asked for again. */
  readonly #provenMs = new Map<string, number>();

  constructor(options: HeadsJudgeOptions) {
    this.#options = options;
  }

  /** How much the peer has of each line that this site knows. */
  async judge(peer: string, notes: readonly string[], ask: AskProof): Promise<readonly (readonly [LineId, number])[]> {
    const { clock } = this.#options;
    const sizes: (readonly [LineId, number])[] = [];
    let slice = new Slice(clock);
    for (const note of notes) {
      const size = this.#one(peer, note, ask);
      if (size !== null) sizes.push(size);
      if (!slice.isOver) continue;
      await giveWay(clock);
      slice = new Slice(clock);
    }
    return sizes;
  }

  /** A page, or a head, is signed and does not fit. */
  suspected(peer: string, line: LineId, note: string, ask: AskProof): void {
    const state = this.#options.known.stateOf(line);
    if (state !== null) this.#prove(peer, state, note, ask);
  }

  #one(peer: string, note: string, ask: AskProof): readonly [LineId, number] | null {
    const { known, tools, blame, forked, ownSize } = this.#options;
    const read = readNote(note);
    if (read.kind === "malformed") {
      blame.count(peer, "malformed");
      return null;
    }
    const { line, size } = read.checkpoint;
    if (known.isOwn(line)) {
      // Whoever likes may name lines of this site, and nobody has to sign them: what is not here is not remembered either.
      const ours = ownSize(line);
      return ours === null ? null : [line, Math.min(size, ours)];
    }
    const state = known.stateOf(line);
    // Of a line that is known by its registration alone there is nothing to compare: its pages will be.
    if (state === null) return known.firstRingOf(line) === null ? null : [line, size];
    const compared = compareHeads({ state, known: () => null, note }, tools);
    switch (compared.kind) {
      case "bad":
        blame.count(peer, "invalid");
        return null;
      case "ahead":
      case "same":
      case "behind-known":
      case "unknown-key":
        // Perhaps of a ring that its pages will bring: a reason to ask for them, and no more.
        return [line, size];
      case "behind-unknown":
      case "suspected":
        this.#prove(peer, state, note, ask);
        return [line, size];
      case "fork":
        forked(compared.evidence);
        return null;
      default:
        return assertNever(compared, "what a head is next to ours");
    }
  }

  #prove(peer: string, state: LineState, note: string, ask: AskProof): void {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const name = `${peer} ${state.line}`;
    if (nowMs < (this.#provenMs.get(name) ?? -Infinity)) return;
    // What is forgotten is one proof for each.
    if (this.#provenMs.size >= PROOFS_REMEMBERED_MAX) this.#provenMs.clear();
    this.#provenMs.set(name, nowMs + HEAD_PROOF_EVERY_MS);
    void this.#settle(state, note, ask);
  }

  async #settle(state: LineState, note: string, ask: AskProof): Promise<void> {
    const { tools, forked } = this.#options;
    const read = readNote(note);
    if (read.kind === "malformed") return;
    const found = await this.#proof(state, read.checkpoint.size, ask);
    const proof = found === null ? null : { rootAt: found.fromRoot, path: found.path };
    const settled = settle({ state, note, proof }, tools);
    if (settled.kind === "fork") forked(settled.evidence);
  }

  /** About the larger of the two trees: ours, or the one that the note is of. */
  async #proof({ line, size: ours }: LineState, theirs: number, ask: AskProof): Promise<LineConsistency | null> {
    if (theirs === ours) return null;
    try {
      if (theirs < ours) return await this.#options.lines.consistency(line, theirs, ours);
      return ask === null ? null : await ask(line, ours, theirs);
    } catch (error) {
      // It is asked for again.
      if (!TenureError.is(error)) throw error;
      return null;
    }
  }
}
