// The periodic replay (specification: "Periodic replay from genesis"): both archives are verified, the merged state is built anew aside from the first
// arrival on, and its hash is compared with the hash of what is shown. A difference is a mistake of ours or of the disk: it is an alert, and what is
// shown is built anew.
//
//   waiting ── replay_hours, or an operator ──▶ running ──▶ equal | differs | broken | cut ──▶ waiting
//
// The alert stays up until a later replay finds the two equal.

import { TenureError } from "../../../core/kit/errors.ts";
import type { Arrivals } from "../../../ports/mesh/arrivals.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { MeshReplayed, MeshViews } from "../../../ports/mesh/views.ts";
import type { ArrivalSources } from "../receipts/arrivals.ts";
import { type ArrivedNames, arrivedEvents } from "./feeder.ts";
import { MESH_REPLAY_RETRY_MS } from "../limits.ts";

export interface ReplayerOptions extends ArrivedNames {
  readonly archives: ArrivalSources;
  readonly arrivals: Pick<Arrivals, "verify">;
  readonly views: Pick<MeshViews, "replay" | "rebuild">;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class MeshReplayer {
  readonly #options: ReplayerOptions;
  readonly #over = new AbortController();
  #timer: Timer | null = null;
  #last: MeshReplayed | null = null;
  #problem: string | null = null;
  #isRunning = false;

  constructor(options: ReplayerOptions) {
    this.#options = options;
    this.#wait(options.everyMs);
  }

  /** Null: none since this process began. */
  get last(): MeshReplayed | null {
    return this.#last;
  }

  /** Why an operator should look here; null: the last replay that compared anything found no difference. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Throws OVERLOADED where one is under way, and what the archives and the views throw. */
  async run(): Promise<MeshReplayed> {
    if (this.#isRunning) throw new TenureError("OVERLOADED", "This node replays already. See GET /v1/mesh/state.");
    this.#isRunning = true;
    try {
      const replayed = await this.#replayed();
      this.#last = replayed;
      this.#report(replayed);
      return replayed;
    } finally {
      this.#isRunning = false;
    }
  }

  close(): void {
    this.#over.abort();
    this.#timer?.cancel();
  }

  async #replayed(): Promise<MeshReplayed> {
    const { arrivals, archives, views, clock } = this.#options;
    const verified = await arrivals.verify(this.#over.signal);
    const atMs = clock.wallMs();
    if (!verified.valid) return { atMs, outcome: "broken", events: 0, reason: verified.reason };
    if (verified.first > 1) {
      const reason = `arrivals are kept from ${verified.first} on: there is nothing to compare with`;
      return { atMs, outcome: "cut", events: 0, reason };
    }
    const { equal, events, hash, rebuiltHash, rows, rebuiltRows } = await views.replay(
      arrivedEvents(archives, 1, this.#options),
    );
    if (equal) return { atMs, outcome: "equal", events, reason: null };
    const reason = `what was shown had the hash ${hash} over ${rows} rows, and built anew ${rebuiltHash} over ${rebuiltRows}`;
    await views.rebuild(reason);
    return { atMs, outcome: "differs", events, reason };
  }

  #report({ outcome, events, reason }: MeshReplayed): void {
    const { logger } = this.#options;
    if (outcome === "equal") this.#problem = null;
    if (outcome === "differs" || outcome === "broken") this.#problem = reason;
    const text = `replayed ${events} arrivals: ${outcome}${reason === null ? "" : `: ${reason}`}`;
    if (outcome === "equal" || outcome === "cut") logger.info({ event: "mesh-replay", outcome }, text);
    else logger.error({ event: "mesh-replay", outcome }, text);
  }

  #wait(ms: number): void {
    const { clock, logger, everyMs } = this.#options;
    this.#timer = clock.setTimer(clock.monotonicMs() + ms, () => {
      this.run().then(
        () => this.#wait(everyMs),
        (error: unknown) => {
          if (this.#over.signal.aborted) return;
          logger.warn(
            { event: "mesh-replay", error: String(error) },
            "the replay could not be finished; it is tried again",
          );
          this.#wait(Math.min(everyMs, MESH_REPLAY_RETRY_MS));
        },
      );
    });
  }
}
