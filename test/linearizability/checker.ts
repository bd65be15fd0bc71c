// Whether a history of a key-value store is linearizable: as if every operation had happened at one moment between its
// start and its end, one after the other. Keys are checked one by one, because linearizability is local: a history is
// linearizable exactly if its part on every key is (Herlihy and Wing).
//
// Verdicts: linearizable | not-linearizable, with the key and the operations around the failure | undecided, where the
// search ran out of time or steps. Undecided is never good news: nothing was shown.

import { assertNever } from "../../src/core/kit/assert.ts";
import type { Action, Operation } from "./history.ts";
import { searchRegister, type SearchLimits } from "./register-search.ts";

export interface CheckLimits {
  readonly timeMsMax: number;
  /** For each key. */
  readonly stepsMax: number;
}

const CHECK_LIMITS: CheckLimits = { timeMsMax: 30_000, stepsMax: 2_000_000 };

export type Verdict =
  | { readonly kind: "linearizable"; readonly keys: number; readonly operations: number }
  | { readonly kind: "not-linearizable"; readonly key: string; readonly window: readonly Operation[] }
  | { readonly kind: "undecided"; readonly keys: readonly string[] };

/** Operations before the failure that are shown, at most. */
const WINDOW_BEFORE = 12;

export function checkHistory(operations: readonly Operation[], limits: CheckLimits = CHECK_LIMITS): Verdict {
  const search: SearchLimits = { stepsMax: limits.stepsMax, untilMs: performance.now() + limits.timeMsMax };
  const byKey = Map.groupBy(operations, ({ key }) => key);
  const undecided: string[] = [];
  for (const [key, ofKey] of byKey) {
    const result = searchRegister(ofKey, search);
    if (result === "undecided") undecided.push(key);
    if (result === "not-linearizable") return { kind: "not-linearizable", key, window: windowOf(ofKey, limits) };
  }
  if (undecided.length > 0) return { kind: "undecided", keys: undecided };
  return { kind: "linearizable", keys: byKey.size, operations: operations.length };
}

/**
 * The shortest beginning of the history that can't be explained, and of it the operation whose end made it so, all that
 * ran next to it, and the last ones before. Prefixes of a linearizable history are linearizable, so the end can be halved.
 */
function windowOf(operations: readonly Operation[], limits: CheckLimits): readonly Operation[] {
  const search: SearchLimits = { stepsMax: limits.stepsMax, untilMs: performance.now() + limits.timeMsMax };
  const ends = operations.flatMap(({ endedAt }) => (endedAt === null ? [] : [endedAt])).toSorted((a, b) => a - b);
  let good = -1;
  let bad = ends.length - 1;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (searchRegister(prefixOf(operations, ends[middle]!), search) === "not-linearizable") bad = middle;
    else good = middle;
  }
  const culpritEnd = ends[bad]!;
  const prefix = prefixOf(operations, culpritEnd);
  const culprits = prefix.filter(({ endedAt }) => endedAt === culpritEnd);
  const since = Math.min(...culprits.map(({ startedAt }) => startedAt));
  const beside = prefix.filter(({ endedAt }) => endedAt === null || endedAt >= since);
  const before = prefix
    .filter(({ endedAt }) => endedAt !== null && endedAt < since)
    .toSorted((a, b) => a.endedAt! - b.endedAt!)
    .slice(-WINDOW_BEFORE);
  return [...before, ...beside].toSorted((a, b) => a.startedAt - b.startedAt);
}

/** As the observer knew it then: what had not ended is unknown. */
function prefixOf(operations: readonly Operation[], until: number): readonly Operation[] {
  return operations.flatMap((operation) => {
    if (operation.startedAt > until) return [];
    if (operation.endedAt !== null && operation.endedAt <= until) return [operation];
    return operation.action.kind === "get" ? [] : [{ ...operation, endedAt: null }];
  });
}

/** One line for people. */
export function describeOperation({ id, client, key, startedAt, endedAt, action }: Operation): string {
  const end = endedAt === null ? "unknown" : endedAt.toFixed(1);
  return `#${id} ${client} ${describeAction(key, action, endedAt !== null)} [${startedAt.toFixed(1)}, ${end}]`;
}

function describeAction(key: string, action: Action, isDefinite: boolean): string {
  switch (action.kind) {
    case "put":
      return `put ${key} = ${action.value}`;
    case "get":
      return `get ${key} → ${action.value ?? "nothing"}`;
    case "cas": {
      const told = isDefinite ? (action.succeeded ? " → done" : " → refused") : "";
      return `cas ${key} ${action.expected} ⇒ ${action.value}${told}`;
    }
    default:
      return assertNever(action, "describeAction");
  }
}
