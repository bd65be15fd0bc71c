// Reads a range of one attempt's log, which is stored in chunks. Offsets count bytes of UTF-8; a page never ends within a
// character, and one that is asked for from within a character starts after it.

import type { DatabaseSync } from "node:sqlite";
import type { Job } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { JobLogPage } from "../../ports/views.ts";
import { LOG_PAGE_BYTES_MAX } from "../../core/kit/limits.ts";
import { LOG_CHARACTER_BYTES_MAX } from "./limits.ts";

/** Inside of a read transaction. */
export function readLog(
  database: DatabaseSync,
  jobId: string,
  attempt: number,
  offset: number,
  bytesMax: number,
): JobLogPage {
  const row = database.prepare("SELECT sequence, json FROM jobs WHERE id = ?").get(jobId);
  if (row === undefined) {
    throw new TenureError(
      "NOT_FOUND",
      `there is no job ${jobId} here: it was never submitted, or is not kept any more.`,
    );
  }
  const sequence = row["sequence"] as number;
  const roomBytes = Math.min(LOG_PAGE_BYTES_MAX, Math.max(LOG_CHARACTER_BYTES_MAX, bytesMax));
  const { parts, endOffset, isEnd } = readChunks(database, sequence, attempt, offset, roomBytes);
  const bytes = Buffer.concat(parts);
  const cut = isEnd ? bytes.length : characterStart(bytes, bytes.length);
  return {
    text: bytes.toString("utf8", 0, cut),
    nextOffset: endOffset - (bytes.length - cut),
    isComplete: isEnd && hasEnded(parseJson(row["json"] as string) as Job, attempt),
  };
}

interface Chunks {
  readonly parts: readonly Buffer[];
  /** After the last byte of them. */
  readonly endOffset: number;
  readonly isEnd: boolean;
}

function readChunks(
  database: DatabaseSync,
  sequence: number,
  attempt: number,
  offset: number,
  roomBytes: number,
): Chunks {
  const place = "sequence = ? AND attempt = ?";
  const statement = database.prepare(`
    SELECT offset, text FROM logs WHERE ${place}
      AND offset >= coalesce((SELECT max(offset) FROM logs WHERE ${place} AND offset <= ?), 0)
    ORDER BY offset`);
  const parts: Buffer[] = [];
  let left = roomBytes;
  let end = offset;
  for (const row of statement.iterate(sequence, attempt, sequence, attempt, offset)) {
    const start = row["offset"] as number;
    const chunk = Buffer.from(row["text"] as string);
    if (start + chunk.length <= end) continue;
    // What is between chunks was never stored: the log goes on after it.
    let from = Math.max(0, end - start);
    if (parts.length === 0) while (from < chunk.length && isContinuation(chunk[from]!)) from++;
    if (left === 0) return { parts, endOffset: end, isEnd: false };
    const to = Math.min(chunk.length, from + left);
    parts.push(chunk.subarray(from, to));
    left -= to - from;
    end = start + to;
    if (to < chunk.length) return { parts, endOffset: end, isEnd: false };
  }
  return { parts, endOffset: end, isEnd: true };
}

/** Where the character starts that `at` is in, or `at` where it is between two. */
function characterStart(bytes: Buffer, at: number): number {
  let start = at - 1;
  while (start >= 0 && isContinuation(bytes[start]!)) start--;
  if (start < 0) return at;
  const first = bytes[start]!;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return start + length <= at ? at : start;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** An attempt that is not among the last ones any more ended long ago. */
function hasEnded(job: Job, attempt: number): boolean {
  if (job.finishedAtMs !== null) return true;
  const known = job.attempts.find((one) => one.attempt === attempt);
  if (known !== undefined) return known.endedAtMs !== null;
  const newest = job.lease?.attempt ?? job.attempts.at(-1)?.attempt ?? 0;
  return attempt < newest;
}
