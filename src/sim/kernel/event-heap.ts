// The queue of pending events: a binary heap ordered by (time, owner's rank, owner's sequence).
// The order of two events never depends on the order in which owners were constructed: ranks come from
// seed and name, and sequences count per owner.
// A cancelled event stays until it reaches the top or until half of the heap is dead; then it is swept.
// Invariant: `peek` is never a cancelled event.

export interface Owner {
  readonly name: string;
  /** Decided by seed and name, so that ties are broken differently under different seeds. */
  readonly rank: number;
  sequence: number;
}

export interface Scheduled {
  readonly atMs: number;
  readonly pending: boolean;
  cancel(): void;
}

/** Below this a sweep costs more than it frees. */
const SWEEP_SIZE_MIN = 1024;

export class HeapEvent implements Scheduled {
  readonly atMs: number;
  readonly owner: Owner;
  readonly sequence: number;
  /** Undefined once fired or cancelled. */
  fire: (() => void) | undefined;
  readonly #heap: EventHeap;

  constructor(heap: EventHeap, atMs: number, owner: Owner, fire: () => void) {
    this.#heap = heap;
    this.atMs = atMs;
    this.owner = owner;
    this.sequence = owner.sequence++;
    this.fire = fire;
  }

  get pending(): boolean {
    return this.fire !== undefined;
  }

  cancel(): void {
    if (this.fire === undefined) return;
    this.fire = undefined;
    this.#heap.cancelled();
  }
}

export class EventHeap {
  #events: HeapEvent[] = [];
  #dead = 0;

  get size(): number {
    return this.#events.length - this.#dead;
  }

  push(event: HeapEvent): void {
    this.#events.push(event);
    this.#siftUp(this.#events.length - 1);
  }

  peek(): HeapEvent | undefined {
    for (;;) {
      const top = this.#events[0];
      if (top === undefined || top.fire !== undefined) return top;
      this.#dead--;
      this.#removeTop();
    }
  }

  pop(): HeapEvent | undefined {
    const top = this.peek();
    if (top !== undefined) this.#removeTop();
    return top;
  }

  cancelled(): void {
    this.#dead++;
    if (this.#events.length > SWEEP_SIZE_MIN && this.#dead * 2 > this.#events.length) this.#sweep();
  }

  #sweep(): void {
    this.#events = this.#events.filter((event) => event.fire !== undefined);
    this.#dead = 0;
    for (let i = (this.#events.length >> 1) - 1; i >= 0; i--) this.#siftDown(i);
  }

  #removeTop(): void {
    const last = this.#events.pop();
    if (last === undefined || this.#events.length === 0) return;
    this.#events[0] = last;
    this.#siftDown(0);
  }

  #siftUp(start: number): void {
    const events = this.#events;
    const event = events[start] as HeapEvent;
    let index = start;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = events[parentIndex] as HeapEvent;
      if (!before(event, parent)) break;
      events[index] = parent;
      index = parentIndex;
    }
    events[index] = event;
  }

  #siftDown(start: number): void {
    const events = this.#events;
    const size = events.length;
    const event = events[start] as HeapEvent;
    let index = start;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= size) break;
      let child = events[childIndex] as HeapEvent;
      if (childIndex + 1 < size) {
        const right = events[childIndex + 1] as HeapEvent;
        if (before(right, child)) {
          child = right;
          childIndex++;
        }
      }
      if (!before(child, event)) break;
      events[index] = child;
      index = childIndex;
    }
    events[index] = event;
  }
}

function before(left: HeapEvent, right: HeapEvent): boolean {
  if (left.atMs !== right.atMs) return left.atMs < right.atMs;
  if (left.owner === right.owner) return left.sequence < right.sequence;
  if (left.owner.rank !== right.owner.rank) return left.owner.rank < right.owner.rank;
  return left.owner.name < right.owner.name;
}
