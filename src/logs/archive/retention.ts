// Releases history that is older than it is kept, at the start and once an hour, and counts what lies aside: an operator
// may have removed some of it.
//
//   started ──▶ looking ──▶ waiting for an hour ──▶ looking …       stop ends either
//
// Every node does so by itself: segments and the times in them are the same on all of them, so the nodes release the same
// segments within about an hour of each other.

import type { Clock, Timer } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { RETENTION_INTERVAL_MS, STUCK_TIMES_MAX } from "../limits.ts";
import type { Archive } from "./archive.ts";

export interface RetentionOptions {
  readonly archive: Pick<Archive, "letGoOlder" | "recount" | "stats">;
  /** Null: everything is kept. */
  readonly keepMs: number | null;
  /**
   * How much may go, of what is older than it is kept; undefined: all of it. What waits although it is `isStuck` goes when it is twice as old as it
   * is kept: a disk must not fill up because something else is broken.
   */
  readonly mayGo?: ((sequence: number) => Promise<{ readonly through: number; readonly isStuck: boolean }>) | undefined;
  /** A copy that somebody inspects: nothing is let go until it is resumed. */
  readonly isPaused?: (() => boolean) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class Retention {
  readonly #options: RetentionOptions;
  #isStopped = false;
  #timer: Timer | null = null;
  #looking: Promise<void>;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#looking = this.#look();
  }

  /** Before the archive is closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { archive, clock, logger } = this.#options;
    try {
      await this.#letGo();
      await archive.recount();
    } catch (error) {
      // What is damaged is fetched again; an archive that has failed says so itself.
      const why = error instanceof Error ? error.message : String(error);
      logger.warn({ event: "history", error: why }, "old history could not be let go; it is tried again in an hour");
    }
    if (this.#isStopped) return;
    this.#timer = clock.setTimer(clock.monotonicMs() + RETENTION_INTERVAL_MS, () => {
      this.#looking = this.#look();
    });
  }

  async #letGo(): Promise<void> {
    const { archive, keepMs, isPaused, logger } = this.#options;
    if (keepMs === null || isPaused?.() === true) return;
    const mayGo = this.#options.mayGo;
    let isStuck = false;
    let freedBytes = await this.#letGoAll(keepMs, async (sequence) => {
      if (mayGo === undefined) return sequence;
      const allowed = await mayGo(sequence);
      isStuck = allowed.isStuck;
      return allowed.through;
    });
    if (isStuck) {
      const before = archive.stats().startSequence;
      freedBytes += await this.#letGoAll(keepMs * STUCK_TIMES_MAX, (sequence) => Promise.resolve(sequence));
      const count = archive.stats().startSequence - before;
      const text = "old history was let go although the state after it is not saved";
      if (count > 0) logger.warn({ event: "history", first: before + 1, count }, text);
    }
    if (freedBytes === 0) return;
    const first = archive.stats().startSequence + 1;
    logger.info(
      { event: "history", freedBytes, first },
      `events before ${first} are older than they are kept, and were let go`,
    );
  }

  async #letGoAll(keepMs: number, mayGo: (sequence: number) => Promise<number>): Promise<number> {
    let freedBytes = 0;
    while (!this.#isStopped) {
      const bytes = await this.#options.archive.letGoOlder(keepMs, mayGo);
      if (bytes === 0) break;
      freedBytes += bytes;
    }
    return freedBytes;
  }
}
