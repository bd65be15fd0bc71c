// The points at which `chaos txn` kills servers, by name, and where they are in the sources: each is planted as the source is loaded. Everything that a
// transaction waits for lies between two of them.
//
// The coordinator, in the order of one transaction:
//
//   before-prepare ─ first-prepared ─ all-prepared ─ before-commit-home ─ home-committed ─ before-commit-others ─ first-applied ─ before-answer
//
// An island, whichever part it has: what it is asked is written, answered, and later it asks home, delivers its jobs, and reports.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export const COORDINATOR_POINTS = [
  "before-prepare",
  "first-prepared",
  "all-prepared",
  "before-commit-home",
  "home-committed",
  "before-commit-others",
  "first-applied",
  "before-answer",
] as const;
export const ISLAND_POINTS = [
  "before-append",
  "after-append",
  "before-inquire",
  "before-settled",
  "before-deliver",
  "after-deliver",
] as const;
export type TxnPoint = (typeof COORDINATOR_POINTS)[number] | (typeof ISLAND_POINTS)[number];

/** In which line of which file, and whether it is passed before or after it. */
const LINES: Readonly<Record<TxnPoint, { readonly file: string; readonly find: string; readonly replace: string }>> =
  {} as never;

/** All of them: which one kills is said to a process that runs (txn-kill-hook.ts). */
export const POINT_EDITS: readonly Edit[] = Object.entries(LINES).map(([point, { file, find, replace }]) => ({
  file,
  find,
  replace: replace.replace("POINT", `globalThis.txnPoint(${JSON.stringify(point)})`),
}));
