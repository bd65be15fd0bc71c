// The number under which a job is on the shelf while the book has it, and the little that indexes look at all the time:
// columns of numbers, which the garbage collector does not look into.
//
// Invariants:
// - A slot is one job's from `take` to `leave`, and nobody's from then to `free`. Number and priority do not change meanwhile.
// - While a slot is in an index by its due time, that time does not change.

const PAGE_BITS = 14;
const PAGE_SLOTS = 1 << PAGE_BITS;
const PAGE_MASK = PAGE_SLOTS - 1;

/** Where the index of pending jobs has it. */
export const PLACE = { none: 0, ready: 1, timed: 2, dated: 3 } as const;
export type Place = (typeof PLACE)[keyof typeof PLACE];

/** Many pages, none of them moved when another is added: to copy a million numbers at once takes milliseconds. */
class Page {
  readonly isTaken = new Uint8Array(PAGE_SLOTS);
  readonly place = new Uint8Array(PAGE_SLOTS);
  readonly priority = new Int32Array(PAGE_SLOTS);
  readonly number = new Float64Array(PAGE_SLOTS);
  readonly dueMs = new Float64Array(PAGE_SLOTS);
  readonly hash = new Int32Array(PAGE_SLOTS);
  readonly chunk = new Int32Array(PAGE_SLOTS);
  readonly offset = new Int32Array(PAGE_SLOTS);
  readonly changedAt = new Int32Array(PAGE_SLOTS);
}

export class Slots {
  readonly #pages: Page[] = [];
  readonly #free: number[] = [];
  /** Slots that were ever taken are below it. */
  #end = 0;

  get end(): number {
    return this.#end;
  }

  take(number: number, priority: number, hash: number): number {
    const slot = this.#free.pop() ?? this.#end++;
    if (slot >>> PAGE_BITS === this.#pages.length) this.#pages.push(new Page());
    const page = this.#page(slot);
    const at = slot & PAGE_MASK;
    page.isTaken[at] = 1;
    page.place[at] = PLACE.none;
    page.number[at] = number;
    page.priority[at] = priority;
    page.hash[at] = hash;
    return slot;
  }

  leave(slot: number): void {
    this.#page(slot).isTaken[slot & PAGE_MASK] = 0;
  }

  /** It may be another job's from now on. */
  free(slot: number): void {
    this.#free.push(slot);
  }

  /** Not one that was left. */
  isTaken(slot: number): boolean {
    return this.#page(slot).isTaken[slot & PAGE_MASK] === 1;
  }

  numberOf(slot: number): number {
    return this.#page(slot).number[slot & PAGE_MASK] as number;
  }

  priorityOf(slot: number): number {
    return this.#page(slot).priority[slot & PAGE_MASK] as number;
  }

  hashOf(slot: number): number {
    return this.#page(slot).hash[slot & PAGE_MASK] as number;
  }

  placeOf(slot: number): Place {
    return this.#page(slot).place[slot & PAGE_MASK] as Place;
  }

  setPlace(slot: number, place: Place): void {
    this.#page(slot).place[slot & PAGE_MASK] = place;
  }

  dueMsOf(slot: number): number {
    return this.#page(slot).dueMs[slot & PAGE_MASK] as number;
  }

  setDueMs(slot: number, dueMs: number): void {
    this.#page(slot).dueMs[slot & PAGE_MASK] = dueMs;
  }

  /** Of whoever counts: see Shelf.hold. */
  changedAt(slot: number): number {
    return this.#page(slot).changedAt[slot & PAGE_MASK] as number;
  }

  setChangedAt(slot: number, count: number): void {
    this.#page(slot).changedAt[slot & PAGE_MASK] = count;
  }

  // ---- where its bytes are -------------------------------------------------------------------------

  chunkOf(slot: number): number {
    return this.#page(slot).chunk[slot & PAGE_MASK] as number;
  }

  offsetOf(slot: number): number {
    return this.#page(slot).offset[slot & PAGE_MASK] as number;
  }

  locate(slot: number, chunk: number, offset: number): void {
    const page = this.#page(slot);
    page.chunk[slot & PAGE_MASK] = chunk;
    page.offset[slot & PAGE_MASK] = offset;
  }

  // ---- orders --------------------------------------------------------------------------------------

  /** Higher priority first; of equals, the one that was submitted first. */
  readonly rank = (one: number, other: number): number =>
    this.priorityOf(other) - this.priorityOf(one) || this.numberOf(one) - this.numberOf(other);

  readonly byNumber = (one: number, other: number): number => this.numberOf(one) - this.numberOf(other);

  readonly byDueTime = (one: number, other: number): number =>
    this.dueMsOf(one) - this.dueMsOf(other) || this.numberOf(one) - this.numberOf(other);

  #page(slot: number): Page {
    return this.#pages[slot >>> PAGE_BITS] as Page;
  }
}
