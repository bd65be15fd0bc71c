// What an engine measures of itself, for its metrics: how long a sync takes, how long a proposal, and what became of it.

import { Histogram } from "../core/kit/histogram.ts";
import type { ProposeOutcome } from "../ports/consensus.ts";
import type { EngineStats } from "../ports/server-stats.ts";

/** From a fast disk's sync to one that hangs. */
const BUCKETS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000];

export class EngineMeter {
  readonly #fsyncMs = new Histogram(BUCKETS_MS);
  readonly #commitMs = new Histogram(BUCKETS_MS);
  readonly #proposals = { committed: 0, refused: 0, unknown: 0 };

  synced(tookMs: number): void {
    this.#fsyncMs.record(tookMs);
  }

  refused(outcome: ProposeOutcome): ProposeOutcome {
    this.#proposals.refused++;
    return outcome;
  }

  settled(outcome: ProposeOutcome["outcome"], tookMs: number): void {
    this.#proposals[outcome]++;
    if (outcome === "committed") this.#commitMs.record(tookMs);
  }

  snapshot(): Pick<EngineStats, "proposals" | "commitMs" | "fsyncMs"> {
    return {
      proposals: { ...this.#proposals },
      commitMs: this.#commitMs.snapshot(),
      fsyncMs: this.#fsyncMs.snapshot(),
    };
  }
}
