// What a run of `chaos tc` is judged by: every island is asked all along what it shows, and every line of every log is read.
//
// An answer says of one moment between its request and its arrival that the island acted in a term. So two leases are known to have overlapped when an
// island acted in a term at a moment that is later than one at which another island acted in a higher one. No answer's time is taken for more than that.

import { setTimeout as sleep } from "node:timers/promises";
import type { IslandsSeen, TestIsland, TestIslands } from "../archipelago/test-islands.ts";
import { LEASE_TTL_MS } from "../../src/core/lease/limits.ts";

const EVERY_MS = 50;
const VIEW_MS_MAX = 1_500;

interface Acted {
  readonly voter: string;
  /** At or before this it acted for the first time. */
  firstMs: number;
  /** At or after this it acted for the last time. */
  lastMs: number;
}

export class TcJudge {
  samples = 0;
  /** Since when fewer run than a leader needs; null: enough do. */
  noQuorumSinceMs: number | null = null;
  readonly #islands: TestIslands;
  readonly #acted = new Map<number, Acted>();
  readonly #terms = new Map<string, number>();
  readonly #twice = new Set<number>();
  #termsFell = 0;
  #actedAlone = 0;
  #isOver = false;
  #asking: Promise<unknown> = Promise.resolve();

  constructor(islands: TestIslands) {
    this.#islands = islands;
  }

  start(): void {
    this.#asking = Promise.all(this.#islands.all.map((island) => this.#ask(island)));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#asking;
  }

  get result() {
    return {
      samples: this.samples,
      terms_with_two_leaders: new Set([...this.#twice, ...this.#electedTwice]).size,
      overlapping_leases: this.#overlaps,
      terms_fell: this.#termsFell,
      acted_without_quorum: this.#actedAlone,
      elections: this.#elected.size,
    };
  }

  async #ask(island: TestIsland): Promise<void> {
    while (!this.#isOver) {
      const sentMs = performance.now();
      const view = await island.view(VIEW_MS_MAX);
      if (view !== null) this.#see(view, sentMs, performance.now());
      await sleep(EVERY_MS);
    }
  }

  #see({ self, acts_in_term: term }: IslandsSeen, sentMs: number, arrivedMs: number): void {
    this.samples++;
    const voter = `${self.identity}@${self.incarnation}`;
    if (self.term < (this.#terms.get(voter) ?? 0)) this.#termsFell++;
    this.#terms.set(voter, self.term);
    if (term === null) return;
    if (this.noQuorumSinceMs !== null && sentMs > this.noQuorumSinceMs + LEASE_TTL_MS) this.#actedAlone++;
    const acted = this.#acted.get(term);
    if (acted === undefined) this.#acted.set(term, { voter, firstMs: arrivedMs, lastMs: sentMs });
    else if (acted.voter === voter) acted.lastMs = sentMs;
    else this.#twice.add(term);
  }

  get #overlaps(): number {
    const acted = [...this.#acted].toSorted(([a], [b]) => a - b).map(([, one]) => one);
    const pairs = acted.flatMap((one, at) =>
      acted.slice(at + 1).filter((later) => later.voter !== one.voter && one.lastMs > later.firstMs),
    );
    return pairs.length;
  }

  /** Who said that it was elected, by the term. */
  get #elected(): ReadonlyMap<number, ReadonlySet<string>> {
    const elected = new Map<number, Set<string>>();
    for (const { event, term, voter } of this.#islands.all.flatMap(({ logged }) => logged)) {
      if (event !== "tc_elected") continue;
      elected.set(term!, (elected.get(term!) ?? new Set()).add(voter!));
    }
    return elected;
  }

  get #electedTwice(): readonly number[] {
    return [...this.#elected].filter(([, voters]) => voters.size > 1).map(([term]) => term);
  }
}
