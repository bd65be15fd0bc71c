// Is a pooler in the path that gives our statements to sessions of its choice? It would strand the lock (trap 41).
//
//   A: which session?   B: begin, which session?   A: which session?
//
// A pooler in transaction mode has to give B another one than A has now, so one of the answers repeats or changes. What
// this misses under load (the pooler has idle sessions for both, in a lucky order), the beats find: each of them
// proves that its session holds the lock.

import { TenureError } from "../core/kit/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { SqlDriver } from "../ports/backends/sql.ts";
import { POOLER_ADVICE } from "./faults.ts";
import { Line } from "./line.ts";

const WHO = "select pg_backend_pid()::text as pid";

/** Rejects with POOLER_IN_PATH. `line` is session A, idle and in no transaction. */
export async function refusePooler(line: Line, driver: SqlDriver, clock: Clock): Promise<void> {
  const before = await whoIs(line);
  const other = new Line(driver, clock);
  line.tie(other);
  try {
    const second = await beginElsewhere(other);
    // Before A is asked again: a pool of one session would let it wait for B's end.
    if (second === before) throw pooled(line.where, `two connections share one session (process ${before})`);
    const after = await whoIs(line);
    if (after !== before)
      throw pooled(line.where, `one connection had two sessions (processes ${before} and ${after})`);
  } finally {
    line.tie(undefined);
    other.destroy();
  }
}

async function beginElsewhere(other: Line): Promise<string> {
  try {
    await other.open();
    await other.ask("begin");
    return await whoIs(other);
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    const why = "That was a second connection, to see whether a pooler is in the path; a pool needs room for both.";
    throw new TenureError(error.code, `${error.message} ${why}`, { cause: error });
  }
}

async function whoIs(line: Line): Promise<string> {
  const [row] = await line.ask<{ pid: string }>(WHO);
  return row?.pid ?? "unknown";
}

function pooled(where: string, evidence: string): TenureError {
  return new TenureError(
    "POOLER_IN_PATH",
    `a pooler in transaction or statement mode answers at ${where}: ${evidence}. It would leave the lock with a session that nobody owns. ${POOLER_ADVICE}`,
  );
}
