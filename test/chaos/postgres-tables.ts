// The counter in Postgres. No key or constraint on (lane, value): that would be a fence of its own, and hide what ours
// lets through.

import { parseSnapshot, type Row } from "./ledger.ts";

export const CREATE_TABLES = `
create table chaos_lane (lane integer primary key, value bigint not null) with (fillfactor = 50);
create table chaos_increment (
  worker text not null, seq bigint not null, lane integer not null, value bigint not null, epoch bigint not null,
  xid text not null default pg_current_xact_id()::text, snapshot text not null default pg_current_snapshot()::text
);`;

/** lane, value, worker, seq, epoch. One statement, whose snapshot is younger than the fence. */
export const WRITE = `
with lane as (update chaos_lane set value = $2 where lane = $1)
insert into chaos_increment (lane, value, worker, seq, epoch) values ($1, $2, $3, $4, $5)`;

export const READ_LANES = "select value::text from chaos_lane order by lane";

export function lanesOf(rows: readonly object[]): number[] {
  return (rows as readonly { value: string }[]).map(({ value }) => Number(value));
}

/** What a stale leader would write; lane −1 is no part of the counter. */
export const WRITE_STALE = "insert into chaos_increment (lane, value, worker, seq, epoch) values (-1, 0, $1, 0, $2)";

export const READ_ROWS = "select worker, seq::text, lane, value::text, epoch::text, xid, snapshot from chaos_increment";

interface Stored {
  readonly worker: string;
  readonly seq: string;
  readonly lane: number;
  readonly value: string;
  readonly epoch: string;
  readonly xid: string;
  readonly snapshot: string;
}

export function rowOf(stored: Stored): Row {
  const { worker, lane, xid, snapshot } = stored;
  return {
    worker,
    lane,
    seq: Number(stored.seq),
    value: Number(stored.value),
    epoch: Number(stored.epoch),
    order: { kind: "snapshot", xid: Number(xid), snapshot: parseSnapshot(snapshot) },
  };
}
