// Sessions for the log and whoever else is no elector (ports/backends/sql.ts, SqlDesk), checked and configured as an elector's are:
// a primary, a schema that we know, no pooler in the path; statement_timeout, lock_timeout and the rest of design D19.
//
// Two settings more, since a log lives on them: READ COMMITTED, whatever the database's default is, because the guard of an
// append is an update that waits and then looks again; and synchronous_commit is never off, because "committed" is a promise.

import type { TenureError } from "../core/kit/errors.ts";
import type { Random } from "../core/kit/random.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { SqlDesk, SqlDriver, SqlEvents, SqlLane } from "../ports/backends/sql.ts";
import { Admission } from "./admission.ts";
import { faultOf } from "./faults.ts";
import { Line } from "./line.ts";
import type { SessionRules } from "./ready.ts";

const PROMISES = `select set_config('default_transaction_isolation', 'read committed', false),
  case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`;

/** What a part that keeps a session of its own is made with. */
export interface SqlTools {
  readonly desk: SqlDesk;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class PostgresDesk implements SqlDesk {
  readonly where: string;
  readonly #driver: SqlDriver;
  readonly #clock: Clock;
  readonly #admission: Admission;
  readonly #purpose: string;
  readonly #opening = new Set<Line>();

  /** `purpose`: what messages say that nobody does meanwhile. */
  constructor(driver: SqlDriver, clock: Clock, settings: SessionRules, purpose: string) {
    this.where = driver.where;
    this.#driver = driver;
    this.#clock = clock;
    this.#admission = new Admission(driver, settings, "log");
    this.#purpose = purpose;
  }

  async connect(name: string, events: SqlEvents): Promise<SqlLane> {
    const line = new Line(this.#driver, this.#clock, events);
    this.#opening.add(line);
    try {
      // It holds nothing between two statements: the server need not end it for being silent.
      await this.#admission.admit(line, this.#clock, name, 0);
      await line.ask(PROMISES);
      return line;
    } catch (error) {
      line.destroy();
      throw this.fault(error);
    } finally {
      this.#opening.delete(line);
    }
  }

  fault(error: unknown): TenureError {
    return faultOf(error, { where: this.where, scope: this.#purpose });
  }

  close(): void {
    for (const line of this.#opening) line.destroy();
  }
}

/** A lane that `prepare` has made ready; where that fails, it is destroyed. */
export async function connected(
  desk: SqlDesk,
  name: string,
  events: SqlEvents,
  prepare: (lane: SqlLane) => Promise<void>,
): Promise<SqlLane> {
  const lane = await desk.connect(name, events);
  try {
    await prepare(lane);
    return lane;
  } catch (error) {
    lane.destroy();
    throw error;
  }
}
