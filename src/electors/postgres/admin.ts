// What `tenure scope` asks of Postgres, on a session of its own.
//
//   closed ──asked──▶ open ──error──▶ closed ──asked──▶ open …
//
// Invariants: it holds no lock and changes nothing but through tenure_ask_resign; a session that failed is not used
// again, so that a restart of the database costs one answer. Times are the database's, except the heartbeat's.

import { TenureError } from "../../core/kit/errors.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  ScopeAdmin,
  ScopeDetails,
  ScopeRecord,
  SessionRecord,
  TransitionRecord,
} from "../../ports/backends/scope-admin.ts";
import type { SqlDriver, SqlRow } from "../../ports/backends/sql.ts";
import { type LockRow, locksSql, type ScopeRow, scopesSql, type TransitionRow, transitionsSql } from "./admin-sql.ts";
import { faultOf } from "../../postgres/faults.ts";
import { Line } from "../../postgres/line.ts";
import { fenceKeyOf } from "../../postgres/lock-key.ts";
import { statements } from "../../postgres/schema/schema.ts";

export class PostgresAdmin implements ScopeAdmin {
  readonly #driver: SqlDriver;
  readonly #schema: string;
  readonly #clock: Clock;
  #line: Line | undefined;

  constructor(driver: SqlDriver, schema: string, clock: Clock) {
    this.#driver = driver;
    this.#schema = schema;
    this.#clock = clock;
  }

  async list(): Promise<ScopeRecord[]> {
    const rows = await this.#ask<ScopeRow>(scopesSql(this.#schema, "all"));
    const nowMs = this.#clock.wallMs();
    return rows.map((row) => recordOf(row, nowMs));
  }

  async find(scope: string): Promise<ScopeRecord | null> {
    const row = await this.#row(scope);
    return row === undefined ? null : recordOf(row, this.#clock.wallMs());
  }

  async #row(scope: string): Promise<ScopeRow | undefined> {
    const [row] = await this.#ask<ScopeRow>(scopesSql(this.#schema, "one"), [scope]);
    return row;
  }

  async history(scope: string): Promise<TransitionRecord[]> {
    const rows = await this.#ask<TransitionRow>(transitionsSql(this.#schema), [scope]);
    return rows.map((row) => ({
      atMs: Number(row.at_ms),
      epoch: Number(row.epoch),
      identity: row.holder,
      reason: row.reason,
      heldMs: row.held_ms === null ? null : Number(row.held_ms),
    }));
  }

  async askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null> {
    const [row] = await this.#ask<{ epoch: string }>(statements(this.#schema).askResign, [scope, force]);
    return row === undefined ? null : { epoch: Number(row.epoch) };
  }

  async details(scope: string): Promise<ScopeDetails | null> {
    const row = await this.#row(scope);
    if (row === undefined) return null;
    const locks = await this.#ask<LockRow>(locksSql(), [[row.key]]);
    const sessions = (kind: LockRow["kind"], granted: boolean): SessionRecord[] =>
      locks.filter((lock) => lock.kind === kind && (lock.granted === "true") === granted).map(sessionOf);
    return {
      lockKey: row.key,
      fenceKey: fenceKeyOf(BigInt(row.key)).toString(),
      isAskedToResign: row.asked === "true" && row.holder !== "",
      sessions: sessions("lock", true),
      waiters: sessions("lock", false),
      fenced: sessions("fence", true),
    };
  }

  async close(): Promise<void> {
    const line = this.#line;
    this.#line = undefined;
    await line?.end();
  }

  async #ask<Row extends object = SqlRow>(text: string, values?: readonly unknown[]): Promise<Row[]> {
    const line = this.#line ?? new Line(this.#driver, this.#clock);
    this.#line = line;
    try {
      await line.open();
      return await line.ask<Row>(text, values);
    } catch (error) {
      if (this.#line === line) this.#line = undefined;
      line.destroy();
      throw operatorFault(error, this.#driver.where);
    }
  }
}

/** Nobody campaigns here, so the words about whoever does are left out. */
export function operatorFault(error: unknown, where: string): TenureError {
  const { code, message, cause } = faultOf(error, { where, scope: "" });
  const bare = message.replace(/[;.] nobody acts for scope "".*$/i, ".");
  return new TenureError(code, bare, { cause });
}

function recordOf(row: ScopeRow, nowMs: number): ScopeRecord {
  const isLed = row.holder !== "";
  const heartbeatAtMs = row.age_ms === null ? null : nowMs - Number(row.age_ms);
  return {
    scope: row.scope,
    epoch: Number(row.epoch),
    identity: isLed ? row.holder : null,
    metadata: parseJson(row.metadata) as Readonly<Record<string, string>>,
    acquiredAtMs: isLed && row.acquired_ms !== null ? Number(row.acquired_ms) : null,
    heartbeatAtMs: isLed ? heartbeatAtMs : null,
    isGone: isLed && row.held !== "true",
  };
}

function sessionOf({ pid, user, app, client, prepared }: LockRow): SessionRecord {
  return { pid, user, applicationName: app, client, prepared };
}
