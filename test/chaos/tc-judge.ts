// What a run of `chaos tc` is judged by: every island is asked all along what it shows, and every line of every log is read.

import { setTimeout as sleep } from "node:timers/promises";
import type { TestIsland, TestIslands } from "../archipelago/test-islands.ts";
import { TcSamples } from "./tc-samples.ts";

const EVERY_MS = 50;
const VIEW_MS_MAX = 1_500;

export class TcJudge {
  readonly samples = new TcSamples();
  readonly #islands: TestIslands;
  readonly #over = new AbortController();
  #asking: Promise<unknown> = Promise.resolve();

  constructor(islands: TestIslands) {
    this.#islands = islands;
  }

  start(): void {
    this.#asking = Promise.all(this.#islands.all.map((island) => this.#ask(island)));
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#asking;
  }

  get result() {
    const { count, termsFell, actedAlone, twice, overlaps } = this.samples;
    const elected = this.#elected;
    const electedTwice = [...elected].filter(([, voters]) => voters.size > 1).map(([term]) => term);
    return {
      samples: count,
      terms_with_two_leaders: new Set([...twice, ...electedTwice]).size,
      overlapping_leases: overlaps,
      terms_fell: termsFell,
      acted_without_quorum: actedAlone,
      elections: elected.size,
    };
  }

  async #ask(island: TestIsland): Promise<void> {
    while (!this.#over.signal.aborted) {
      const sentMs = performance.now();
      const view = await island.view(VIEW_MS_MAX);
      const arrivedMs = performance.now();
      if (view !== null) {
        const { self, acts_in_term: actsIn } = view;
        const voter = `${self.identity}@${self.incarnation}`;
        this.samples.see({ voter, term: self.term, actsIn, sentMs, arrivedMs });
      }
      await sleep(EVERY_MS);
    }
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
}
