// The periodic replay (specification: "Periodic replay from genesis"): both archives are verified, the merged state is built anew aside from the first
// arrival on, and its hash is compared with the hash of what is shown. A difference is a mistake of ours or of the disk: it is an alert, and what is
// shown is built anew. Where retention has cut the archives, it begins with the state that an earlier replay has saved.
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
import { MESH_REPLAY_RETRY_MS, REPLAY_BEGINS_MAX } from "../limits.ts";

export interface ReplayerOptions extends ArrivedNames {
  readonly archives: ArrivalSources;
  readonly arrivals: Pick<Arrivals, "verify">;
  readonly views: Pick<MeshViews, "replay" | "rebuild" | "save" | "savedThrough" | "hash">;
  /** Old events are let go: what was found equal is saved, because it can't be built from the first event for ever. */
  readonly isCut: boolean;
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
  #running: Promise<MeshReplayed> | null = null;

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
    if (this.#running !== null) {
      throw new TenureError("OVERLOADED", "This node replays already. See GET /v1/mesh/state.");
    }
    return await this.join();
  }

  /** The one that is under way, or a new one. Throws as `run`. */
  join(): Promise<MeshReplayed> {
    this.#running ??= this.#overCuts().then(
      (replayed) => {
        this.#running = null;
        this.#last = replayed;
        this.#report(replayed);
        return replayed;
      },
      (error: unknown) => {
        this.#running = null;
        throw error;
      },
    );
    return this.#running;
  }

  close(): void {
    this.#over.abort();
    this.#timer?.cancel();
  }

  /** What it began with may be let go meanwhile, because an earlier replay has saved it: then it begins again, with the saved state. */
  async #overCuts(): Promise<MeshReplayed> {
    for (let begins = 1; ; begins++) {
      try {
        return await this.#replayed();
      } catch (error) {
        const isCut = TenureError.is(error) && error.code === "LOG_COMPACTED";
        if (!isCut || begins >= REPLAY_BEGINS_MAX || this.#over.signal.aborted) throw error;
      }
    }
  }

  async #replayed(): Promise<MeshReplayed> {
    const { arrivals, archives, views, clock } = this.#options;
    const verified = await arrivals.verify(this.#over.signal);
    const atMs = clock.wallMs();
    if (!verified.valid) return { atMs, outcome: "broken", events: 0, reason: verified.reason };
    const { first } = verified;
    const saved = views.savedThrough ?? 0;
    if (first > saved + 1) return { atMs, outcome: "cut", events: 0, reason: await this.#began(first) };
    const from = first === 1 ? "nothing" : "saved";
    const begin = from === "nothing" ? 1 : saved + 1;
    const { equal, events, hash, rebuiltHash, rows, rebuiltRows } = await views.replay(
      {
        from,
        saves: this.#options.isCut || from === "saved",
        firstReceipt: archives.receipts.manifest().start.sequence + 1,
      },
      arrivedEvents(archives, begin, this.#options, this.#over.signal),
    );
    if (equal) return { atMs, outcome: "equal", events, reason: null };
    const reason = `what was shown had the hash ${hash} over ${rows} rows, and built anew ${rebuiltHash} over ${rebuiltRows}`;
    await views.rebuild(reason, from);
    return { atMs, outcome: "differs", events, reason };
  }

  /** The archives begin later than anything that was compared: the next replay begins with what is shown now. */
  async #began(first: number): Promise<string> {
    const { views } = this.#options;
    const { through } = await views.hash();
    const why = `arrivals are kept from ${first} on: there is nothing to compare with`;
    if (through + 1 < first) return `${why}, and nothing of them is shown yet`;
    await views.save();
    return `${why}. What is shown up to ${through} was saved, and the next replay begins with that`;
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
