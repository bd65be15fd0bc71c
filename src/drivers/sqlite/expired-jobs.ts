// Which finished jobs have been kept for as long as they were to be. One walk along an index, as long as what it finds.

import type { DatabaseSync } from "node:sqlite";
import type { ExpiredJobs } from "../../ports/views.ts";
import { EXPIRED_JOBS_MAX } from "./limits.ts";
import { readPosition } from "./store.ts";

/** Inside of a read transaction, so that the position is that of what is found. */
export function expiredJobs(database: DatabaseSync, nowMs: number, limit: number): ExpiredJobs {
  const position = readPosition(database);
  const find =
    "SELECT id, finished_at, expires_at FROM jobs INDEXED BY jobs_expires WHERE expires_at <= ? ORDER BY expires_at, sequence LIMIT ?";
  const rows = database.prepare(find).all(BigInt(Math.floor(nowMs)), BigInt(Math.min(limit, EXPIRED_JOBS_MAX)));
  const jobs = rows.map((row) => ({
    id: row["id"] as string,
    finishedAtMs: Number(row["finished_at"]),
    expiresAtMs: Number(row["expires_at"]),
  }));
  return { jobs, position };
}
