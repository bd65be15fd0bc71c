// The leases that a leader counts, of scopes or of jobs, in memory and on its monotonic clock alone (design D15, trap 56b): the log knows how long
// a lease lasts, never when it ends.
// A renewal changes one number. The heap is lazy: it holds each lease once, under the time at which it was last looked at,
// and a lease that comes due is put back where a renewal since then has moved it. So a lease costs the heap one step for
// each duration, however often it is renewed. One that ended stays in the heap until it is due; where those are many more
// than the live ones, the heap is made anew.
//
// Time in which the process stood still is no lease's time (trap 29): nobody could renew. It is added to what is left of each,
// and a moment with it, in which what waited outside comes in. Not the whole duration: on a node that stutters every lease
// would be a fresh one for ever, and the jobs of a dead agent nobody else's.

import { Shards } from "../core/kit/keyed/shards.ts";
import { LEASES_ENDED_KEPT_MAX, STALL_GRACE_MS } from "./limits.ts";
import type { Slice } from "./slice.ts";

export interface Lease {
  readonly key: string;
  readonly epoch: number;
  readonly ttlMs: number;
  /** When the grant was applied, or the last renewal arrived. */
  fromMs: number;
  /** How long the process had stood still by then. */
  stalledMs: number;
}

interface Due {
  readonly lease: Lease;
  readonly atMs: number;
}

export class Leases {
  readonly #byKey = new Shards<Lease>();
  #heap: Due[] = [];
  /** In all. */
  #stalledMs = 0;

  get size(): number {
    return this.#byKey.size;
  }

  /** Places in the heap, of live leases and of ended ones. */
  get kept(): number {
    return this.#heap.length;
  }

  /** When to look again, at the latest; Infinity without leases. */
  get nextMs(): number {
    return this.#heap[0]?.atMs ?? Infinity;
  }

  start(key: string, epoch: number, ttlMs: number, nowMs: number): void {
    const lease: Lease = { key, epoch, ttlMs, fromMs: nowMs, stalledMs: this.#stalledMs };
    this.#byKey.set(key, lease);
    this.#push({ lease, atMs: nowMs + ttlMs });
    if (this.#heap.length > 2 * this.#byKey.size + LEASES_ENDED_KEPT_MAX) this.#rebuild();
  }

  touch(key: string, epoch: number, nowMs: number): void {
    const lease = this.#byKey.get(key);
    if (lease?.epoch !== epoch) return;
    lease.fromMs = nowMs;
    lease.stalledMs = this.#stalledMs;
  }

  end(key: string, epoch: number): void {
    if (this.#byKey.get(key)?.epoch === epoch) this.#byKey.delete(key);
  }

  has(key: string, epoch: number): boolean {
    return this.#byKey.get(key)?.epoch === epoch;
  }

  /** Whatever its epoch is. */
  drop(key: string): void {
    this.#byKey.delete(key);
  }

  clear(): void {
    this.#byKey.clear();
    this.#heap.length = 0;
  }

  /** The process stood still for so long. Longer than promised is always safe. */
  stalled(forMs: number): void {
    this.#stalledMs += forMs;
  }

  /** Those that are over, at most `max`. They come again after `retryMs`, unless they are ended. */
  takeOver(nowMs: number, max: number, retryMs: number): Lease[] {
    const over: Lease[] = [];
    while (over.length < max && this.nextMs <= nowMs) {
      const { lease } = this.#pop();
      if (this.#byKey.get(lease.key) !== lease) continue;
      const endMs = this.#endOf(lease);
      if (endMs <= nowMs) over.push(lease);
      this.#push({ lease, atMs: endMs > nowMs ? endMs : nowMs + retryMs });
    }
    return over;
  }

  /** As `takeOver`, one by one, until the slice of this turn is used up; one at least. */
  *takeEach(nowMs: number, retryMs: number, slice: Pick<Slice, "isOver">): Generator<Lease, void, void> {
    for (let [one] = this.takeOver(nowMs, 1, retryMs); one !== undefined; [one] = this.takeOver(nowMs, 1, retryMs)) {
      yield one;
      if (slice.isOver) return;
    }
  }

  #endOf({ fromMs, ttlMs, stalledMs }: Lease): number {
    const lostMs = this.#stalledMs - stalledMs;
    return fromMs + ttlMs + (lostMs === 0 ? 0 : lostMs + Math.min(ttlMs, STALL_GRACE_MS));
  }

  #rebuild(): void {
    const live = this.#heap.filter(({ lease }) => this.#byKey.get(lease.key) === lease);
    // What is in order is a heap.
    this.#heap = live.sort((a, b) => a.atMs - b.atMs);
  }

  #push(due: Due): void {
    const heap = this.#heap;
    let at = heap.push(due) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Due;
      if (above.atMs <= due.atMs) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = due;
  }

  #pop(): Due {
    const heap = this.#heap;
    const top = heap[0] as Due;
    const last = heap.pop() as Due;
    if (heap.length === 0) return top;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      const right = child + 1;
      if (right < heap.length && (heap[right] as Due).atMs < (heap[child] as Due).atMs) child = right;
      const below = heap[child] as Due;
      if (below.atMs >= last.atMs) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}
