// What this page itself has seen of leadership: who led since when, and what it saw right before that. Pure. What it did not
// look at (its tab was hidden, it was not open yet) it does not claim to know.

/** A term, as it was seen to begin. */
export interface SeenTerm {
  readonly nodeId: string;
  readonly fromMs: number;
  /** The epoch that was seen until then, with nobody or nothing between; null: this page had not looked. */
  readonly after: number | null;
  /** Since when nobody led before it, as it was seen; null: it was not. */
  readonly goneSinceMs: number | null;
}

export interface Seen {
  /** Since when nobody leads; null: somebody does, or nothing is known yet. */
  readonly goneSinceMs: number | null;
  /** The last epoch in which somebody led, while that is watched without a break; else null. */
  readonly last: number | null;
  readonly terms: ReadonlyMap<number, SeenTerm>;
}

export const NOTHING_SEEN: Seen = { goneSinceMs: null, last: null, terms: new Map() };

export function sawLeader(seen: Seen, nodeId: string, epoch: number, nowMs: number): Seen {
  if (seen.last === epoch && seen.goneSinceMs === null) return seen;
  const term: SeenTerm = { nodeId, fromMs: nowMs, after: seen.last, goneSinceMs: seen.goneSinceMs };
  const terms = seen.terms.has(epoch) ? seen.terms : new Map([...seen.terms, [epoch, term]]);
  return { goneSinceMs: null, last: epoch, terms };
}

export function sawNobody(seen: Seen, nowMs: number): Seen {
  return seen.goneSinceMs === null ? { ...seen, goneSinceMs: nowMs } : seen;
}

/** Nobody looks: whatever comes next, it is not known what was before it. */
export function lookedAway(seen: Seen): Seen {
  return seen.last === null && seen.goneSinceMs === null ? seen : { ...seen, goneSinceMs: null, last: null };
}
