// Follows a log in Postgres on a session of its own, from the first page to the end of the process.
//
//   closed ──start──▶ open: read pages, then wait for a NOTIFY or the next poll ──▶ closed
//                       ▲                  │ error
//                       └──── backoff ◀────┘     for ever; CHAIN_BROKEN ends it
//
// Invariants: reading is the truth, NOTIFY only makes it sooner (trap 46); what this node has appended itself, or has
// under way, is no news, so a leader does not read its own records back.

import { TenureError } from "../../core/kit/errors.ts";
import { Bell } from "../../loops/bell.ts";
import { retryInMs } from "../../loops/time.ts";
import type { SqlLane } from "../../ports/backends/sql.ts";
import { connected, type SqlTools } from "../../postgres/desk.ts";
import { SESSION_RETRY_MS_MAX, SESSION_RETRY_MS_MIN } from "../limits.ts";
import type { LogReader } from "./log-reader.ts";
import { LOG_CHANNEL, type LogStatements, noticeOf } from "./log-sql.ts";
import { OutageLog } from "./outage-log.ts";

export interface FollowerOptions extends SqlTools {
  readonly log: string;
  readonly sql: LogStatements;
  readonly reader: LogReader;
  readonly pollMs: number;
  /** Whether this node knows of that record, or has it under way itself. */
  readonly isKnown: (epoch: number, position: number) => boolean;
  /** Each time that everything has been read. */
  readonly onServed: () => void;
}

export class Follower {
  readonly #options: FollowerOptions;
  #lane: SqlLane | null = null;
  #started: Promise<void> | undefined;
  #closed = false;
  readonly #bell: Bell;
  #freshAsOfMs: number | null = null;
  #failures = 0;
  readonly #waiting = new Set<() => void>();
  readonly #outages: OutageLog;

  constructor(options: FollowerOptions) {
    this.#options = options;
    const { clock, logger, log } = options;
    const texts = {
      out: "the log in Postgres can't be followed; it is tried again",
      well: "the log in Postgres is followed again",
    };
    this.#bell = new Bell(clock);
    this.#outages = new OutageLog({ clock, logger, fields: { log }, texts });
  }

  /** Resolves when this node has read everything once; rejects with what a person must repair. */
  start(): Promise<void> {
    this.#started ??= new Promise((resolve, reject) => void this.#run(resolve, reject));
    return this.#started;
  }

  /** Everything that was committed then is applied here, on the monotonic clock; null: never yet. */
  get freshAsOfMs(): number | null {
    return this.#freshAsOfMs;
  }

  /**
   * Everything committed before this call is applied here when it resolves; false: not before `late`. Who waits while there is no
   * connection does not make it be tried sooner.
   */
  async caughtUp(late: Promise<false>): Promise<boolean> {
    const { clock } = this.#options;
    const askedMs = clock.monotonicMs();
    if (this.#failures === 0) this.wakeUp();
    while (this.#freshAsOfMs === null || this.#freshAsOfMs < askedMs) {
      const { promise, resolve } = Promise.withResolvers<true>();
      const next = (): void => resolve(true);
      this.#waiting.add(next);
      const isNext = await Promise.race([promise, late]);
      this.#waiting.delete(next);
      if (!isNext || this.#closed) return false;
    }
    return true;
  }

  /** The session, for reads and for what is not urgent. */
  lane(): SqlLane {
    if (this.#lane !== null && !this.#lane.hasEnded) return this.#lane;
    const { log, desk } = this.#options;
    throw new TenureError(
      "BACKEND_UNAVAILABLE",
      `log "${log}" has no connection to Postgres at ${desk.where} now; it is tried again. Ask again in a moment.`,
    );
  }

  /** Something may be new: do not wait for the next poll. */
  wakeUp(): void {
    this.#bell.ring();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const next of this.#waiting) next();
    this.wakeUp();
    const lane = this.#lane;
    this.#lane = null;
    await lane?.end();
  }

  async #run(caughtUp: () => void, refused: (error: TenureError) => void): Promise<void> {
    const { reader, pollMs, random, clock } = this.#options;
    let served = false;
    while (!this.#closed) {
      try {
        const lane = this.#lane?.hasEnded === false ? this.#lane : await this.#connect();
        const sentMs = clock.monotonicMs();
        const isBehind = await reader.advance(lane);
        this.#failures = 0;
        this.#outages.works();
        if (isBehind) continue;
        this.#freshAsOfMs = sentMs;
        served = true;
        caughtUp();
        this.#served();
        await this.#bell.waitFor(pollMs);
      } catch (error) {
        const isBroken = TenureError.is(error) && error.code === "CHAIN_BROKEN";
        if (this.#closed && !isBroken) break;
        const fault = this.#failed(error);
        if (isBroken || (!served && !fault.retryable)) {
          this.#closed = true;
          return refused(fault);
        }
        this.#failures++;
        await this.#bell.waitFor(retryInMs(random, this.#failures, SESSION_RETRY_MS_MIN, SESSION_RETRY_MS_MAX));
      }
    }
    refused(new TenureError("BACKEND_UNAVAILABLE", `log "${this.#options.log}" was closed.`));
  }

  #served(): void {
    this.#options.onServed();
    for (const next of this.#waiting) next();
  }

  #failed(error: unknown): TenureError {
    this.#lane?.destroy();
    this.#lane = null;
    // The session's own end is no reason to hurry.
    this.#bell.silence();
    const fault = this.#options.desk.fault(error);
    this.#outages.failed(fault);
    return fault;
  }

  async #connect(): Promise<SqlLane> {
    const { desk, log, reader, sql } = this.#options;
    const ended = (): void => this.wakeUp();
    const notified = (channel: string, payload: string): void => this.#notified(channel, payload);
    return connected(desk, `tenure log ${log}`, { ended, notified }, async (lane) => {
      // Before the first page: what is committed after it is told.
      await lane.ask(sql.listen);
      await reader.compare(lane);
      if (this.#closed) throw new Error("the log was closed while it connected");
      // In the same turn: from here on `close` ends it.
      this.#lane = lane;
    });
  }

  #notified(channel: string, payload: string): void {
    if (channel !== LOG_CHANNEL) return;
    const notice = noticeOf(this.#options.log, payload);
    if (notice !== null && !this.#options.isKnown(notice.epoch, notice.position)) this.wakeUp();
  }
}
