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
  const had = merged([...voters, ...others].flatMap((lacks) => (lacks === null ? [] : hadBy(lacks))));
  const nowhere = without(needed, had);
  return merged(leaving.flatMap((lacks) => (lacks === null ? nowhere : without(nowhere, lackedBy(lacks)))));
}

function hadBy({ start, reached, ranges }: Lacks): EventRange[] {
  return start < reached ? without([{ first: start + 1, last: reached }], merged(ranges)) : [];
}

function lackedBy({ start, ranges }: Lacks): EventRange[] {
  return merged(start > 0 ? [{ first: 1, last: start }, ...ranges] : ranges);
}

/** Both are merged, so each range is looked at once: members may answer with thousands of them. */
function without(from: readonly EventRange[], taken: readonly EventRange[]): EventRange[] {
  const left: EventRange[] = [];
  let next = 0;
  for (const { first, last } of from) {
    let rest = first;
    while (next < taken.length && taken[next]!.last < rest) next++;
    for (; next < taken.length && taken[next]!.first <= last; next++) {
      const range = taken[next]!;
      if (rest < range.first) left.push({ first: rest, last: range.first - 1 });
      rest = range.last + 1;
      // It may reach into the next one of `from` too.
      if (rest > last) break;
    }
    if (rest <= last) left.push({ first: rest, last });
  }
  return left;
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
