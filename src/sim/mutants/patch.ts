// A mutant is a known mistake, planted into the source text as it is loaded: production code carries no flag
// for it and pays nothing. An edit names a line that stands exactly once in its file, so a mutant whose line
// was changed or moved is noticed instead of silently testing nothing.

import type { ElectorLimits } from "../elector/index.ts";
import type { JobsLimits } from "../jobs/index.ts";
import type { MeshLimits } from "../mesh/index.ts";
import type { KnobLimits } from "../raft/index.ts";
import type { SpreadLimits } from "../spread/index.ts";
import type { TcLimits } from "../tc/index.ts";
import type { TxnLimits } from "../txn/index.ts";

export interface Edit {
  /** Below src/. */
  readonly file: string;
  readonly find: string;
  /** By default nothing: the line is left out. */
  readonly replace?: string | undefined;
}

export interface Mutant {
  readonly name: string;
  /** The trap, decision or rule that the planted mistake breaks. */
  readonly breaks: string;
  readonly edits: readonly Edit[];
  /** What its runs do not leave to the seed, where the mistake can only show in a cluster of some kind, or too seldom elsewhere. */
  readonly limits?:
    | KnobLimits
    | ElectorLimits
    | JobsLimits
    | MeshLimits
    | SpreadLimits
    | TcLimits
    | TxnLimits
    | undefined;
  /** Whose simulation must find it; by default the Raft cluster's. */
  readonly subject?: "elector" | "jobs" | "mesh" | "spread" | "tc" | "txn" | undefined;
}

/** How mistakes are planted into runs of one kind: what `limits` decides is not left to the seed. */
export function planting(limits?: Mutant["limits"], subject?: Mutant["subject"]) {
  return (name: string, breaks: string, ...edits: readonly Edit[]): Mutant => ({
    name,
    breaks,
    edits,
    limits,
    subject,
  });
}

export function plant(source: string, edit: Edit): string {
  const parts = source.split(edit.find);
  if (parts.length !== 2) {
    throw new Error(`${edit.file}: the line to change stands there ${parts.length - 1} times: ${edit.find}`);
  }
  return parts.join(edit.replace ?? "");
}
