// What users have submitted with `tenure_submit` inside their own transactions, for the leader to take over.
//
//   submitted ──user's commit──▶ in the inbox ──next──▶ under way ──appendTaking, committed──▶ gone, its events in the log
//                                     ▲                      │ refused, or the leader is gone
//                                     └──────────────────────┘
//
// How taking over is one atomic step: `next` only looks. The leader decides what becomes of the submissions and appends that
// with `PostgresLog.appendTaking`, which deletes their rows in the append's own transaction, after the guard of epoch and
// position. So a submission is in the inbox or in the log, never in both and never in none; a leader whose epoch is over
// deletes nothing, and two that saw the same submission can't both have it.
//
// What is read (inbox-marks.ts): only what is after the last number that was seen, and the numbers that were passed over,
// because rows that were deleted are still passed by whoever reads from the start, for as long as any old snapshot is open. Now and
// then everything is read.
//
// Invariants: the oldest first, as far as they are committed; what is under way is not told again until it is settled; whatever
// is committed is told in INBOX_FULL_POLL_MS at the latest. Reading is the truth, NOTIFY only makes it sooner (trap 46).

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { Bell } from "../../loops/bell.ts";
import { retryInMs } from "../../loops/time.ts";
import type { SqlLane } from "../../ports/backends/sql.ts";
import { connected, type SqlTools } from "../../postgres/desk.ts";
import { quoteSchema } from "../../postgres/schema/schema.ts";
import * as limits from "../limits.ts";
import { InboxMarks } from "./inbox-marks.ts";
import { integerOf } from "./log-sql.ts";
import { OutageLog } from "./outage-log.ts";

const INBOX_CHANNEL = "tenure_inbox";

export interface Submission {
  /** The job's id, a UUID. */
  readonly id: string;
  readonly kind: string;
  /** JSON, as Postgres writes it. */
  readonly payload: string;
  readonly options: string;
  /** By the database's clock. */
  readonly submittedAtMs: number;
  /** The role that was logged in. */
  readonly by: string;
}

export interface PostgresInboxOptions extends SqlTools {
  readonly schema: string;
  /** Whose submissions. */
  readonly log: string;
  readonly pollMs?: number | undefined;
  readonly fullLookMs?: number | undefined;
}

interface SubmissionRow {
  readonly number: string;
  readonly id: string;
  readonly kind: string;
  readonly payload: string;
  readonly options: string;
  readonly at_ms: string;
  readonly by: string;
}

export class PostgresInbox {
  readonly #options: PostgresInboxOptions;
  readonly #look: string;
  readonly #outages: OutageLog;
  readonly #marks = new InboxMarks();
  readonly #underWay = new Map<string, number>();
  #fullLookAtMs = 0;
  #lane: SqlLane | null = null;
  #closed = false;
  #isAsked = false;
  readonly #bell: Bell;

  constructor(options: PostgresInboxOptions) {
    this.#options = options;
    const { clock, logger } = options;
    const texts = {
      out: "the inbox in Postgres can't be read; it is tried again",
      well: "the inbox in Postgres is read again",
    };
    this.#bell = new Bell(clock);
    this.#outages = new OutageLog({ clock, logger, fields: { event: "inbox" }, texts });
    this.#look = lookAt(`${quoteSchema(options.schema)}.tenure_inbox`);
  }

