// Writes jobs, logs and the position, inside of a transaction that the caller opens and ends. Every statement may be
// repeated with the same values: a put whose acknowledgement was lost comes again.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Job } from "../../core/jobs/model.ts";
import { assert } from "../../core/kit/assert.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { JobLog } from "../../ports/views.ts";
import type { PutPiece } from "./messages.ts";
import { STATE_NUMBERS } from "./store.ts";
import { wordsOfJob } from "./words.ts";

/** Instead of the position at which a job was put. */
const IN_DOUBT = -1n;
const LIVE = `state < ${STATE_NUMBERS.completed}`;

export class JobRows {
  readonly #find: StatementSync;
  readonly #findById: StatementSync;
  readonly #epochOf: StatementSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #insertWords: StatementSync;
  readonly #deleteWords: StatementSync;
  readonly #deleteJob: StatementSync;
  readonly #insertLog: StatementSync;
  readonly #deleteLogs: StatementSync;
  readonly #setPosition: StatementSync;
  readonly #setLine: StatementSync;
  readonly #setHoles: StatementSync;
  readonly #doubt: StatementSync;
  readonly #prolong: StatementSync;
  readonly #doubtful: StatementSync;
  readonly #trust: StatementSync;

  constructor(database: DatabaseSync) {
    this.#find = database.prepare("SELECT id, error FROM jobs WHERE sequence = ?");
    this.#findById = database.prepare("SELECT sequence FROM jobs WHERE id = ?");
    this.#epochOf = database.prepare("SELECT json ->> '$.jobEpoch' AS epoch FROM jobs WHERE sequence = ?");
    const toRun = (text: string): StatementSync => {
      const statement = database.prepare(text);
      // `run` reports the last row id of the connection, and those inside of the words' own tables are above 2^53.
      statement.setReadBigInts(true);
      return statement;
    };
    this.#insert = toRun(`
      INSERT INTO jobs (sequence, id, kind, queue, priority, submitted_at, state, agent, finished_at,
        expires_at, changed_by, error, json)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#update = toRun(`
      UPDATE jobs SET state = ?, agent = ?, finished_at = ?, expires_at = ?, changed_by = ?, error = ?, json = ? WHERE sequence = ?`);
    this.#insertWords = toRun("INSERT INTO words (rowid, text) VALUES (?, ?)");
    this.#deleteWords = toRun("DELETE FROM words WHERE rowid = ?");
    this.#deleteJob = toRun("DELETE FROM jobs WHERE sequence = ?");
    this.#insertLog = toRun(`
      INSERT INTO logs (sequence, attempt, offset, bytes, text) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (sequence, attempt, offset) DO UPDATE SET bytes = excluded.bytes, text = excluded.text`);
    this.#deleteLogs = toRun("DELETE FROM logs WHERE sequence = ?");
    this.#doubt = toRun(`UPDATE jobs SET changed_by = ? WHERE ${LIVE}`);
    this.#prolong = toRun(`
      UPDATE jobs SET expires_at = max(expires_at, ? + expires_at - finished_at) WHERE expires_at IS NOT NULL`);
    this.#doubtful = database.prepare(`SELECT sequence FROM jobs WHERE ${LIVE} AND changed_by = ?`);
    this.#trust = toRun(`UPDATE jobs SET changed_by = 0 WHERE ${LIVE} AND changed_by = ?`);
    this.#setPosition = toRun("UPDATE meta SET value = ? WHERE name = 'position'");
    this.#setLine = toRun("INSERT OR REPLACE INTO meta (name, value) VALUES ('line', ?)");
    this.#setHoles = toRun("INSERT OR REPLACE INTO meta (name, value) VALUES ('holes', ?)");
  }

  put(piece: PutPiece): void {
    for (const json of piece.jobs) {
      const job = parseJson(json) as Job;
      if (!piece.isPast || !this.#isNewer(job)) this.#putJob(job, json, piece.position);
    }
    for (const log of piece.logs) this.#putLog(log);
    for (const jobId of piece.forgotten) this.#forget(jobId);
    if (piece.settles) this.#settle();
  }

  /** `line` null: as before. */
  setPosition(position: number, line: string | null): void {
    this.#setPosition.run(BigInt(position));
    if (line !== null) this.#setLine.run(line);
  }

  setHoles(ranges: string): void {
    this.#setHoles.run(ranges);
  }

  doubt(nowMs: number): void {
    this.#doubt.run(IN_DOUBT);
    this.#prolong.run(BigInt(Math.floor(nowMs)));
  }

  trust(): void {
    this.#trust.run(IN_DOUBT);
  }

  #settle(): void {
    for (const { sequence } of this.#doubtful.all(IN_DOUBT) as { sequence: number }[]) this.#drop(sequence);
  }

  /** Whether what is here is of later than this end of the job. */
  #isNewer({ submittedSequence, jobEpoch }: Job): boolean {
    const row = this.#epochOf.get(submittedSequence);
    return row !== undefined && (row["epoch"] as number) > jobEpoch;
  }

  #putJob(job: Job, json: string, position: number): void {
    const { submittedSequence: sequence, spec } = job;
    const agent = job.lease?.agent ?? job.attempts.at(-1)?.agent ?? null;
    const error = job.error === null ? null : JSON.stringify(job.error);
    const state = STATE_NUMBERS[job.state];
    const expiresAtMs = job.finishedAtMs === null ? null : job.finishedAtMs + spec.retentionMs;
    const before = this.#find.get(sequence);
    if (before === undefined) {
      const { id, submittedAtMs, finishedAtMs } = job;
      const { kind, queue, priority } = spec;
      const values = [
        sequence,
        id,
        kind,
        queue,
        priority,
        submittedAtMs,
        state,
        agent,
        finishedAtMs,
        expiresAtMs,
        position,
        error,
        json,
      ];
      this.#insert.run(...values);
      this.#insertWords.run(sequence, wordsOfJob(job));
      return;
    }
    assert(before["id"] === job.id, "one job for a sequence", () => `${String(before["id"])}, ${job.id}: ${sequence}`);
    this.#update.run(state, agent, job.finishedAtMs, expiresAtMs, position, error, json, sequence);
    // Of all that is searched only the error ever changes.
    if (before["error"] === error) return;
    this.#deleteWords.run(sequence);
    this.#insertWords.run(sequence, wordsOfJob(job));
  }

  /** Of a job that was forgotten meanwhile nothing is kept. */
  #putLog(log: JobLog): void {
    const sequence = this.#sequenceOf(log.jobId);
    if (sequence === null) return;
    this.#insertLog.run(sequence, log.attempt, log.offset, Buffer.byteLength(log.text), log.text);
  }

  #forget(jobId: string): void {
    const sequence = this.#sequenceOf(jobId);
    if (sequence !== null) this.#drop(sequence);
  }

  #drop(sequence: number): void {
    this.#deleteWords.run(sequence);
    this.#deleteLogs.run(sequence);
    this.#deleteJob.run(sequence);
  }

  #sequenceOf(jobId: string): number | null {
    const row = this.#findById.get(jobId);
    return row === undefined ? null : (row["sequence"] as number);
  }
}
