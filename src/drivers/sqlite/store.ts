// The file of the views: how it is opened, what is in it, and how it is moved out of the way.
//
//   absent, or moved aside ──▶ new, position 0 ──▶ fed
//
// A file that is damaged, of another format (older or newer) or of another cluster is moved aside: it can be built again, so
// it is never repaired or migrated. One that has jobs and no position (it was being built when the process ended) is removed.
//
// WAL with synchronous NORMAL: a commit is written but not synced. A killed process loses nothing by that. A power loss may
// cost the last commits, whole ones, from the end: `position` is a row in the same transactions, so it goes back with them,
// and whoever feeds the views starts there again, from snapshot and archive, which are synced (design D12).

import { readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { JobState } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import {
  ASIDE_FILES_KEPT,
  CHECKPOINT_PAGES,
  READER_CACHE_KIB,
  WAL_KEPT_BYTES_MAX,
  WRITER_CACHE_KIB,
  BUSY_MS_MAX,
} from "./limits.ts";
import type { StoreOptions } from "./messages.ts";

/** Of tables, words and the JSON of jobs: whatever changes one of them raises it. */
const FORMAT = 2;

const META = "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;";

/** Numbers in the table and its index: they are changed most often of all. */
export const STATE_NUMBERS = {
  pending: 0,
  assigned: 1,
  building: 2,
  cancelling: 3,
  completed: 4,
  failed: 5,
  cancelled: 6,
} as const satisfies Record<JobState, number>;

// A row's key is the sequence of the event that submitted the job: unique, the same on every node, newest last. So every
// index below ends in the order of lists by itself, that of the words included, and no search has to sort.
const SCHEMA = `
  CREATE TABLE jobs (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state INTEGER NOT NULL,
    kind TEXT NOT NULL,
    queue TEXT NOT NULL,
    agent TEXT,
    priority INTEGER NOT NULL,
    submitted_at INTEGER NOT NULL,
    finished_at INTEGER,
    expires_at INTEGER,
    changed_by INTEGER NOT NULL,
    error TEXT,
    json TEXT NOT NULL
  );
  CREATE INDEX jobs_state ON jobs (state, sequence, kind, queue, agent);
  CREATE INDEX jobs_kind ON jobs (kind);
  CREATE INDEX jobs_queue ON jobs (queue);
  CREATE INDEX jobs_expires ON jobs (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX jobs_agent ON jobs (agent) WHERE agent IS NOT NULL;
  CREATE TABLE logs (
    sequence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    text TEXT NOT NULL
  );
  CREATE UNIQUE INDEX logs_place ON logs (sequence, attempt, offset);
  CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
`;

/** What kind of file it is. `R`: whoever puts rows into it. */
export interface StoreDesign<R> {
  /** Of tables, words and JSON: whatever changes one of them raises it. */
  readonly format: number;
  readonly schema: string;
  /** It was being built when the process ended, and what is in it can't be built upon. */
  isUnfinished(database: DatabaseSync): boolean;
  rows(database: DatabaseSync): R;
}

export type OpenedStore =
  | { readonly kind: "kept"; readonly database: DatabaseSync }
  | { readonly kind: "unfit"; readonly reason: "format" | "cluster" | "unfinished" };

/** For writing; makes a new file where there is none. Throws what SQLite throws. */
export function openStore(options: StoreOptions, design: StoreDesign<unknown>): OpenedStore {
  const database = new DatabaseSync(options.path, { timeout: BUSY_MS_MAX });
  try {
    // Before the first table, or it has no effect.
    database.exec("PRAGMA auto_vacuum = INCREMENTAL");
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA cache_size = -${WRITER_CACHE_KIB};
      PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
      PRAGMA journal_size_limit = ${WAL_KEPT_BYTES_MAX};
    `);
    const unfit = prepareTables(database, options, design);
    if (unfit === null) return { kind: "kept", database };
    database.close();
    return { kind: "unfit", reason: unfit };
  } catch (error) {
    if (database.isOpen) database.close();
    throw error;
  }
}

function prepareTables(
  database: DatabaseSync,
  options: StoreOptions,
  design: StoreDesign<unknown>,
): "format" | "cluster" | "unfinished" | null {
  const tables = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get()!["count"];
  if (tables === 0) {
    database.exec(`BEGIN IMMEDIATE; ${META} ${design.schema}`);
    const insert = database.prepare("INSERT INTO meta (name, value) VALUES (?, ?)");
    // A column without a type keeps what it is given, and Node gives numbers as reals.
    insert.run("format", BigInt(design.format));
    insert.run("cluster_id", options.clusterId);
    insert.run("position", 0n);
    database.exec("COMMIT");
    return null;
  }
  if (!hasMeta(database) || readMeta(database, "format") !== design.format) return "format";
  if (readMeta(database, "cluster_id") !== options.clusterId) return "cluster";
  return design.isUnfinished(database) ? "unfinished" : null;
}

/** Jobs and no position: what the next snapshot does not have any more would stay for ever. */
function isUnfinished(database: DatabaseSync): boolean {
  return readPosition(database) === 0 && database.prepare("SELECT 1 FROM jobs LIMIT 1").get() !== undefined;
}

/** The file of the jobs of this cluster. */
export function viewsDesign<R>(rows: (database: DatabaseSync) => R): StoreDesign<R> {
  return { format: FORMAT, schema: SCHEMA, isUnfinished, rows };
}

/** For reading, next to the writer. */
export function openReader(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS_MAX });
  try {
    database.exec(`PRAGMA cache_size = -${READER_CACHE_KIB}`);
    if (hasMeta(database)) return database;
    throw new TenureError("BACKEND_UNAVAILABLE", `${path} is being made anew: retry in a moment.`);
  } catch (error) {
    database.close();
    throw error;
  }
}

export function readPosition(database: DatabaseSync): number {
  const position = readMeta(database, "position");
  if (typeof position !== "number") throw new TenureError("DISK_DAMAGED", "the views' file has lost its position.");
  return position;
}

/** The hash of the event at the position; null: it was never told. */
export function readLine(database: DatabaseSync): string | null {
  const line = readMeta(database, "line");
  return typeof line === "string" ? line : null;
}

/** What it was built without, as JSON; null: nothing. */
export function readHoles(database: DatabaseSync): string | null {
  const holes = readMeta(database, "holes");
  return typeof holes === "string" ? holes : null;
}

export function removeStore(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
}

/** Returns where it is now. */
export function moveAside(path: string, reason: string): string {
  const aside = `${path}.${reason}-${new Date().toISOString().replaceAll(/[:.]/g, "")}`;
  renameIfThere(path, aside);
  // Without its WAL it would be another file than the one that was found.
  renameIfThere(`${path}-wal`, `${aside}-wal`);
  rmSync(`${path}-shm`, { force: true });
  const older = filesNextTo(path, /^\.[^-]*-.*Z$/)
    .toSorted(byTime)
    .slice(0, -ASIDE_FILES_KEPT);
  for (const old of older) {
    rmSync(old, { force: true });
    rmSync(`${old}-wal`, { force: true });
  }
  return aside;
}

/** Whose names go on from that of `path` in this way. No glob: a directory's name may have any character. */
export function filesNextTo(path: string, rest: RegExp): readonly string[] {
  const [directory, name] = [dirname(path), basename(path)];
  return readdirSync(directory)
    .filter((one) => one.startsWith(name) && rest.test(one.slice(name.length)))
    .map((one) => join(directory, one));
}

function byTime(a: string, b: string): number {
  return timeOf(a) < timeOf(b) ? -1 : 1;
}

function timeOf(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1).replace(/^[a-z]+-/, "");
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
  }
}

function hasMeta(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'").get() !== undefined;
}

export function readMeta(database: DatabaseSync, name: string): unknown {
  return database.prepare("SELECT value FROM meta WHERE name = ?").get(name)?.["value"];
}
