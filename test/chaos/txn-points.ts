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

const ATTEMPT = "controller/transactions/decider/attempt.ts";
const DECIDER = "controller/transactions/decider/decider.ts";
const REIGN = "controller/transactions/txn-reign.ts";
const RESOLVER = "controller/transactions/resolver.ts";

interface Line {
  readonly file: string;
  readonly find: string;
  /** `HERE` is where it is passed, before the line; where it is not given. */
  readonly replace?: string;
}

const LINES: Readonly<Record<TxnPoint, Line>> = {
  "before-prepare": {
    file: ATTEMPT,
    find: "    const untilMs = this.#startedMs + header.timeoutMs * TXN_PREPARE_PART;",
  },
  "first-prepared": {
    file: ATTEMPT,
    find: "        this.#heard.set(island, said);",
    replace: "        this.#heard.set(island, said); if (this.#heard.size === 1 && others.length > 1) HERE;",
  },
  "all-prepared": {
    file: ATTEMPT,
    find: "    const after = await promise;",
    replace: '    const after = await promise; if (after.kind === "commit" && others.length > 0) HERE;',
  },
  "before-commit-home": {
    file: ATTEMPT,
    find: "    const heard = await this.#ask(home, this.#commitOf(home), this.#untilMs);",
  },
  "home-committed": {
    file: ATTEMPT,
    find: '    const after = afterHome(home, "commit", heard);',
    replace: '    const after = afterHome(home, "commit", heard); if (after.kind === "committed") HERE;',
  },
  "before-commit-others": { file: ATTEMPT, find: "    const untilMs = this.#nowMs + TXN_CALL_MS;" },
  "first-applied": {
    file: ATTEMPT,
    find: "        states.set(island, afterCommit(heard));",
    replace: "        states.set(island, afterCommit(heard)); HERE;",
  },
  "before-answer": { file: DECIDER, find: "    const code = errorOfRollback(outcome.reason);" },
  "before-append": { file: REIGN, find: "    appends.add(batch, changes);" },
  "after-append": {
    file: REIGN,
    find: '      for (const change of changes) if (change.kind === "txn-decided") around.onDecided(change.outcome);',
  },
  "before-inquire": {
    file: RESOLVER,
    find: '    const answer = await reached.call(header.home, { kind: "inquire", header }, TXN_INQUIRY_WITHIN_MS);',
  },
  "before-settled": {
    file: RESOLVER,
    find: '      const answer = await calls()?.call(home, { kind: "settled", from: self, ids }, TXN_REPORT_WITHIN_MS);',
  },
  "before-deliver": { file: RESOLVER, find: "    await log.deliver(given);" },
  "after-deliver": { file: RESOLVER, find: "    await actions.delivered(ids);" },
};

/** All of them: which one kills is said to a process that runs (txn-kill-hook.ts). */
export const POINT_EDITS: readonly Edit[] = Object.entries(LINES).map(([point, { file, find, replace }]) => ({
  file,
  find,
  replace: (replace ?? `HERE; ${find}`).replace("HERE", `globalThis.txnPoint(${JSON.stringify(point)})`),
}));
