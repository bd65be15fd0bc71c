// Which line of this site an own event is in: its generation by sequence.

import type { LineId } from "../../../core/mesh/model.ts";
import { type OwnLines, ringOf } from "../own/own-line-fold.ts";

export type OwnPlace =
  | { readonly kind: "in"; readonly line: LineId; readonly generation: number }
  /** The ring of its generation is not written yet. */
  | { readonly kind: "unnamed" }
  /** Of a generation that is not remembered any more. */
  | { readonly kind: "forgotten" };

export function ownPlaceOf(own: OwnLines | null, sequence: number): OwnPlace {
  if (own === null) return { kind: "unnamed" };
  const found = own.generations.findLast(({ after }) => after < sequence);
  if (found === undefined) return { kind: "forgotten" };
  if (found.end !== null && sequence > found.end.through) return { kind: "unnamed" };
  return { kind: "in", line: found.line, generation: ringOf(found).generation };
}
