// The next jobs for one agent: the best of all ready ones that it may run, without touching the book.
//
// A merge of sorted lists: the lanes of each class come sorted by their first job, so a lane has to be looked at only when the
// one before it is. The cost is by what is picked and by the classes that fit, not by how many jobs wait.

import { rank } from "./job-class.ts";
import type { JobClass, Lane } from "./job-class.ts";
import type { Cursor } from "./ranked.ts";
import type { AgentInfo } from "./model.ts";
import type { Ready } from "./ready.ts";
import type { Ticket } from "./records.ts";

interface Candidate {
  ticket: Ticket;
  readonly lane: Lane;
  readonly tickets: Cursor<Ticket>;
  /** The class's lanes behind this one; null once the next of them is a candidate itself. */
  lanes: Cursor<Lane> | null;
}

/** At most `max`, best first. */
export function pick(
  ready: Ready,
  agent: AgentInfo,
  max: number,
  isPaused: (queue: string) => boolean,
): readonly Ticket[] {
  const picked: Ticket[] = [];
  if (max <= 0) return picked;
  const heap: Candidate[] = [];
  // A kind that is named twice must not offer its jobs twice.
  for (const kind of new Set(agent.kinds)) {
    for (const one of ready.classesWith(kind)) {
      if (!isPaused(one.queue) && one.missingAt(agent) === null) push(heap, ofClass(one));
    }
  }
  /** By key: what this call has picked. */
  const taken = new Map<string, number>();
  while (picked.length < max) {
    const best = heap[0];
    if (best === undefined) break;
    const { lane, ticket } = best;
    const { lanes } = best;
    best.lanes = null;
    if (hasRoom(ready, lane, taken)) {
      picked.push(ticket);
      if (lane.key !== null) taken.set(lane.key, (taken.get(lane.key) ?? 0) + 1);
      const next = best.tickets.next();
      if (next === undefined) pop(heap);
      else {
        best.ticket = next;
        sink(heap, 0);
      }
    } else pop(heap);
    const following = lanes?.next();
    if (following !== undefined) push(heap, ofLane(following, lanes));
  }
  return picked;
}

function hasRoom(ready: Ready, { key, limit }: Lane, taken: ReadonlyMap<string, number>): boolean {
  return key === null || ready.runningWith(key) + (taken.get(key) ?? 0) < limit;
}

function ofClass({ open }: JobClass): Candidate {
  const lanes = open.cursor();
  return ofLane(lanes.current as Lane, lanes);
}

function ofLane(lane: Lane, lanes: Cursor<Lane> | null): Candidate {
  const tickets = lane.tickets.cursor();
  return { ticket: tickets.current as Ticket, lane, tickets, lanes };
}

// ---- a heap, the best first ----------------------------------------------------------------------------

function push(heap: Candidate[], one: Candidate): void {
  let at = heap.push(one) - 1;
  while (at > 0) {
    const parent = (at - 1) >>> 1;
    const above = heap[parent] as Candidate;
    if (rank(above.ticket, one.ticket) <= 0) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = one;
}

function pop(heap: Candidate[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  heap[0] = last;
  sink(heap, 0);
}

function sink(heap: Candidate[], from: number): void {
  const one = heap[from] as Candidate;
  let at = from;
  for (let child = 2 * at + 1; child < heap.length; child = 2 * at + 1) {
    const right = heap[child + 1];
    if (right !== undefined && rank(right.ticket, (heap[child] as Candidate).ticket) < 0) child++;
    const below = heap[child] as Candidate;
    if (rank(one.ticket, below.ticket) <= 0) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = one;
}
