// The statements of a log in Postgres, for one schema and one log, and what their rows mean. The functions they call stand
// in postgres/schema/log.ts. Each is one statement: one round trip, one transaction, one snapshot of the database.

import { assert } from "../../core/kit/assert.ts";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import type { LogRecord } from "../../ports/log.ts";
import { quoteSchema } from "../../postgres/schema/schema.ts";

export const LOG_CHANNEL = "tenure_log";

export type LogStatements = ReturnType<typeof logStatements>;

export function logStatements(schema: string) {
  const at = quoteSchema(schema);
  const verdict = "taken, in_epoch::text as epoch, at_opened::text as opened, at_position::text as position";
  const head = `h.epoch::text as epoch, h.position::text as position, h.first::text as first,
  h.snapshot_position::text as snapshot_position, h.snapshot_epoch::text as snapshot_epoch`;
  const before = `(select b.epoch::text from ${at}.tenure_log b where b.log = h.log and b.position = $2::bigint) as before_epoch`;
  return {
    /** log, epoch → VerdictRow. */
    open: `select ${verdict} from ${at}.tenure_log_open($1::text, $2::bigint)`,
    /** log → `epoch` (text): the one in force at some time after this was sent; no row on a standby. */
    inForce: `select h.epoch::text as epoch from ${at}.tenure_log_head h where h.log = $1::text and not pg_is_in_recovery()`,
    /** log, epoch, opened, after, bytes, lengths, ids from the inbox or null → VerdictRow. */
    append: `select ${verdict} from ${at}.tenure_log_append($1::text, $2::bigint, $3::bigint, $4::bigint, $5::bytea, $6::integer[], $7::uuid[])`,
    /**
     * log, after, up to, records at most, bytes at most → the head, and the epoch of the record before, on every row; at least
     * one record where there is one. Rows beyond the head are nobody's.
     */
    page: `select ${head}, ${before}, r.position::text as at, r.epoch::text as of_epoch, r.data
from ${at}.tenure_log_head h left join lateral (
  select s.position, s.epoch, s.data from (
    select p.*, sum(octet_length(p.data)) over (order by p.position) - octet_length(p.data) as bytes_before from (
      select l.position, l.epoch, l.data from ${at}.tenure_log l
        where l.log = h.log and l.position > $2::bigint and l.position <= least($3::bigint, h.position) order by l.position limit $4::integer
    ) p) s where s.bytes_before < $5::bigint) r on true
where h.log = $1::text order by r.position`,
    /** log → the head, and how many parts its snapshot has. */
    snapshot: `select ${head}, (select count(*) from ${at}.tenure_log_snapshot s where s.log = h.log
  and s.epoch = h.snapshot_epoch and s.position = h.snapshot_position)::integer as parts
from ${at}.tenure_log_head h where h.log = $1::text`,
    /** log, epoch, position, part. */
    snapshotPart: `select s.data from ${at}.tenure_log_snapshot s
where s.log = $1::text and s.epoch = $2::bigint and s.position = $3::bigint and s.part = $4::integer`,
    /** log, epoch, opened, position, part, bytes, is it the last → `saved`. */
    save: `select ${at}.tenure_log_save($1::text, $2::bigint, $3::bigint, $4::bigint, $5::integer, $6::bytea, $7::boolean) as saved`,
    /** log, epoch, opened, below, records at most → `first` (text). */
    trim: `select ${at}.tenure_log_trim($1::text, $2::bigint, $3::bigint, $4::bigint, $5::integer)::text as first`,
    listen: `listen ${LOG_CHANNEL}`,
  } as const;
}

export interface VerdictRow {
  readonly taken: boolean;
  /** NULL where there is no such log. */
  readonly epoch: string | null;
  readonly opened: string | null;
  readonly position: string | null;
}

export interface HeadRow {
  readonly epoch: string;
  readonly position: string;
  readonly first: string;
  readonly snapshot_position: string;
  readonly snapshot_epoch: string;
}

export interface PageRow extends HeadRow {
  /** NULL where it is not kept. */
  readonly before_epoch: string | null;
  readonly at: string | null;
  readonly of_epoch: string;
  readonly data: Uint8Array;
}

export interface StoredHead {
  readonly epoch: number;
  readonly position: number;
  /** The oldest record that is kept. */
  readonly first: number;
  readonly snapshotPosition: number;
  readonly snapshotEpoch: number;
}

/** A log that nobody has opened has no row. */
export const NO_HEAD: StoredHead = { epoch: 0, position: 0, first: 1, snapshotPosition: 0, snapshotEpoch: 0 };

export function headOf(row: HeadRow | undefined): StoredHead {
  if (row === undefined) return NO_HEAD;
  return {
    epoch: integerOf(row.epoch),
    position: integerOf(row.position),
    first: integerOf(row.first),
    snapshotPosition: integerOf(row.snapshot_position),
    snapshotEpoch: integerOf(row.snapshot_epoch),
  };
}

export function recordsOf(rows: readonly PageRow[]): LogRecord[] {
  const records: LogRecord[] = [];
  for (const { at, of_epoch: epoch, data } of rows) {
    if (at === null) continue;
    records.push({ position: integerOf(at), epoch: integerOf(epoch), data: bytesOf(data) });
  }
  return records;
}

export function integerOf(text: string | null): number {
  const value = Number(text);
  assert(Number.isInteger(value) && value >= 0 && value <= INTEGER_MAX, "an integer of ours", () => String(text));
  return value;
}

/** Whatever class the driver has for bytes. */
export function bytesOf({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}

/** `<log>:<epoch>:<position>`, as the append tells it; null for another log's, or what is no message of ours. */
export function noticeOf(log: string, payload: string): { readonly epoch: number; readonly position: number } | null {
  if (!payload.startsWith(`${log}:`)) return null;
  const match = /^(\d{1,16}):(\d{1,16})$/.exec(payload.slice(log.length + 1));
  return match === null ? null : { epoch: Number(match[1]), position: Number(match[2]) };
}
