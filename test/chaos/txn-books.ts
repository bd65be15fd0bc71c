// The books of `chaos txn`: accounts and workloads on every island, and what they say of each transaction once nothing is under way.
//
// An account is a value with a balance and the ids of all transactions of this round that wrote it: each write names the version that it has read, so that an
// id is lost only if a write was. A workload is a scope, a value and a job at one island; a move takes the scope and the value from there, and makes all
// three at another: whoever holds the scope is called as the move that took it. From round to round the ids begin anew.
//
// What is checked next to the ids: the sum of all balances; that nothing has changed under an older round's name (an effect that came after its audit); that each
// workload is at one island, with its scope; and that each job was submitted once.

import type { TxnFound } from "./txn-judge.ts";

export interface Account {
  readonly round: number;
  readonly balance: number;
  readonly ids: readonly string[];
}

export interface Workload {
  readonly round: number;
  readonly moves: readonly string[];
  /** The last move; the scope's holder is called so. */
  readonly holder: string;
}

/** What one island shows. */
export interface IslandBook {
  readonly island: string;
  readonly accounts: ReadonlyMap<string, { readonly version: number; readonly value: Account }>;
  readonly workloads: ReadonlyMap<string, { readonly version: number; readonly value: Workload }>;
  /** By scope: its holder, by name. */
  readonly holders: ReadonlyMap<string, string>;
  /** Of every job that was submitted since the last audit: the move that did. */
  readonly submitted: readonly string[];
}

export interface BooksFound extends TxnFound {
  readonly sum: number;
}

const JOB_PLACE = "job";
const SCOPE_PLACE = "scope";
const VALUE_PLACE = "value";
/** Of a move. */
export function placesOfMove(to: string): readonly string[] {
  return [`${VALUE_PLACE} ${to}`, `${SCOPE_PLACE} ${to}`, `${JOB_PLACE} ${to}`];
}

export function placeOfAccount(island: string, account: string): string {
  return `${island} ${account}`;
}

export class TxnBooks {
  readonly #workloads: readonly string[];
  /** By island and name, at the last audit. */
  readonly #versions = new Map<string, number>();

  constructor(workloads: readonly string[]) {
    this.#workloads = workloads;
  }

  audit(round: number, books: readonly IslandBook[]): BooksFound {
    const applied = new Map<string, Set<string>>();
    const broken: string[] = [];
    const apply = (id: string, place: string): void => {
      applied.set(id, (applied.get(id) ?? new Set()).add(place));
    };
    let sum = 0;
    for (const { island, accounts } of books) {
      for (const [name, { version, value }] of accounts) {
        sum += value.balance;
        this.#isTimely(`${island} ${name}`, version, value.round === round, broken);
        if (value.round === round) for (const id of value.ids) apply(id, placeOfAccount(island, name));
      }
    }
    for (const workload of this.#workloads) this.#workload(workload, round, books, apply, broken);
    this.#jobs(books, apply, broken);
    return { applied, broken, sum };
  }

  #workload(
    name: string,
    round: number,
    books: readonly IslandBook[],
    apply: (id: string, place: string) => void,
    broken: string[],
  ): void {
    const at = books.filter(({ workloads }) => workloads.has(name));
    if (at.length !== 1) broken.push(`${name} is at ${at.length} islands: ${at.map(({ island }) => island).join()}`);
    // Of this round: one that was not moved in it shows the moves of the last round in which it was.
    const ofRound = at.map(({ workloads }) => workloads.get(name)!.value).filter((value) => value.round === round);
    const passed = new Set(ofRound.flatMap(({ moves }) => moves.slice(0, -1)));
    for (const { island, workloads, holders } of books) {
      const found = workloads.get(name);
      const holder = holders.get(name);
      const owner = found?.value.holder;
      if (found !== undefined) {
        const { version, value } = found;
        this.#isTimely(`${island} ${name}`, version, value.round === round, broken);
        for (const move of value.round === round ? value.moves : []) apply(move, `${VALUE_PLACE} ${toOf(move)}`);
      }
      if (holder === undefined && found !== undefined)
        broken.push(`${name} is at ${island}, and nobody holds its scope`);
      if (holder === undefined || (found?.value.round !== round && holder === owner)) continue;
      // Of a move of this round: judged with the others of its effects. Nobody else may hold it.
      apply(holder, `${SCOPE_PLACE} ${island}`);
    }
    // Taken and given on within the round.
    for (const move of passed) apply(move, `${SCOPE_PLACE} ${toOf(move)}`);
  }

  #jobs(books: readonly IslandBook[], apply: (id: string, place: string) => void, broken: string[]): void {
    const seen = new Set<string>();
    for (const { island, submitted } of books) {
      for (const move of submitted) {
        if (seen.has(move)) broken.push(`the job of ${move} was submitted twice`);
        seen.add(move);
        apply(move, `${JOB_PLACE} ${island}`);
      }
    }
  }

  #isTimely(key: string, version: number, isOfRound: boolean, broken: string[]): void {
    const last = this.#versions.get(key);
    if (!isOfRound && last !== undefined && last !== version)
      broken.push(`${key} was changed after the audit of its round: version ${last} became ${version}`);
    this.#versions.set(key, version);
  }
}

/** A move's name says where it goes. */
export function moveId(id: string, to: string): string {
  return `${id}>${to}`;
}

function toOf(move: string): string {
  return move.slice(move.indexOf(">") + 1);
}
