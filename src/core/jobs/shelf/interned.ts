// What many have in common, once, under a number that fits into their bytes; forgotten with the last of them.

export class Interned<T> {
  readonly #numbers = new Map<T, number>();
  readonly #items: (T | undefined)[] = [];
  readonly #uses: number[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#numbers.size;
  }

  at(number: number): T {
    return this.#items[number] as T;
  }

  use(item: T): number {
    const known = this.#numbers.get(item);
    if (known !== undefined) {
      (this.#uses[known] as number)++;
      return known;
    }
    const number = this.#free.pop() ?? this.#items.length;
    this.#numbers.set(item, number);
    this.#items[number] = item;
    this.#uses[number] = 1;
    return number;
  }

  drop(number: number): void {
    if (--(this.#uses[number] as number) > 0) return;
    this.#numbers.delete(this.at(number));
    this.#items[number] = undefined;
    this.#free.push(number);
  }
}
