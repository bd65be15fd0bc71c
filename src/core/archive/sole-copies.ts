// Which events may be on disks that leave the cluster, and on no other: asked before a member is removed, and before a lost
// disk is swapped. Pure, from what the members say that they lack.

import type { EventRange, Lacks } from "./segment-query.ts";

/** What one member says; null: it does not say, and may have everything or nothing. */
type Said = Lacks | null;

/**
 * Events that a voter who stays is known to lack, that nobody who stays is known to have, and that one of `leaving` may have.
 * What is only unknown counts for nobody who stays: a member that is down saves nothing. A learner who stays (`others`) is
 * still fetching: what it lacks is not missed, what it has counts.
 */
export function soleCopies(voters: readonly Said[], others: readonly Said[], leaving: readonly Said[]): EventRange[] {
  const needed = merged(voters.flatMap((lacks) => lacks?.ranges ?? []));
  const had = [...voters, ...others].flatMap((lacks) => (lacks === null ? [] : hadBy(lacks)));
  const nowhere = without(needed, had);
  return merged(leaving.flatMap((lacks) => (lacks === null ? nowhere : without(nowhere, lackedBy(lacks)))));
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
function merged(all: readonly EventRange[]): EventRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const { first, last } of all.toSorted((a, b) => a.first - b.first)) {
    const before = ranges.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else ranges.push({ first, last });
  }
  return ranges;
}
