// Names in the order of their UTF-16 code units, kept so as they come and go: a page of them costs what is on it, however many there are.

export class SortedNames {
  #names: string[];

  constructor(names: readonly string[] = []) {
    this.#names = names.toSorted();
  }

  get size(): number {
    return this.#names.length;
  }

  /** A name that is not there. */
  add(name: string): void {
    this.#names.splice(this.#placeAfter(name), 0, name);
  }

  /** A name that is there. */
  remove(name: string): void {
    this.#names.splice(this.#placeAfter(name) - 1, 1);
  }

  /** At most `limit` after the name `after`; null: from the first. */
  page(after: string | null, limit: number): readonly string[] {
    const from = after === null ? 0 : this.#placeAfter(after);
    return this.#names.slice(from, from + limit);
  }

  /** Those that begin with `prefix` and come after the name `after`, one by one; nothing may be added or removed meanwhile. */
  *from(prefix: string, after: string | null): Generator<string, void, void> {
    let at = after === null || after < prefix ? this.#placeOf(prefix) : this.#placeAfter(after);
    for (let name = this.#names[at]; name !== undefined && name.startsWith(prefix); name = this.#names[++at])
      yield name;
  }

  /** The place of the first name that is this one or comes after it. */
  #placeOf(name: string): number {
    return this.#search((other) => other >= name);
  }

  #placeAfter(name: string): number {
    return this.#search((other) => other > name);
  }

  /** The first place where it is so; all places after it are so too. */
  #search(isSo: (name: string) => boolean): number {
    let from = 0;
    let to = this.#names.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (isSo(this.#names[middle] as string)) to = middle;
      else from = middle + 1;
    }
    return from;
  }
}
