// Searches for one order of the operations on one key that a single register could have gone through: Wing and Gong's
// search with Lowe's memory of configurations that led nowhere.
//
//   configuration = which definite operations are placed + which unknown ones + the register's value
//
// What keeps it small, and why nothing is missed:
// - An operation may be placed next unless another unplaced one had ended before it started.
// - What may be placed next and leaves the value as it is (a get of that value, a cas that rightly failed) is placed at
//   once: it is in nobody's way, and placing it later allows nothing more.
// - An unknown write is placed only where the next definite operation could not follow otherwise. Anywhere else
//   it could be left out, or moved behind that operation, because it has no end that it must come before.

import { assertNever } from "../../src/core/kit/assert.ts";
import type { Operation } from "./history.ts";

export interface SearchLimits {
  /** Configurations that may be looked at. */
  readonly stepsMax: number;
  /** On the clock of `performance.now()`. */
  readonly untilMs: number;
}

export type SearchResult = "linearizable" | "not-linearizable" | "undecided";

type Value = string | null;

/** One way on from a configuration: unknown writes first, in this order, then the definite operation. */
interface Move {
  readonly at: number;
  readonly unknowns: readonly number[];
}

interface Frame {
  readonly base: number;
  readonly value: Value;
  readonly moves: readonly Move[];
  nextMove: number;
  /** What was placed to get here, to be taken back. */
  readonly placed: readonly number[];
  readonly unknowns: readonly number[];
}

/** The clock is read once in so many steps. */
const STEPS_PER_LOOK = 1_024;

export function searchRegister(operations: readonly Operation[], limits: SearchLimits): SearchResult {
  return new RegisterSearch(operations, limits).run();
}

class RegisterSearch {
  /** By start; those without an end are apart. */
  readonly #definite: readonly Operation[];
  readonly #unknown: readonly Operation[];
  readonly #unknownByValue = new Map<Value, number[]>();
  /** Values that some operation saw or compared with. Unknown writes of any other are as good as each other. */
  readonly #compared = new Set<Value>();
  readonly #placed: Uint8Array;
  readonly #used: Uint8Array;
  readonly #usedList: number[] = [];
  /** Everything below is placed. */
  #base = 0;
  #value: Value = null;
  /** The first end among those that are not placed: what starts later must wait. */
  #horizon = Infinity;
  readonly #seen = new Set<string>();
  readonly #limits: SearchLimits;
  #steps = 0;

  constructor(operations: readonly Operation[], limits: SearchLimits) {
    const byStart = operations.toSorted((a, b) => a.startedAt - b.startedAt || a.id - b.id);
    this.#definite = byStart.filter(({ endedAt }) => endedAt !== null);
    this.#unknown = byStart.filter(({ endedAt, action }) => endedAt === null && action.kind !== "get");
    this.#placed = new Uint8Array(this.#definite.length);
    this.#used = new Uint8Array(this.#unknown.length);
    this.#limits = limits;
    for (const { action } of operations) {
      if (action.kind !== "put") this.#compared.add(action.kind === "get" ? action.value : action.expected);
    }
    for (const [at, { action }] of this.#unknown.entries()) {
      const writers = this.#unknownByValue.get(action.value) ?? [];
      writers.push(at);
      this.#unknownByValue.set(action.value, writers);
    }
  }

