// A session whose silence is noticed: statements wait for their turn, and each has a time in which it must be answered.
// What is urgent goes before the rest that waits: a beat waits for one statement of others, not for all of them.
//
//   asking ──answered──▶ asking ──no answer in time──▶ destroyed
//
// Invariants: a session that owed an answer for too long is destroyed, never used again (trap 39): after it there may
// be a half-open connection, which TCP itself reports after minutes; an instant is taken just before a statement is
// sent, not when it was queued (trap 44).

import { TenureError } from "../core/kit/errors.ts";
import type { Instant } from "../core/trust/window.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { SqlDriver, SqlEvents, SqlRow, SqlSession } from "../ports/backends/sql.ts";
import { POSTGRES_ANSWER_MS_MAX } from "./limits.ts";

export interface Answer<Row> {
  readonly rows: Row[];
  readonly sentAt: Instant;
}

export class Line {
  readonly where: string;
  readonly #clock: Clock;
  readonly #session: SqlSession;
  #busy = false;
  readonly #urgent: (() => void)[] = [];
  readonly #rest: (() => void)[] = [];
  #overdue: TenureError | undefined;
  #askedMs: number | undefined;
  #hasEnded = false;
  #tied: Line | undefined;

  constructor(driver: SqlDriver, clock: Clock, events: SqlEvents = {}) {
    this.where = driver.where;
    this.#clock = clock;
    this.#session = driver.open({
      ...events,
      ended: (error) => {
        this.#hasEnded = true;
        events.ended?.(this.#overdue ?? error);
      },
    });
  }

  /** For how long the server has owed an answer. */
  get owesForMs(): number {
    return this.#askedMs === undefined ? 0 : this.#clock.monotonicMs() - this.#askedMs;
  }

  /** An answer and the end of the session may come in one packet: who goes on after an answer asks this too. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async open(): Promise<void> {
    await this.#limited(this.#session.ready, POSTGRES_ANSWER_MS_MAX, "did not let us in");
  }

  async ask<Row extends object = SqlRow>(
    text: string,
    values?: readonly unknown[],
    limitMs: number = POSTGRES_ANSWER_MS_MAX,
  ): Promise<Row[]> {
    return (await this.askTimed<Row>(text, values, limitMs)).rows;
  }

  async askTimed<Row extends object = SqlRow>(
    text: string,
    values?: readonly unknown[],
    limitMs: number = POSTGRES_ANSWER_MS_MAX,
  ): Promise<Answer<Row>> {
    return this.alone((session) => this.#send<Row>(session, text, values, limitMs));
  }

  /** As `askTimed`, before everybody who waits and is not urgent. */
  async askUrgently<Row extends object>(
    text: string,
    values: readonly unknown[],
    limitMs: number,
  ): Promise<Answer<Row>> {
    return this.#inTurn(this.#urgent, (session) => this.#send<Row>(session, text, values, limitMs));
  }

  /** For several statements that nothing may come between. `work` uses the session, and no other call of the line. */
  async alone<R>(work: (session: SqlSession) => Promise<R>): Promise<R> {
    return this.#inTurn(this.#rest, work);
  }

  /** As `alone`, for work of somebody who knows no clock. */
  async aloneLimited<R>(work: (session: SqlSession) => Promise<R>, limitMs: number): Promise<R> {
    return this.alone((session) => this.#limited(work(session), limitMs, "did not answer"));
  }

  async #inTurn<R>(waiting: (() => void)[], work: (session: SqlSession) => Promise<R>): Promise<R> {
    if (this.#busy) await new Promise<void>((resolve) => waiting.push(resolve));
    this.#busy = true;
    try {
      return await work(this.#session);
    } finally {
      // Stays busy where somebody is next: nobody gets in between.
      const next = this.#urgent.shift() ?? this.#rest.shift();
      this.#busy = next !== undefined;
      next?.();
    }
  }

  async end(): Promise<void> {
    await this.#session.end();
  }

  destroy(): void {
    this.#session.destroy();
    this.#tied?.destroy();
  }

  /** Another that is of no use without this one, and is destroyed with it. */
  tie(other: Line | undefined): void {
    this.#tied = other;
  }

  async #send<Row extends object>(
    session: SqlSession,
    text: string,
    values: readonly unknown[] | undefined,
    limitMs: number,
  ): Promise<Answer<Row>> {
    const sentAt = { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
    const rows = await this.#limited(session.query<Row>(text, values), limitMs, "did not answer");
    return { rows, sentAt };
  }

  async #limited<R>(work: Promise<R>, limitMs: number, what: string): Promise<R> {
    this.#askedMs = this.#clock.monotonicMs();
    const timer: Timer = this.#clock.setTimer(this.#askedMs + limitMs, () => {
      const message = `Postgres at ${this.where} ${what} within ${limitMs} ms; the connection is dropped. If that lasts, look at the network, and at the load of the server.`;
      this.#overdue = new TenureError("BACKEND_UNAVAILABLE", message);
      this.#session.destroy();
    });
    try {
      return await work;
    } catch (error) {
      throw this.#overdue ?? error;
    } finally {
      this.#askedMs = undefined;
      timer.cancel();
    }
  }
}
