// Which finished jobs have been kept for as long as they were to be. One walk along an index, as long as what it finds.

import type { DatabaseSync } from "node:sqlite";
import type { ExpiredJobs, ExpiredPlace } from "../../ports/views.ts";
import { EXPIRED_JOBS_MAX } from "./limits.ts";
import { readPosition } from "./store.ts";

const FROM_THE_FIRST: ExpiredPlace = { expiresAtMs: -1, sequence: -1 };

/** Inside of a read transaction, so that the position is that of what is found. */
export function expiredJobs(
  database: DatabaseSync,
  nowMs: number,
  limit: number,
  after: ExpiredPlace | null = null,
): ExpiredJobs {
  const position = readPosition(database);
  const find =
    "SELECT id, finished_at, expires_at, sequence FROM jobs INDEXED BY jobs_expires WHERE expires_at <= ? AND (expires_at, sequence) > (?, ?) ORDER BY expires_at, sequence LIMIT ?";
  const { expiresAtMs, sequence } = after ?? FROM_THE_FIRST;
  const rows = database
    .prepare(find)
    .all(BigInt(Math.floor(nowMs)), BigInt(expiresAtMs), BigInt(sequence), BigInt(Math.min(limit, EXPIRED_JOBS_MAX)));
  const jobs = rows.map((row) => ({
    id: row["id"] as string,
    finishedAtMs: Number(row["finished_at"]),
    expiresAtMs: Number(row["expires_at"]),
    sequence: Number(row["sequence"]),
  }));
  return { jobs, position };
}
