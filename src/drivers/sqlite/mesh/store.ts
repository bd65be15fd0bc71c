// The tables of mesh.sqlite. `event_log` and `controller_nodes` have the specification's columns; the key of an event is its place in its
// line and not its id, because a hostile site could take the ids of others.
//
// `jobs` and `words` are what is shown, one row a job, in the form in which job-list.ts walks through them: its key is the arrival that
// brought the job here first. `merged_rows` is what that is computed from: a row for each (job, line).

import type { DatabaseSync } from "node:sqlite";
import { TenureError } from "../../../core/kit/errors.ts";
import { MeshRows } from "./rows.ts";
import { readMeta, type StoreDesign } from "../store.ts";

/** Of tables, words and JSON: whatever changes one of them raises it. */
const FORMAT = 1;

const SCHEMA = `
  CREATE TABLE lines (
    line TEXT PRIMARY KEY,
    site TEXT NOT NULL,
    sum TEXT NOT NULL,
    mark TEXT,
    ended INTEGER,
    arrived_ms REAL NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE merged_rows (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    line TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    is_gone INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, id, line)
  ) WITHOUT ROWID;
  CREATE INDEX merged_rows_line ON merged_rows (line, kind, sequence);
  CREATE TABLE jobs (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state INTEGER NOT NULL,
    kind TEXT NOT NULL,
    queue TEXT NOT NULL,
    agent TEXT,
    site TEXT NOT NULL,
    searched TEXT NOT NULL,
    json TEXT NOT NULL
  );
  CREATE INDEX jobs_state ON jobs (state, sequence, kind, queue, agent, site);
  CREATE INDEX jobs_site ON jobs (site);
  CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
  CREATE TABLE controller_nodes (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    name TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    last_heartbeat_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    is_active INTEGER DEFAULT 1,
    metadata TEXT
  ) WITHOUT ROWID;
  CREATE TABLE event_log (
    sequence INTEGER PRIMARY KEY,
    line TEXT NOT NULL,
    generation INTEGER NOT NULL,
    line_sequence INTEGER NOT NULL,
    id TEXT NOT NULL,
    timestamp REAL NOT NULL,
    event_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    source_controller_id TEXT NOT NULL,
    previous_hash TEXT,
    event_hash TEXT NOT NULL
  );
  CREATE UNIQUE INDEX event_log_place ON event_log (line, generation, line_sequence);
  CREATE INDEX event_log_line ON event_log (line, sequence);
  CREATE INDEX event_log_entity ON event_log (entity_id, sequence);
  CREATE INDEX event_log_type ON event_log (event_type, sequence);
  CREATE TABLE receipts (
    line TEXT NOT NULL,
    receipt INTEGER NOT NULL,
    first INTEGER NOT NULL,
    through INTEGER NOT NULL,
    PRIMARY KEY (line, receipt)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX receipts_through ON receipts (line, through);
  CREATE TABLE checkpoints (
    line TEXT NOT NULL,
    size INTEGER NOT NULL,
    after INTEGER NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (line, size)
  ) WITHOUT ROWID;
`;

/** Everything comes in order of arrival, so there is nothing that could be half built. */
export const MESH_DESIGN: StoreDesign<MeshRows> = {
  format: FORMAT,
  schema: SCHEMA,
  isUnfinished: () => false,
  rows: (database) => new MeshRows(database),
};

export function readMissing(database: DatabaseSync): number {
  const missing = readMeta(database, "missing") ?? 0;
  if (typeof missing !== "number") throw new TenureError("DISK_DAMAGED", "the mesh's file has lost a number.");
  return missing;
}
