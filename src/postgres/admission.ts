// Whether a new session may campaign, or keep a log, at all; the same for both ways of waiting. The path to the server is probed for
// poolers once for each `postgres()`, before anything is changed in the database.

import type { Clock } from "../ports/clock.ts";
import type { SqlDriver } from "../ports/backends/sql.ts";
import type { Line } from "./line.ts";
import { refusePooler } from "./probe.ts";
import { checkServer, configure, ensureSchema, type SessionRules } from "./ready.ts";
import type { SchemaUse } from "./schema/schema.ts";

export class Admission {
  readonly #driver: SqlDriver;
  readonly #settings: SessionRules;
  readonly #use: SchemaUse;
  #probed = false;

  constructor(driver: SqlDriver, settings: SessionRules, use: SchemaUse = "elector") {
    this.#driver = driver;
    this.#settings = settings;
    this.#use = use;
  }

  async admit(line: Line, clock: Clock, name: string, idleSessionTimeoutMs: number): Promise<void> {
    await line.open();
    await checkServer(line);
    if (!this.#probed) {
      await refusePooler(line, this.#driver, clock);
      this.#probed = true;
    }
    await ensureSchema(line, this.#settings, this.#use);
    const { lockMs, statementMs } = this.#settings.session;
    await configure(line, {
      name,
      // Longer than the lock's, which ends each wait: a statement that hangs for other reasons has this.
      statementTimeoutMs: statementMs,
      lockTimeoutMs: lockMs,
      idleSessionTimeoutMs,
      idleInTransactionTimeoutMs: statementMs,
    });
  }
}
