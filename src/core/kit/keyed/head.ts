// A leader's head over states that are kept by a key: what is applied, and on top of it what this leader has appended and is not applied yet
// (design D11).
//
// Invariants:
// - Decisions look here, so no two appends under way contradict each other.
// - A state on top remembers the append that it came from: an answer that rests on it leaves when that append is committed (trap 56a).
// - `Batch` is the caller's append; here only its identity and its positions count.
// - Sums over all states (how many there are, their bytes) are kept as changes come and go: a decision costs the same however many are under way.

/** What a state adds to each sum; of null: nothing, in as many places. */
export type Weigh<State> = (state: State | null) => readonly number[];

interface Top<State, Batch> {
  /** Null: it is taken away. */
  readonly state: State | null;
  readonly position: number;
  readonly batch: Batch;
  /** What it adds to each sum of the applied states. */
  ahead: readonly number[];
}

export class KeyedHead<State, Batch> {
  readonly #applied: (key: string) => State | undefined;
  readonly #weigh: Weigh<State>;
  readonly #tops = new Map<string, Top<State, Batch>>();
  #ahead: number[];

  constructor(applied: (key: string) => State | undefined, weigh: Weigh<State>) {
    this.#applied = applied;
    this.#weigh = weigh;
    this.#ahead = [...weigh(null)];
  }

  /** What is under way adds so much to each sum of the applied states. */
  get ahead(): readonly number[] {
    return this.#ahead;
  }

  get(key: string): State | undefined {
    const top = this.#tops.get(key);
    return top === undefined ? this.#applied(key) : (top.state ?? undefined);
  }

  /** The append on which the present state of this key rests; null: it is committed. */
  underWay(key: string): Batch | null {
    return this.#tops.get(key)?.batch ?? null;
  }

  /** A change that is being appended, at this position. */
  push(key: string, state: State | null, position: number, batch: Batch): void {
    this.#count(this.#tops.get(key)?.ahead ?? null, -1);
    const top = { state, position, batch, ahead: this.#aheadOf(key, state) };
    this.#tops.set(key, top);
    this.#count(top.ahead, 1);
  }

  /** The record at this position about this key is applied: to be said in the turn in which it is. */
  applied(key: string, position: number): void {
    const top = this.#tops.get(key);
    if (top === undefined) return;
    this.#count(top.ahead, -1);
    if (top.position <= position) return void this.#tops.delete(key);
    top.ahead = this.#aheadOf(key, top.state);
    this.#count(top.ahead, 1);
  }

  /** The applied state has jumped. */
  recount(): void {
    this.#ahead = [...this.#weigh(null)];
    for (const [key, top] of this.#tops) {
      top.ahead = this.#aheadOf(key, top.state);
      this.#count(top.ahead, 1);
    }
  }

  /** Appends were given up: what is left is pushed again. */
  clear(): void {
    this.#tops.clear();
    this.#ahead = [...this.#weigh(null)];
  }

  #aheadOf(key: string, state: State | null): readonly number[] {
    const before = this.#weigh(this.#applied(key) ?? null);
    return this.#weigh(state).map((weight, at) => weight - before[at]!);
  }

  #count(weights: readonly number[] | null, sign: 1 | -1): void {
    if (weights === null) return;
    for (let at = 0; at < weights.length; at++) this.#ahead[at]! += sign * weights[at]!;
  }
}
