// One session for many scopes: it asks for all that are wanted in one statement, again and again, and never waits.
//
//   closed ──somebody campaigns──▶ opening ──▶ open ──session ended──▶ closed
//
//   a key:  free ──waiter──▶ wanted ──got it──▶ taken ──resign, unlock──▶ free
//
// Invariants: a key that this session has is never asked for again, because the same session would get it a second
// time (trap 40): two electors of one scope exclude each other here, not in the server. A connection that holds a
// lock never waits for another. When the session ends, all its scopes are lost; so nobody ends it who leaves alone, be
// it in the middle of a stall: the unlock waits for its turn, and who stays may still be answered in time. What was
// granted to somebody who has left meanwhile is unlocked.

import { TenureError } from "../../../core/kit/errors.ts";
import type { Random } from "../../../core/kit/random.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { SqlDriver } from "../../../ports/backends/sql.ts";
import type { Admission } from "../../../postgres/admission.ts";
import { Line } from "../../../postgres/line.ts";
import { NOTIFIED_JITTER_MS } from "../limits.ts";
import type { PostgresSettings } from "../options.ts";
import { quoteName } from "../watch-sql.ts";

interface Waiter {
  readonly key: string;
  readonly got: (line: Line) => void;
  readonly failed: (error: unknown) => void;
}

export interface Taking {
  readonly line: Promise<Line>;
  readonly cancel: () => void;
}

/** Reported when the session is gone. */
export type Taker = () => void;

export interface HubTools {
  readonly driver: SqlDriver;
  readonly admission: Admission;
  readonly settings: PostgresSettings;
}

export class PollHub {
  readonly #tools: HubTools;
  readonly #clock: Clock;
  readonly #random: Random;
  #line: Line | undefined;
  #opening: { readonly line: Line; readonly done: Promise<Line> } | undefined;
  readonly #waiters = new Set<Waiter>();
  /** Keys that the session has, with whom to tell; nobody while one is being let go. */
  readonly #taken = new Map<string, Taker | undefined>();
  #timer: { readonly atMs: number; readonly timer: Timer } | undefined;
  #asking = false;
  /** Somebody came while the others were asked for. */
  #again = false;

  constructor(tools: HubTools, clock: Clock, random: Random) {
    this.#tools = tools;
    this.#clock = clock;
    this.#random = random;
  }

  /** The session, ready to ask. */
  async open(): Promise<Line> {
    if (this.#line !== undefined) return this.#line;
    this.#opening ??= this.#connect();
    return this.#opening.done;
  }

  #connect(): { readonly line: Line; readonly done: Promise<Line> } {
    const line: Line = new Line(this.#tools.driver, this.#clock, {
      ended: (error) => this.#ended(line, error),
      notified: () => this.#askAt(this.#clock.monotonicMs() + this.#random.between(0, NOTIFIED_JITTER_MS)),
    });
    return { line, done: this.#prepare(line) };
  }

  async #prepare(line: Line): Promise<Line> {
    try {
      const { admission, settings } = this.#tools;
      await admission.admit(line, this.#clock, "tenure (many scopes)", settings.timing.serverTimeoutMs);
      await line.ask(`listen ${quoteName(settings.channel)}`);
      if (line.hasEnded) throw new TenureError("BACKEND_UNAVAILABLE", "the session ended as it was ready");
      this.#line = line;
      return line;
    } catch (error) {
      line.destroy();
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }

  /** Resolves when this session has the lock of `key`; `taker` is told if the session ends after that. */
  take(key: string, taker: Taker): Taking {
    const { promise, resolve, reject } = Promise.withResolvers<Line>();
    const got = (from: Line): void => {
      this.#taken.set(key, taker);
      resolve(from);
    };
    const waiter: Waiter = { key, got, failed: reject };
    const cancel = (): void => {
      if (this.#waiters.delete(waiter)) reject(new TenureError("BACKEND_UNAVAILABLE", "the campaign was abandoned"));
    };
    if (this.#line === undefined) {
      reject(new TenureError("BACKEND_UNAVAILABLE", "the session ended before it asked for the scope"));
    } else {
      this.#waiters.add(waiter);
      this.#askAt(this.#clock.monotonicMs());
    }
    return { line: promise, cancel };
  }

  /** The lock was let go by a statement of the holder's. */
  freed(line: Line, key: string): void {
    if (line === this.#line) this.#taken.delete(key);
  }

  /**
   * Releases a key without a word to the table. Destroys a session that owes an answer where nobody else's term is on
   * it, and one that does not obey.
   */
  drop(line: Line, key: string): void {
    if (line !== this.#line) return;
    this.#taken.set(key, undefined);
    const isLast = [...this.#taken.values()].every((taker) => taker === undefined);
    if (isLast && line.owesForMs > this.#tools.settings.session.statementMs) {
      line.destroy();
      return;
    }
    const unlocked = line.ask("select pg_advisory_unlock($1::bigint)", [key], this.#answerMs);
    unlocked.then(
      () => this.freed(line, key),
      () => line.destroy(),
    );
  }

  async close(): Promise<void> {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.#opening?.line.destroy();
    const line = this.#line;
    this.#line = undefined;
    this.#taken.clear();
    await line?.end();
  }

  /** A statement of ours ends by itself after statement_timeout. */
  get #answerMs(): number {
    return this.#tools.settings.timing.serverTimeoutMs;
  }

  /** The earlier of two wishes counts: a storm of notifications must not put the question off for ever. */
  #askAt(atMs: number): void {
    if (this.#timer !== undefined && this.#timer.atMs <= atMs) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.setTimer(atMs, () => {
      this.#timer = undefined;
      void this.#ask();
    });
    this.#timer = { atMs, timer };
  }

  async #ask(): Promise<void> {
    const line = this.#line;
    this.#again = this.#asking;
    if (this.#asking || line === undefined || this.#waiters.size === 0) return;
    const keys = new Set([...this.#waiters].map((waiter) => waiter.key).filter((key) => !this.#taken.has(key)));
    if (keys.size > 0) await this.#askFor(line, [...keys]);
    const { retryMinMs, retryMaxMs, serverTimeoutMs } = this.#tools.settings.timing;
    // A session that is idle for the server timeout is ended, and NOTIFY does not count (trap 35).
    const pauseMs = this.#again ? 0 : Math.min(this.#random.between(retryMinMs, retryMaxMs), serverTimeoutMs / 2);
    this.#again = false;
    this.#askAt(this.#clock.monotonicMs() + pauseMs);
  }

  async #askFor(line: Line, keys: readonly string[]): Promise<void> {
    const text = "select k::text as key from unnest($1::bigint[]) as k where pg_try_advisory_lock(k)";
    this.#asking = true;
    try {
      const rows = await line.ask<{ key: string }>(text, [keys], this.#answerMs);
      for (const { key } of rows) this.#grant(line, key);
    } catch (error) {
      // Unknown what was granted: the session can't be used any more, and everybody is notified.
      line.destroy();
      this.#ended(line, error);
    } finally {
      this.#asking = false;
    }
  }

  #grant(line: Line, key: string): void {
    const waiter = [...this.#waiters].find((one) => one.key === key);
    if (waiter === undefined) {
      this.drop(line, key);
      return;
    }
    this.#waiters.delete(waiter);
    waiter.got(line);
  }

  #ended(line: Line, error: unknown): void {
    if (line !== this.#line) return;
    this.#line = undefined;
    const takers = [...this.#taken.values()];
    const waiters = [...this.#waiters];
    this.#taken.clear();
    this.#waiters.clear();
    for (const taker of takers) taker?.();
    for (const waiter of waiters) waiter.failed(error);
  }
}
