// Whether the nodes have one history: each has checked its own copy, and these are compared as `tenure event verify` does. In
// the order of their length, the root that a node has for as many events as the one before it must be that one's root. Pure,
// but for the roots that it asks for.

export interface WholeHistory {
  readonly nodeId: string;
  readonly url: string;
  /** The last event; 0 where there is none. */
  readonly through: number;
  /** Of the tree of all events up to there. */
  readonly root: string;
}

export type Comparison =
  | { readonly state: "same" }
  | { readonly state: "differ"; readonly one: string; readonly other: string; readonly through: number }
  | { readonly state: "unknown"; readonly one: string; readonly other: string; readonly why: string };

/** Null: there are no two to compare. */
export async function compareHistories(
  histories: readonly WholeHistory[],
  rootAt: (url: string, size: number) => Promise<string>,
): Promise<Comparison | null> {
  const ordered = histories.filter(({ through }) => through > 0).toSorted((a, b) => a.through - b.through);
  if (ordered.length < 2) return null;
  for (const [at, longer] of ordered.entries()) {
    const shorter = ordered[at - 1];
    if (shorter === undefined) continue;
    const pair = { one: shorter.nodeId, other: longer.nodeId };
    try {
      const root = longer.through === shorter.through ? longer.root : await rootAt(longer.url, shorter.through);
      if (root !== shorter.root) return { state: "differ", ...pair, through: shorter.through };
    } catch (error) {
      return { state: "unknown", ...pair, why: error instanceof Error ? error.message : String(error) };
    }
  }
  return { state: "same" };
}
