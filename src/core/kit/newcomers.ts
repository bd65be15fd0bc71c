// Whoever has connected and is not known yet, bounded for each address and in all. Where there is no room the oldest goes, not
// the newest: an honest caller is known within moments of its arrival, and one that only holds its place is the oldest soon.

export class Newcomers<T> {
  readonly #perAddressMax: number;
  readonly #max: number;
  /** In the order of arrival, as sets are. */
  readonly #all = new Map<T, string>();
  readonly #byAddress = new Map<string, Set<T>>();

  constructor(perAddressMax: number, max: number) {
    this.#perAddressMax = perAddressMax;
    this.#max = max;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Who must go for it: the oldest of its address, or of all; null where there is room. */
  add(one: T, address: string): T | null {
    const neighbours = this.#byAddress.get(address) ?? new Set<T>();
    let evicted: T | undefined;
    if (neighbours.size >= this.#perAddressMax) [evicted] = neighbours;
    else if (this.#all.size >= this.#max) [evicted] = this.#all.keys();
    if (evicted !== undefined) this.delete(evicted);
    neighbours.add(one);
    this.#byAddress.set(address, neighbours);
    this.#all.set(one, address);
    return evicted ?? null;
  }

  /** It is known by now, or has gone. Safe to repeat. */
  delete(one: T): void {
    const address = this.#all.get(one);
    if (address === undefined) return;
    this.#all.delete(one);
    const neighbours = this.#byAddress.get(address);
    neighbours?.delete(one);
    if (neighbours?.size === 0) this.#byAddress.delete(address);
  }
}
