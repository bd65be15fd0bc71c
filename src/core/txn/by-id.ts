// Things in the order of their ids. New ids are the largest, or nearly, and what is forgotten is the smallest: neither moves the others.

export class ById<T> {
  readonly #idOf: (item: T) => string;
  /** From `#start` on; what is before it is undefined, and is dropped when that is half of all. */
  #items: (T | undefined)[];
  #start = 0;

  /** `items`: in order, each id once. */
  constructor(idOf: (item: T) => string, items: readonly T[] = []) {
    this.#idOf = idOf;
    this.#items = [...items];
  }

  get size(): number {
    return this.#items.length - this.#start;
  }

  get first(): T | undefined {
    return this.#items[this.#start];
  }

  get(id: string): T | undefined {
    const item = this.#items[this.#placeOf(id)];
    return item !== undefined && this.#idOf(item) === id ? item : undefined;
  }

  /** In the place of the one with this id, where there is one. */
  set(item: T): void {
    const id = this.#idOf(item);
    const place = this.#placeOf(id);
    const there = this.#items[place];
    if (there !== undefined && this.#idOf(there) === id) this.#items[place] = item;
    else if (place === this.#items.length) this.#items.push(item);
    else this.#items.splice(place, 0, item);
  }

  delete(id: string): void {
    const place = this.#placeOf(id);
    const item = this.#items[place];
    if (item === undefined || this.#idOf(item) !== id) return;
    if (place > this.#start) return void this.#items.splice(place, 1);
    this.#items[this.#start++] = undefined;
    if (2 * this.#start < this.#items.length) return;
    this.#items = this.#items.slice(this.#start);
    this.#start = 0;
  }

  /** By id, those after the id `after`. Nothing may change meanwhile. */
  *from(after: string | null): Generator<T, void, void> {
    let place = after === null ? this.#start : this.#placeOf(after);
    for (; place < this.#items.length; place++) {
      const item = this.#items[place] as T;
      if (after === null || this.#idOf(item) > after) yield item;
    }
  }

  /** How many come at this text or after it. */
  countFrom(text: string): number {
    return this.#items.length - this.#placeOf(text);
  }

  /** As they are now. */
  all(): readonly T[] {
    return this.#items.slice(this.#start) as T[];
  }

  /** The first place whose id is this one or comes after it. */
  #placeOf(id: string): number {
    let from = this.#start;
    let to = this.#items.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#idOf(this.#items[middle] as T) >= id) to = middle;
      else from = middle + 1;
    }
    return from;
  }
}
