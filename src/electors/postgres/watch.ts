// Who leads, for everybody who asks: one session for all observers of a `postgres()`, never the leader's own.
//
//   closed ──asked──▶ open: read, wait for a NOTIFY or a second ──▶ closed, a while after the last one has left
//                       ▲                  │ error
//                       └──── backoff ◀────┘     for ever
//
// Invariants: reading is the truth, NOTIFY only makes it sooner (trap 46); each watcher hears the present leader and
// then each change, the same one never twice in a row; an error is reported and survived, also one of a callback or of the
// logger. The session has no idle_session_timeout: NOTIFY would not reset it (trap 35), and it holds nothing.

import type { Random } from "../../core/kit/random.ts";
import { harmlessly, messageOf } from "../../core/kit/user-code.ts";
import { Bell } from "../../loops/bell.ts";
import { retryInMs } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leader } from "../../ports/elector.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SqlDriver } from "../../ports/backends/sql.ts";
import { sqlstateOf } from "../../core/kit/sql-outcome.ts";
import { faultOf } from "../../postgres/faults.ts";
import { Line } from "../../postgres/line.ts";
import type { PostgresSettings } from "./options.ts";
import { refusePooler } from "../../postgres/probe.ts";
import { configure } from "../../postgres/ready.ts";
import { WATCH_LINGER_MS, WATCH_POLL_MS } from "./limits.ts";
import { leaderOf, type LeaderRow, leadersSql, quoteName } from "./watch-sql.ts";

export interface WatchTools {
  readonly driver: SqlDriver;
  readonly settings: PostgresSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

interface Watcher {
  readonly key: string;
  readonly scope: string;
  /** What was told last, as text; undefined before the first. */
  told: string | undefined;
  readonly tell: (leader: Leader | null) => void;
  readonly failed: (error: unknown) => void;
}

interface Reader {
  readonly key: string;
  readonly scope: string;
  readonly resolve: (leader: Leader | null) => void;
  readonly reject: (error: unknown) => void;
}

export class Observer {
  readonly #tools: WatchTools;
  readonly #watchers = new Set<Watcher>();
  #readers: Reader[] = [];
  /** Keys whose stale heartbeat was logged, with its epoch: once for each leader that goes silent. */
  readonly #stale = new Map<string, string>();
  #line: Line | undefined;
  #opening: Line | undefined;
  #probed = false;
  #running = false;
  #closed = false;
  #lastUsedMs = 0;
  readonly #bell: Bell;

  constructor(tools: WatchTools) {
    this.#tools = tools;
    this.#bell = new Bell(tools.clock);
  }

  watch(key: string, scope: string, tell: Watcher["tell"], failed: Watcher["failed"]): () => void {
    const watcher: Watcher = { key, scope, told: undefined, tell, failed };
    this.#watchers.add(watcher);
    this.#start();
    return () => void this.#watchers.delete(watcher);
  }

  read(key: string, scope: string): Promise<Leader | null> {
    return new Promise((resolve, reject) => {
      this.#readers.push({ key, scope, resolve, reject });
      this.#start();
    });
  }

  close(): void {
    this.#closed = true;
    this.#line?.destroy();
    this.#opening?.destroy();
    this.#bell.ring();
  }

