// The log in Postgres (tables: postgres/schema/log.ts): one row is the head with the fence, the records stand next to
// it, every node follows them, and the leader of the open epoch appends.
//
//   created ──start──▶ following ──close──▶ closed        open and append make this node the log's writer as well
//
// Invariants:
// - The database decides: an append is one statement whose guard is epoch, opening and position. Nothing that this node
//   believes lets it write in an epoch that is over, also not after a pause.
// - What is read from memory was applied here; what is older comes from the table, as long as it is kept there.
// - Where the table is not the log that was applied (a restored backup, a promotion that lost its end), or the fold can't
//   apply a record, nothing goes on: `onFatal`, and every call is refused.

import { TenureError } from "../../core/kit/errors.ts";
import type { Fold, LogAppended, LogHead, LogOpened, LogRecord, TakingLog } from "../../ports/log.ts";
import type { SqlTools } from "../../postgres/desk.ts";
import { LOG_READ_MS } from "../limits.ts";
import type { FeedBounds } from "../record-feed.ts";
import { Applied } from "./applied.ts";
import { Follower } from "./follower.ts";
import { LogReader } from "./log-reader.ts";
import { logStatements, type StoredHead } from "./log-sql.ts";
import { replay } from "./replay.ts";
import { SnapshotKeeper, type SnapshotPolicy } from "./snapshot-keeper.ts";
import { Writer, type WriterCounts } from "./writer.ts";

const LOG_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export interface PostgresLogOptions extends SqlTools {
  /** Its name in the tables: lower-case letters, digits, "-" and "_". */
  readonly log: string;
  readonly fold: Fold;
  /** The Postgres schema with Tenure's tables. */
  readonly schema: string;
  readonly kept?: FeedBounds | undefined;
  readonly pollMs?: number | undefined;
  /** Undefined: none are stored, and nothing is deleted. */
  readonly snapshots?: SnapshotPolicy | undefined;
  /** A session for appends is kept open before this node leads, so that it begins at once when it does. */
  readonly isHot?: boolean | undefined;
  /** Each append is a transaction of its own: for comparisons. */
  readonly ungrouped?: boolean | undefined;
  /** The table is not the log that was applied here, or the fold has failed: this node must begin anew. */
  readonly onFatal: (error: TenureError) => void;
}

export class PostgresLog implements TakingLog {
  readonly #options: PostgresLogOptions;
  readonly #applied: Applied;
  readonly #reader: LogReader;
  readonly #follower: Follower;
  readonly #writer: Writer;
  readonly #keeper: SnapshotKeeper | null;
  #fatal: TenureError | null = null;