  run(): SearchResult {
    const frames: Frame[] = [this.#enter([])];
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      if (this.#base === this.#definite.length) return "linearizable";
      if (this.#isOverLimit()) return "undecided";
      const move = frame.moves[frame.nextMove++];
      if (move === undefined) {
        frames.pop();
        this.#leave(frame);
        const below = frames.at(-1);
        if (below !== undefined) this.#restoreTo(below);
        continue;
      }
      this.#play(move);
      const next = this.#enter(move.unknowns, move.at);
      if (this.#base < this.#definite.length && !this.#isNew()) {
        this.#leave(next);
        this.#restoreTo(frame);
      } else {
        frames.push(next);
      }
    }
    return "not-linearizable";
  }

  #isOverLimit(): boolean {
    this.#steps++;
    if (this.#steps > this.#limits.stepsMax) return true;
    return this.#steps % STEPS_PER_LOOK === 0 && performance.now() > this.#limits.untilMs;
  }

  // ---- going on and back ---------------------------------------------------------------------------

  #play({ at, unknowns }: Move): void {
    for (const one of unknowns) {
      this.#used[one] = 1;
      this.#usedList.push(one);
      this.#value = (this.#unknown[one]!.action as { value: string }).value;
    }
    this.#placed[at] = 1;
    const { action } = this.#definite[at]!;
    if (action.kind === "put" || (action.kind === "cas" && action.succeeded)) this.#value = action.value;
  }

  /** Places everything that leaves the value alone, and finds what may come next. */
  #enter(unknowns: readonly number[], first?: number): Frame {
    const placed: number[] = first === undefined ? [] : [first];
    for (;;) {
      this.#skipPlaced();
      const candidates = this.#candidates();
      const quiet = candidates.filter((at) => this.#isQuiet(this.#definite[at]!));
      if (quiet.length === 0) {
        const moves = candidates.flatMap((at) => this.#movesTo(at));
        return { base: this.#base, value: this.#value, moves, nextMove: 0, placed, unknowns };
      }
      for (const at of quiet) {
        this.#placed[at] = 1;
        placed.push(at);
      }
    }
  }

  #leave({ placed, unknowns }: Frame): void {
    for (const at of placed) this.#placed[at] = 0;
    for (const one of unknowns) this.#used[one] = 0;
    this.#usedList.length -= unknowns.length;
  }

  #restoreTo(frame: Frame): void {
    this.#base = frame.base;
    this.#value = frame.value;
  }

  #skipPlaced(): void {
    while (this.#base < this.#definite.length && this.#placed[this.#base] === 1) this.#base++;
  }

  /** Lowe: the same operations placed and the same value lead to the same end. */
  #isNew(): boolean {
    let above = "";
    for (let at = this.#base; at < this.#definite.length; at++) {
      if (this.#placed[at] === 1) above += `${at - this.#base},`;
      else if (this.#definite[at]!.startedAt > this.#horizon) break;
    }
    const used = this.#usedList.length === 0 ? "" : this.#usedList.toSorted((a, b) => a - b).join(",");
    const name = `${this.#base}|${above}|${used}|${this.#value === null ? "" : `=${this.#value}`}`;
    if (this.#seen.has(name)) return false;
    this.#seen.add(name);
    return true;
  }

  // ---- what may come next --------------------------------------------------------------------------

  #findHorizon(): number {
    let horizon = Infinity;
    for (let at = this.#base; at < this.#definite.length; at++) {
      const { startedAt, endedAt } = this.#definite[at]!;
      if (startedAt > horizon) break;
      if (this.#placed[at] === 0 && endedAt! < horizon) horizon = endedAt!;
    }
    return horizon;
  }

  #candidates(): number[] {
    const horizon = this.#findHorizon();
    this.#horizon = horizon;
    const found: number[] = [];
    for (let at = this.#base; at < this.#definite.length; at++) {
      if (this.#definite[at]!.startedAt > horizon) break;
      if (this.#placed[at] === 0) found.push(at);
    }
    return found;
  }

  #isQuiet({ action }: Operation): boolean {
    if (action.kind === "get") return action.value === this.#value;
    return action.kind === "cas" && !action.succeeded && action.expected !== this.#value;
  }

  #movesTo(at: number): Move[] {
    const { action } = this.#definite[at]!;
    switch (action.kind) {
      case "put":
        return [{ at, unknowns: [] }];
      case "get":
        return this.#chainsTo(action.value).map((unknowns) => ({ at, unknowns }));
      case "cas":
        if (!action.succeeded) return this.#waysOff(action.expected).map((unknowns) => ({ at, unknowns }));
        if (action.expected === this.#value) return [{ at, unknowns: [] }];
        return this.#chainsTo(action.expected).map((unknowns) => ({ at, unknowns }));
      default:
        return assertNever(action, "movesTo");
    }
  }

  /** Every chain of unknown writes, each seen by the next, that ends with `value`. */
  #chainsTo(value: Value, behind: readonly number[] = []): number[][] {
    const chains: number[][] = [];
    for (const one of this.#unknownByValue.get(value) ?? []) {
      if (!this.#mayUse(one) || behind.includes(one)) continue;
      const { action } = this.#unknown[one]!;
      if (action.kind === "put") chains.push([one, ...behind]);
      if (action.kind !== "cas") continue;
      if (action.expected === this.#value) chains.push([one, ...behind]);
      else chains.push(...this.#chainsTo(action.expected, [one, ...behind]));
    }
    return chains;
  }

  /** A cas failed though the register has what it expected: an unknown write must have come between. */
  #waysOff(value: Value): number[][] {
    const chains: number[][] = [];
    let hasAnyOther = false;
    for (const other of this.#unknownByValue.keys()) {
      const isAnyOther = !this.#compared.has(other);
      if (other === value || (isAnyOther && hasAnyOther)) continue;
      const found = this.#chainsTo(other);
      chains.push(...found);
      if (isAnyOther && found.some((chain) => chain.length === 1)) hasAnyOther = true;
    }
    return chains;
  }

  #mayUse(one: number): boolean {
    return this.#used[one] === 0 && this.#unknown[one]!.startedAt <= this.#horizon;
  }
}