  get #wanted(): boolean {
    if (this.#closed) return false;
    if (this.#watchers.size > 0 || this.#readers.length > 0) return true;
    return this.#line !== undefined && this.#tools.clock.monotonicMs() - this.#lastUsedMs < WATCH_LINGER_MS;
  }

  #start(): void {
    this.#lastUsedMs = this.#tools.clock.monotonicMs();
    this.#bell.ring();
    if (this.#running) return;
    this.#running = true;
    this.#closed = false;
    void this.#run();
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (this.#wanted) {
      try {
        // While nobody asked, the server may have ended it.
        if (this.#line?.hasEnded === true) this.#line = undefined;
        this.#line ??= await this.#connect();
        await this.#round(this.#line);
        failures = 0;
        await this.#bell.waitFor(WATCH_POLL_MS);
      } catch (error) {
        const line = this.#line;
        this.#line = undefined;
        line?.destroy();
        // Whoever came until now is notified of the error; the session's own end is no reason to hurry.
        this.#bell.silence();
        this.#fail(error);
        failures++;
        const { retryMinMs, retryMaxMs } = this.#tools.settings.timing;
        // Readers have had their answer; whoever comes meanwhile does not wait for the backoff.
        await this.#bell.waitFor(retryInMs(this.#tools.random, failures, retryMinMs, retryMaxMs));
      }
    }
    this.#running = false;
    const line = this.#line;
    this.#line = undefined;
    this.#fail(new Error("the observer was closed"));
    await line?.end();
    // Somebody may have asked while the last one was being closed.
    if (this.#watchers.size > 0 || this.#readers.length > 0) this.#start();
  }

  async #connect(): Promise<Line> {
    const { driver, clock, settings } = this.#tools;
    const wakeUp = (): void => {
      if (this.#line === line) this.#bell.ring();
    };
    const line: Line = new Line(driver, clock, { ended: wakeUp, notified: wakeUp });
    this.#opening = line;
    try {
      await line.open();
      // What is configured on a session that a pooler shares stays there, for strangers.
      if (!this.#probed) await refusePooler(line, driver, clock);
      this.#probed = true;
      await configure(line, {
        name: "tenure (observer)",
        statementTimeoutMs: settings.session.statementMs,
        lockTimeoutMs: settings.session.lockMs,
        idleSessionTimeoutMs: 0,
        idleInTransactionTimeoutMs: settings.session.statementMs,
      });
      await line.ask(`listen ${quoteName(settings.channel)}`);
      return line;
    } catch (error) {
      line.destroy();
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }

  async #round(line: Line): Promise<void> {
    const readers = this.#readers;
    const keys = new Set([...this.#watchers, ...readers].map((one) => one.key));
    if (keys.size === 0) return;
    const rows = await this.#rows(line, [...keys]);
    const found = new Map(rows.map((row) => [row.key, row]));
    this.#readers = this.#readers.filter((reader) => !readers.includes(reader));
    for (const reader of readers) reader.resolve(leaderOf(found.get(reader.key)));
    for (const watcher of this.#watchers) {
      if (!keys.has(watcher.key)) continue;
      const row = found.get(watcher.key);
      this.#safely(watcher.scope, () => this.#warnIfStale(watcher.scope, row));
      this.#safely(watcher.scope, () => tellOnce(watcher, leaderOf(row)));
    }
  }

  /** Where tables are made by whoever campaigns first, missing ones mean that nobody has led yet. */
  async #rows(line: Line, keys: readonly string[]): Promise<readonly LeaderRow[]> {
    const { schema, migrate } = this.#tools.settings;
    try {
      return await line.ask<LeaderRow>(leadersSql(schema), [keys]);
    } catch (error) {
      if (migrate === "auto" && sqlstateOf(error) === "42P01") return [];
      throw error;
    }
  }

  #warnIfStale(scope: string, row: LeaderRow | undefined): void {
    const limitMs = this.#tools.settings.epochStaleThresholdMs;
    if (limitMs === undefined || row === undefined) return;
    const isStale = leaderOf(row) !== null && row.age_ms !== null && Number(row.age_ms) > limitMs;
    if (!isStale) {
      this.#stale.delete(row.key);
      return;
    }
    if (this.#stale.get(row.key) === row.epoch) return;
    this.#stale.set(row.key, row.epoch);
    const fields = { scope, epoch: Number(row.epoch), holder: row.holder, heartbeatAgeMs: Number(row.age_ms) };
    this.#tools.logger.warn(fields, "the leader's heartbeat is old; the server ends its session if it stays silent");
  }

  #fail(error: unknown): void {
    const readers = this.#readers;
    this.#readers = [];
    const fault = (scope: string): unknown => faultOf(error, { where: this.#tools.driver.where, scope });
    for (const reader of readers) reader.reject(fault(reader.scope));
    if (this.#closed) return;
    for (const watcher of this.#watchers) {
      this.#safely(watcher.scope, () => watcher.failed(fault(watcher.scope)));
    }
  }

  /** What others gave us to call may throw: that is theirs, and everybody else is served all the same. */
  #safely(scope: string, call: () => void): void {
    harmlessly(call, (error) =>
      this.#tools.logger.error({ scope, error: messageOf(error) }, "a callback threw while the leader was observed"),
    );
  }
}

function tellOnce(watcher: Watcher, leader: Leader | null): void {
  const text = JSON.stringify(leader);
  if (watcher.told === text) return;
  watcher.told = text;
  watcher.tell(leader);
}
