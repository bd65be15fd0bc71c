// What retention may cut of the two archives of a site in a mesh: what the saved state of its views covers (ports/mesh/views.ts). What is
// cut without that is shown no more once mesh.sqlite is lost, and no replay could find a difference any more.
//
// Where it does not cover enough yet, a replay is made, which saves what it finds equal. So at a cut the state is saved, and it was compared.

import type { MeshReplayed, MeshViews } from "../../../ports/mesh/views.ts";
import type { Logger } from "../../../ports/logger.ts";
import { type ArrivalSources, placesThrough } from "../receipts/arrivals.ts";

export type GuardedArchive = keyof ArrivalSources;

/** How much of an archive may go. */
export interface MayGo {
  /** The last event, or receipt, that may. */
  readonly through: number;
  /** No replay finds what is shown equal, or none can be made: waiting for it may take for ever. */
  readonly isStuck: boolean;
}

export interface HistoryGuardOptions {
  readonly archives: ArrivalSources;
  readonly views: Pick<MeshViews, "savedThrough">;
  /** The replay that is under way, or a new one. */
  readonly replay: () => Promise<MeshReplayed>;
  readonly logger: Logger;
}

export class HistoryGuard {
  readonly #options: HistoryGuardOptions;
  #isClosed = false;

  constructor(options: HistoryGuardOptions) {
    this.#options = options;
  }

  /** Before the replay is stopped: one that is ended with the process says nothing of the history. */
  close(): void {
    this.#isClosed = true;
  }

  /** Of what retention would let go, up to this event or receipt. */
  async mayGo(of: GuardedArchive, sequence: number): Promise<MayGo> {
    if ((await this.#covered(of)) >= sequence) return { through: sequence, isStuck: false };
    const isStuck = await this.#isStuck();
    return { through: Math.min(sequence, await this.#covered(of)), isStuck };
  }

  async #covered(of: GuardedArchive): Promise<number> {
    const { archives, views } = this.#options;
    const { savedThrough } = views;
    return savedThrough === null ? 0 : (await placesThrough(archives, savedThrough))[of];
  }

  async #isStuck(): Promise<boolean> {
    const { replay, logger } = this.#options;
    try {
      const { outcome } = await replay();
      return outcome === "differs" || outcome === "broken";
    } catch (error) {
      if (this.#isClosed) return false;
      const text = "no replay could be made before old history is let go";
      logger.warn({ event: "mesh-replay", error: String(error) }, text);
      return true;
    }
  }
}