  constructor(options: PostgresLogOptions) {
    const { log, desk, clock, random, logger, fold, schema, snapshots: policy } = options;
    if (!LOG_NAME.test(log)) {
      throw new TenureError(
        "CONFIG_INVALID",
        `a log can't be named ${JSON.stringify(log)}: use 1 to 63 lower-case letters, digits, "-" and "_".`,
      );
    }
    this.#options = options;
    const sql = logStatements(schema);
    const applied = new Applied(fold, options.kept, (error) => this.#onFatal(error));
    const reader = new LogReader(log, sql, applied, (error) => this.#onFatal(error));
    const follower = new Follower({
      log,
      desk,
      clock,
      random,
      logger,
      sql,
      reader,
      pollMs: options.pollMs ?? LOG_READ_MS,
      isKnown: (epoch, position) => epoch === applied.epoch && position <= Math.max(applied.position, this.#writer.end),
      onServed: () => {
        if (options.isHot === true) void this.#writer.warm();
      },
    });
    const lane = follower.lane.bind(follower);
    this.#keeper =
      policy === undefined
        ? null
        : new SnapshotKeeper({ log, sql, applied, reader, policy, lane, logger, fault: (error) => desk.fault(error) });
    this.#writer = new Writer({
      log,
      desk,
      sql,
      reader,
      applied,
      ungrouped: options.ungrouped ?? false,
      onCommitted: (opening) => this.#keeper?.committed(opening),
      onUnknown: () => follower.wakeUp(),
    });
    this.#applied = applied;
    this.#reader = reader;
    this.#follower = follower;
  }

  /** Resolves when this node has read everything once; rejects with what a person must repair. */
  start(): Promise<void> {
    return this.#follower.start();
  }

  /** What was sent may still be committed; what waits is refused. */
  async close(): Promise<void> {
    this.#options.desk.close();
    await Promise.all([this.#writer.close(), this.#follower.close()]);
  }

  /** Resolves when no snapshot is being stored and nothing is being deleted. */
  async settled(): Promise<void> {
    await this.#keeper?.settled();
  }

  get counts(): Readonly<WriterCounts> {
    return this.#writer.counts;
  }

  head(): LogHead {
    return this.#applied.head;
  }

  /** Everything that was committed at this time (monotonic) is applied here; null: never yet. */
  get freshAsOfMs(): number | null {
    return this.#follower.freshAsOfMs;
  }

  /** As this node read it last; null before the first time. */
  get stored(): StoredHead | null {
    return this.#reader.stored;
  }

  /** True: at some time after this call nobody had opened a higher epoch. False: that is not known. */
  confirm(epoch: number): Promise<boolean> {
    return this.#writer.confirm(epoch);
  }

  /** Everything committed before this call is applied here when it resolves; false: not in this time. */
  async catchUp(timeoutMs: number): Promise<boolean> {
    const { clock } = this.#options;
    const { promise: late, resolve } = Promise.withResolvers<false>();
    const timer = clock.setTimer(clock.monotonicMs() + timeoutMs, () => resolve(false));
    try {
      return this.#fatal === null && (await this.#follower.caughtUp(late));
    } finally {
      timer.cancel();
    }
  }

  async open(epoch: number): Promise<LogOpened> {
    this.#mustBeSound();
    return this.#writer.open(epoch);
  }

  async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    this.#mustBeSound();
    return this.#writer.append(epoch, after, batch);
  }

  /**
   * As `append`, and in the same transaction the submissions with these ids leave the inbox: both happen, or neither. Rejects,
   * and nothing is written, where one of them is not there any more.
   */
  async appendTaking(
    epoch: number,
    after: number,
    batch: readonly Uint8Array[],
    taken: readonly string[],
  ): Promise<LogAppended> {
    this.#mustBeSound();
    return this.#writer.append(epoch, after, batch, taken);
  }

  async read(from: number, max: number): Promise<readonly LogRecord[]> {
    this.#mustBeSound();
    const { feed } = this.#applied;
    if (from >= feed.first) return feed.read(from, max);
    return this.readStored(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    const { feed } = this.#applied;
    if (from >= feed.first) return feed.subscribe(from, tell, compacted);
    const { clock } = this.#options;
    return replay({ feed, clock, from, tell, compacted, read: (next, max) => this.readStored(next, max) });
  }

  /** From the table, also what memory has. Only what was applied here: nobody hears of a record before the fold has. */
  async readStored(from: number, max: number): Promise<readonly LogRecord[]> {
    if (max <= 0) return [];
    try {
      const upTo = this.#applied.position;
      const { head, records } = await this.#reader.page(this.#follower.lane(), from - 1, upTo, max);
      if (from < head.first) throw compactedAway(from, head.first);
      return records;
    } catch (error) {
      throw this.#options.desk.fault(error);
    }
  }

  #mustBeSound(): void {
    if (this.#fatal !== null) throw this.#fatal;
  }

  #onFatal(error: TenureError): void {
    if (this.#fatal !== null) return;
    this.#fatal = error;
    void this.#writer.close();
    void this.#follower.close();
    this.#options.onFatal(error);
  }
}

function compactedAway(from: number, first: number): TenureError {
  return new TenureError(
    "LOG_COMPACTED",
    `record ${from} is not kept any more; the oldest in Postgres is ${first}. Read the state instead, and go on behind it.`,
  );
}
