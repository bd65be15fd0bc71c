// Which events may be on disks that leave the cluster, and on no other: asked before a member is removed, and before a lost
// disk is swapped. Pure, from what the members say that they lack.

import type { EventRange, Lacks } from "./segment-query.ts";

/** `lacks` null: it does not say, and may have everything or nothing. */
export interface Holder {
  readonly lacks: Lacks | null;
}

/**
 * Events that one of `staying` is known to lack, that none of them is known to have, and that one of `leaving` may have.
 * What is only unknown counts for nobody who stays: a member that is down saves nothing.
 */
export function soleCopies(staying: readonly Holder[], leaving: readonly Holder[]): EventRange[] {
  const needed = staying.flatMap(({ lacks }) => lacks?.ranges ?? []).toSorted((a, b) => a.first - b.first);
  const had = staying.flatMap(({ lacks }) => (lacks === null ? [] : hadBy(lacks)));
  const nowhere = without(merged(needed), had);
  const risked = leaving.flatMap(({ lacks }) => (lacks === null ? nowhere : without(nowhere, lackedBy(lacks))));
  return merged(risked.toSorted((a, b) => a.first - b.first));
}

function hadBy({ start, reached, ranges }: Lacks): EventRange[] {
  return start < reached ? without([{ first: start + 1, last: reached }], ranges) : [];
}

function lackedBy({ start, ranges }: Lacks): EventRange[] {
  return start > 0 ? [{ first: 1, last: start }, ...ranges] : [...ranges];
}

function without(from: readonly EventRange[], taken: readonly EventRange[]): EventRange[] {
  return taken.reduce<readonly EventRange[]>(
    (left, { first, last }) =>
      left.flatMap((range) => {
        if (last < range.first || first > range.last) return [range];
        return [
          ...(range.first < first ? [{ first: range.first, last: first - 1 }] : []),
          ...(range.last > last ? [{ first: last + 1, last: range.last }] : []),
        ];
      }),
    from,
  ) as EventRange[];
}

/** In order, and none touches the next. */
function merged(sorted: readonly EventRange[]): EventRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const { first, last } of sorted) {
    const before = ranges.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else ranges.push({ first, last });
  }
  return ranges;
}