  /** Waits until there is something that is not under way; at most `max`. Survives what repairs itself. One call at a time. */
  async next(max: number): Promise<readonly Submission[]> {
    assert(!this.#isAsked, "an inbox has one reader");
    assert(max >= 1 && max <= limits.INBOX_TAKEN_MAX, "what is taken at once is bounded", () => String(max));
    this.#isAsked = true;
    try {
      return await this.#next(max);
    } finally {
      this.#isAsked = false;
    }
  }

  /** Their append was answered, whatever the answer: those that are still in the inbox are told again. */
  settle(ids: readonly string[]): void {
    for (const id of ids) {
      const number = this.#underWay.get(id);
      if (number !== undefined) this.#marks.again(number);
      this.#underWay.delete(id);
    }
    this.#bell.ring();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#options.desk.close();
    this.#bell.ring();
    const lane = this.#lane;
    this.#lane = null;
    await lane?.end();
  }

  async #next(max: number): Promise<readonly Submission[]> {
    const { random, pollMs } = this.#options;
    for (let failures = 0; ;) {
      if (this.#closed) throw new TenureError("BACKEND_UNAVAILABLE", "the inbox was closed.");
      let pauseMs = pollMs ?? (this.#marks.seen === 0 ? limits.INBOX_FIRST_POLL_MS : limits.INBOX_POLL_MS);
      try {
        const lane = this.#lane?.hasEnded === false ? this.#lane : await this.#connect();
        const found = await this.#find(lane, Math.min(max, limits.INBOX_UNDER_WAY_MAX - this.#underWay.size));
        this.#outages.works();
        if (found.length > 0) return found;
        failures = 0;
      } catch (error) {
        if (!this.#closed) this.#failed(error);
        failures++;
        pauseMs = retryInMs(random, failures, limits.INBOX_RETRY_MS_MIN, limits.INBOX_RETRY_MS_MAX);
      }
      await this.#bell.waitFor(pauseMs);
    }
  }

  async #find(lane: SqlLane, max: number): Promise<readonly Submission[]> {
    const { clock, log, fullLookMs } = this.#options;
    const nowMs = clock.monotonicMs();
    const isFull = nowMs >= this.#fullLookAtMs;
    const { after, exactly } = isFull ? this.#marks.everything() : this.#marks.next(nowMs);
    const values = [log, after, exactly, [...this.#underWay.values()], max];
    const rows = await lane.ask<SubmissionRow>(this.#look, values);
    const numbers = rows.map(({ number }) => integerOf(number));
    const isAll = rows.length < max;
    // Where there is more than was asked for, the next look goes on after it: unless that would pass something over.
    const isDone = isAll || (numbers.at(-1) ?? 0) > this.#marks.seen;
    this.#marks.found(numbers, exactly, isAll, nowMs);
    if (isFull && isDone) this.#fullLookAtMs = nowMs + (fullLookMs ?? limits.INBOX_FULL_POLL_MS);
    return rows.map(({ id, kind, payload, options, at_ms: atMs, by }, at) => {
      this.#underWay.set(id, numbers[at]!);
      return { id, kind, payload, options, submittedAtMs: Number(atMs), by };
    });
  }

  /** Rejects with what a person must repair. */
  #failed(error: unknown): void {
    this.#lane?.destroy();
    this.#lane = null;
    this.#bell.silence();
    const fault = this.#options.desk.fault(error);
    if (!fault.retryable) throw fault;
    this.#outages.failed(fault);
  }

  async #connect(): Promise<SqlLane> {
    const wakeUp = (): void => this.#bell.ring();
    const notified = (_channel: string, log: string): void => {
      if (log === this.#options.log) wakeUp();
    };
    return connected(this.#options.desk, "tenure inbox", { ended: wakeUp, notified }, async (lane) => {
      await lane.ask(`listen ${INBOX_CHANNEL}`);
      // It may be another server, with other numbers.
      this.#marks.forget();
      this.#fullLookAtMs = 0;
      if (this.#closed) throw new Error("the inbox was closed while it connected");
      // In the same turn: from here on `close` ends it.
      this.#lane = lane;
    });
  }
}

/** Log, numbers after, numbers exactly, numbers not, rows at most. In two parts: one index range, and one probe for each. */
function lookAt(table: string): string {
  const part = (which: string): string => `(select i.* from ${table} i
  where i.log = $1::text and ${which} and i.number <> all ($4::bigint[]) order by i.number limit $5::integer)`;
  return `select i.number::text, i.id::text, i.kind, i.payload::text, i.options::text,
  round(extract(epoch from i.submitted_at) * 1000)::text as at_ms, i.submitted_by as by
from (${part("i.number > $2::bigint")}
union all ${part("i.number <= $2::bigint and i.number = any ($3::bigint[])")}) i order by i.number limit $5::integer`;
}
