// The leader's housekeeping of a log in Postgres: every so many records the fold's snapshot is stored, so that a new node does
// not begin at the first record, and what lies far enough after it is deleted.
//
//   idle ──enough records were committed──▶ storing, part by part ──▶ deleting, so many at a time ──▶ idle
//
// Invariants: records are deleted after a stored snapshot only, and never from `keepFrom` on; a failure costs nothing but a
// later attempt; an epoch that is over stores and deletes nothing (the functions look).

import { piecesOf } from "../../core/kit/pieces.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SqlLane } from "../../ports/backends/sql.ts";
import { SNAPSHOT_PART_BYTES_MAX, TRIMMED_RECORDS_MAX } from "../limits.ts";
import { bundled } from "./bundles.ts";
import type { Applied } from "./applied.ts";
import type { LogReader } from "./log-reader.ts";
import { integerOf, type LogStatements } from "./log-sql.ts";
import type { Opening } from "./writer.ts";

export interface SnapshotPolicy {
  /** Store one after so many records. */
  readonly everyRecords: number;
  /** So many records before the snapshot stay. Undefined: nothing is deleted. */
  readonly keepRecords?: number | undefined;
  /** Whatever lies from this position on stays too: what an archive still lacks, for example. */
  readonly keepFrom?: (() => number) | undefined;
}

export interface SnapshotKeeperOptions {
  readonly log: string;
  readonly sql: LogStatements;
  readonly applied: Applied;
  readonly reader: LogReader;
  readonly policy: SnapshotPolicy;
  readonly lane: () => SqlLane;
  readonly fault: (error: unknown) => Error;
  readonly logger: Logger;
}

export class SnapshotKeeper {
  readonly #options: SnapshotKeeperOptions;
  #storedAt = 0;
  #underWay: Promise<void> | null = null;

  constructor(options: SnapshotKeeperOptions) {
    this.#options = options;
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#underWay !== null) await this.#underWay;
  }

  committed(opening: Opening): void {
    if (this.#underWay !== null || !this.#isDue) return;
    this.#underWay = this.#keep(opening).finally(() => {
      this.#underWay = null;
    });
  }

  get #isDue(): boolean {
    const { applied, reader, policy } = this.#options;
    const storedAt = Math.max(this.#storedAt, reader.stored?.snapshotPosition ?? 0);
    return applied.position - storedAt >= policy.everyRecords;
  }

  async #keep(opening: Opening): Promise<void> {
    const { log, logger, fault } = this.#options;
    try {
      // One that became due meanwhile belongs to the same errand.
      while (this.#isDue && (await this.#store(opening))) await this.#trim(opening);
    } catch (error) {
      logger.warn(
        { log, error: fault(error).message },
        "storing a snapshot of the log failed; it is tried again later",
      );
    }
  }

  async #store({ epoch, opened }: Opening): Promise<boolean> {
    const { log, sql, applied, lane } = this.#options;
    const session = lane();
    const { position } = applied;
    let part = 0;
    for (const { data, isLast } of bundled(piecesOf(applied.snapshot()), SNAPSHOT_PART_BYTES_MAX)) {
      const values = [log, epoch, opened, position, part++, data, isLast];
      const [row] = await session.ask<{ saved: boolean }>(sql.save, values);
      if (row?.saved !== true) return false;
    }
    this.#storedAt = position;
    return true;
  }

  async #trim({ epoch, opened }: Opening): Promise<void> {
    const { log, sql, policy, lane } = this.#options;
    const { keepRecords, keepFrom } = policy;
    if (keepRecords === undefined) return;
    const below = Math.min(this.#storedAt - keepRecords + 1, keepFrom?.() ?? Number.MAX_SAFE_INTEGER);
    for (let first = 0; first < below;) {
      const [row] = await lane().ask<{ first: string }>(sql.trim, [log, epoch, opened, below, TRIMMED_RECORDS_MAX]);
      const next = integerOf(row?.first ?? null);
      if (next <= first) return;
      first = next;
    }
  }
}
