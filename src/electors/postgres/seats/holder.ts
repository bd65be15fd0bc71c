// How a seat gets and keeps its scope: two ways (block.ts, poll.ts) over the same three statements.

import { assertNever } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { INTEGER_MAX } from "../../../core/kit/limits.ts";
import type { Beat, Claim, Grant, LossReason } from "../../../ports/backends/backend.ts";
import { sqlstateOf } from "../../../core/kit/sql-outcome.ts";
import { faultOf, softened } from "../../../postgres/faults.ts";
import { POSTGRES_ANSWER_MS_MAX } from "../../../postgres/limits.ts";
import { type Line } from "../../../postgres/line.ts";
import type { PostgresSettings } from "../options.ts";
import { type BeatVerdict, quoteSchema, type statements } from "../../../postgres/schema/schema.ts";

/** The part of a Seat that differs between the two; the contract is the Seat's (ports/backends/backend.ts). */
export interface Holder {
  acquire(): Promise<Grant>;
  beat(epoch: number): Promise<Beat>;
  release(epoch: number): Promise<void>;
  abandon(): void;
  close(): Promise<void>;
}

/** One elector's scope, and what is needed to speak about it. */
export interface Scoped {
  readonly claim: Claim;
  /** The lock key, in decimal: it does not fit into a number. */
  readonly key: string;
  readonly where: string;
  readonly settings: PostgresSettings;
  readonly sql: ReturnType<typeof statements>;
}

/**
 * Looks at the scope before it is waited for; the epoch that is in force is remembered, for a restored database would forget it.
 *
 * A lock key that belongs to another scope would let a follower wait behind that scope's leader for ever, without a
 * word; so would a scope whose other instances use another key let two of them lead. The bump refuses both too.
 */
export async function refuseClash(line: Line, { claim, key, settings }: Scoped): Promise<void> {
  const table = `${quoteSchema(settings.schema)}.tenure_leader_state`;
  const text = `select scope_key::text as key, scope, epoch::text as epoch from ${table} where scope_key = $1::bigint or scope = $2`;
  const rows = await line.ask<{ key: string; scope: string; epoch: string }>(text, [key, claim.scope]);
  const clash = rows.find((row) => row.key !== key || row.scope !== claim.scope);
  if (clash === undefined) {
    for (const { epoch } of rows) claim.heard?.(Number(epoch));
    return;
  }
  const what =
    clash.scope === claim.scope
      ? `scope "${claim.scope}" is stored with lock key ${clash.key}, and here it has ${key}: its instances would not see each other. Give all of them one lockKey, or none.`
      : `lock key ${key} of scope "${claim.scope}" belongs to scope "${clash.scope}". Rename scope "${claim.scope}", or give it a lockKey of its own.`;
  throw new TenureError("SCOPE_CLASH", what);
}

/** A new epoch, on a session that holds the lock. */
export async function bump(line: Line, { claim, key, settings, sql }: Scoped): Promise<Grant> {
  const { scope, identity, metadata } = claim;
  const values = [key, scope, identity, JSON.stringify(metadata), settings.channel, settings.timing.serverTimeoutMs];
  const { rows, sentAt } = await line.askTimed<{ epoch: unknown }>(sql.bump, values);
  const epoch = Number(rows[0]?.epoch);
  if (!Number.isInteger(epoch) || epoch < 1 || epoch > INTEGER_MAX) {
    throw new TenureError("BACKEND_UNSUPPORTED", `Postgres at ${line.where} gave ${epoch} as an epoch`);
  }
  return { epoch, sentAt };
}

/** Authoritative answers end the hold at once; everything else rejects, and is tried again until the deadline (trap 42). */
export async function beat(line: Line | undefined, scoped: Scoped, epoch: number): Promise<Beat> {
  if (line === undefined) throw lost(scoped, epoch, "session-ended");
  // The elector's own deadline comes first; this only frees a promise that nobody waits for any more.
  const limitMs = scoped.settings.timing.serverTimeoutMs + POSTGRES_ANSWER_MS_MAX;
  try {
    const { rows, sentAt } = await line.askUrgently<{ verdict: BeatVerdict }>(
      scoped.sql.beat,
      [scoped.key, epoch],
      limitMs,
    );
    const verdict = rows[0]?.verdict ?? "superseded";
    switch (verdict) {
      case "held":
      case "resign":
        return { sentAt, resignRequested: verdict === "resign" };
      case "superseded":
      case "unlocked":
      case "read-only":
        throw lost(scoped, epoch, verdict);
      default:
        return assertNever(verdict, "beat");
    }
  } catch (error) {
    if (sqlstateOf(error) === "25006") throw lost(scoped, epoch, "read-only");
    throw softened(faultOf(error, { where: scoped.where, scope: scoped.claim.scope }));
  }
}

function lost({ claim, where }: Scoped, epoch: number, reason: LossReason): TenureError {
  claim.lost(epoch, reason);
  return new TenureError("BACKEND_UNAVAILABLE", `Postgres at ${where} says that epoch ${epoch} is not held: ${reason}`);
}

/** Frees row and lock. That the epoch was no longer in force is no error: then it is free of us already. */
export async function resign(line: Line, { key, settings, sql, claim }: Scoped, epoch: number): Promise<void> {
  try {
    await line.ask(sql.resign, [key, epoch, "resigned"], settings.timing.releaseTimeoutMs + POSTGRES_ANSWER_MS_MAX);
  } catch (error) {
    throw softened(faultOf(error, { where: line.where, scope: claim.scope }));
  }
}
