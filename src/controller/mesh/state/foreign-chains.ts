// The lines of other sites inside the receipts, checked once more: each event names the one before it, and each page has the root that its
// note states. What a receipt adds is checked on what the receipts before it have of the same line.
//
// Of a line that begins in the middle (a later generation of its site, or retention) the first page is taken as it is, and only links are checked.

import { decodeEvent, eventHashOf, MerkleFrontier, bytesOfHash, hexOf } from "../../../core/events/index.ts";
import type { LineId } from "../../../core/mesh/model.ts";
import { readNote } from "../../../core/mesh/proof/index.ts";
import type { Receipt } from "../../../core/mesh/receipts/index.ts";
import type { Digest } from "../../../ports/digest.ts";

export interface ForeignFault {
  readonly arrival: number;
  readonly line: LineId;
  readonly lineSequence: number;
  readonly reason: string;
}

interface Known {
  size: number;
  hash: string;
  /** Null: the tree before it is not here. */
  readonly tree: MerkleFrontier | null;
}

export class ForeignChains {
  readonly #digest: Digest;
  readonly #lines = new Map<LineId, Known>();

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  /** The first event of a receipt that does not continue its line; null: all do. */
  check(receipt: Receipt): ForeignFault | null {
    const { page, first, own, foreign } = receipt;
    const { line } = page;
    const fault = (lineSequence: number, reason: string): ForeignFault => ({
      arrival: own + foreign + lineSequence - first + 1,
      line,
      lineSequence,
      reason,
    });
    let known = this.#lines.get(line);
    if (known !== undefined && known.size !== first - 1) {
      return fault(first, `it follows event ${known.size} of its line`);
    }
    const last = page.after + page.items.length;
    for (let sequence = first; sequence <= last; sequence++) {
      const item = page.items[sequence - page.after - 1]!;
      const read = "bytes" in item ? decodeEvent(item.bytes) : null;
      const eventHash = "bytes" in item ? eventHashOf(item.bytes, this.#digest) : item.hash;
      if (read?.kind === "event") {
        const { sequence: said, previousHash } = read.event;
        if (said !== sequence) return fault(sequence, `it says that it is event ${said}`);
        if (known !== undefined && previousHash !== known.hash)
          return fault(sequence, `it does not name the hash of event ${sequence - 1}`);
      }
      const tree = known === undefined ? (sequence === 1 ? new MerkleFrontier(this.#digest) : null) : known.tree;
      tree?.append(bytesOfHash(eventHash));
      known = { size: sequence, hash: eventHash, tree };
    }
    this.#lines.set(line, known!);
    if (known!.tree === null) return null;
    const note = readNote(page.checkpoint);
    const isRoot = note.kind === "note" && note.checkpoint.root === hexOf(known!.tree.root());
    return isRoot ? null : fault(last, "the tree up to it has another root than its signed note");
  }
}
