// The next jobs for one agent: the best of all ready ones that it may run, without touching the book.
//
// A merge of sorted lists: the lanes of each class come sorted by their first job, so a lane has to be looked at only when the
// one before it is. The cost is by what is picked and by the classes that fit, not by how many jobs wait.

import { TextMap } from "../../kit/keyed/text-map.ts";
import type { JobClass, Lane } from "../state/job-class.ts";
import type { Cursor } from "../state/ranked.ts";
import type { AgentInfo } from "../model.ts";
import type { Ready } from "../state/ready.ts";

interface Candidate {
  slot: number;
  readonly lane: Lane;
  readonly slots: Cursor<number>;
  /** The class's lanes after this one; null once the next of them is a candidate itself. */
  lanes: Cursor<Lane> | null;
}

/** Their slots: at most `max`, best first. */
export function pick(
  ready: Ready,
  agent: AgentInfo,
  max: number,
  isPaused: (queue: string) => boolean,
): readonly number[] {
  const picked: number[] = [];
  if (max <= 0) return picked;
  const heap: Candidate[] = [];
  const { rank } = ready;
  // A kind that is named twice must not offer its jobs twice.
  for (const kind of new Set(agent.kinds)) {
    for (const one of ready.classesWith(kind)) {
      if (!isPaused(one.queue) && one.missingAt(agent) === null) push(heap, ofClass(one), rank);
    }
  }
  /** By key: what this call has picked. */
  const taken = new TextMap<number>();
  while (picked.length < max) {
    const best = heap[0];
    if (best === undefined) break;
    const { lane, slot } = best;
    const { lanes } = best;
    best.lanes = null;
    if (hasRoom(ready, lane, taken)) {
      picked.push(slot);
      if (lane.key !== null) taken.set(lane.key, (taken.get(lane.key) ?? 0) + 1);
      const next = best.slots.next();
      if (next === undefined) pop(heap, rank);
      else {
        best.slot = next;
        sink(heap, 0, rank);
      }
    } else pop(heap, rank);
    const following = lanes?.next();
    if (following !== undefined) push(heap, ofLane(following, lanes), rank);
  }
  return picked;
}

function hasRoom(ready: Ready, { key, limit }: Lane, taken: TextMap<number>): boolean {
  return key === null || ready.runningWith(key) + (taken.get(key) ?? 0) < limit;
}

function ofClass({ open }: JobClass): Candidate {
  const lanes = open.cursor();
  return ofLane(lanes.current as Lane, lanes);
}

function ofLane(lane: Lane, lanes: Cursor<Lane> | null): Candidate {
  const slots = lane.slots.cursor();
  return { slot: slots.current as number, lane, slots, lanes };
}

// ---- a heap, the best first ----------------------------------------------------------------------------

type Rank = Ready["rank"];

function push(heap: Candidate[], one: Candidate, rank: Rank): void {
  let at = heap.push(one) - 1;
  while (at > 0) {
    const parent = (at - 1) >>> 1;
    const above = heap[parent] as Candidate;
    if (rank(above.slot, one.slot) <= 0) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = one;
}

function pop(heap: Candidate[], rank: Rank): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  heap[0] = last;
  sink(heap, 0, rank);
}

function sink(heap: Candidate[], from: number, rank: Rank): void {
  const one = heap[from] as Candidate;
  let at = from;
  for (let child = 2 * at + 1; child < heap.length; child = 2 * at + 1) {
    const right = heap[child + 1];
    if (right !== undefined && rank(right.slot, (heap[child] as Candidate).slot) < 0) child++;
    const below = heap[child] as Candidate;
    if (rank(one.slot, below.slot) <= 0) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = one;
}
