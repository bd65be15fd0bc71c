// The stale leader that does not stop: sends fenced writes with epochs that are over, or that are about to be, past the
// gate, as fast as a few connections can, while others take over.

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/kit/random.ts";
import type { Crew } from "./crew.ts";
import type { Stage } from "./stage.ts";

const STREAMS = 3;
const PAUSE_MS = 4;
const REMEMBERED_EPOCHS_MAX = 200;

export class Ghost {
  readonly #stage: Stage;
  readonly #crew: Crew;
  readonly #random: Random;
  /** Oldest first; the last one may still be in force. */
  readonly #epochs: number[] = [];
  #haunting: Promise<void>[] = [];
  #rest = true;

  constructor(stage: Stage, crew: Crew, random: Random) {
    this.#stage = stage;
    this.#crew = crew;
    this.#random = random;
  }

  /** From now on this epoch is among those that are sent. */
  remember(epoch: number): void {
    if (this.#epochs.at(-1) !== epoch) this.#epochs.push(epoch);
    if (this.#epochs.length > REMEMBERED_EPOCHS_MAX) this.#epochs.shift();
  }

  start(): void {
    if (!this.#rest) return;
    this.#rest = false;
    this.#haunting = Array.from({ length: STREAMS }, () => this.#haunt());
  }

  async stop(): Promise<void> {
    this.#rest = true;
    await Promise.all(this.#haunting);
    this.#haunting = [];
  }

  /** At least so many attempts that the resource has answered, every one with an epoch that is over. */
  async volley(count: number): Promise<void> {
    for (let answered = 0, tries = 0; answered < count && tries < 10 * count; tries++) {
      const over = this.#epochs.filter((epoch) => epoch < this.#crew.newestEpoch);
      if (await this.#attempt(over, async () => undefined)) answered++;
      else await sleep(PAUSE_MS);
    }
  }

  async #haunt(): Promise<void> {
    while (!this.#rest) {
      await this.#attempt(this.#epochs, () => this.#think());
      await sleep(PAUSE_MS);
    }
  }

  #think(): Promise<void> {
    return sleep(this.#random.next() * this.#stage.options.thinkMsMax);
  }

  /** Mostly the last one: the others have been refused often before. */
  async #attempt(epochs: readonly number[], think: () => Promise<void>): Promise<boolean> {
    if (epochs.length === 0) return false;
    const epoch = this.#random.chance(0.6) ? epochs.at(-1)! : this.#random.pick(epochs);
    const isOver = this.#crew.newestEpoch > epoch;
    const outcome = await this.#stage.sendStale(epoch, think);
    if (isOver) this.#crew.countStale(outcome, `the harness in epoch ${epoch}`);
    else this.#crew.stale.early++;
    return isOver && outcome !== "unknown";
  }
}
