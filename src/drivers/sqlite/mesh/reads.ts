// What is read of mesh.sqlite, a page at a time.

import { DatabaseSync } from "node:sqlite";
import { TenureError } from "../../../core/kit/errors.ts";
import { parseJson } from "../../../core/kit/parse-json.ts";
import { type AgentRow, projectionHash, type ShownJob, siteOf } from "../../../core/mesh/merge/index.ts";
import type {
  LineMark,
  MeshAgent,
  MeshAgentPage,
  MeshAgentQuery,
  MeshCheckpoint,
  MeshEvent,
  MeshEventPage,
  MeshEventQuery,
  MeshJobQuery,
  MeshPlace,
  MeshSource,
} from "../../../ports/mesh/views.ts";
import type { ControllerView } from "../../../ports/mesh/mesh.ts";
import { listJobs } from "../job-list.ts";
import {
  JOBS_PAGE_BYTES_MAX,
  MESH_CONTROLLERS_MAX,
  MESH_PAGE_ROWS_MAX,
  PAGE_MS_MAX,
  PAGE_ROWS_PER_LOOK,
} from "../limits.ts";
import type { StoredHash, StoredMeshPage } from "./messages.ts";
import { readMissing } from "./store.ts";
import { readPosition } from "../store.ts";

type Sources = ReadonlyMap<string, MeshSource>;

/** The lines are read after the page: what is known of them is at least as new. */
export function readJobs(database: DatabaseSync, query: MeshJobQuery): StoredMeshPage {
  const page = listJobs(database, query);
  const sources = sourcesOf(database);
  const lines = new Set(page.jobs.map((json) => (parseJson(json) as ShownJob).line));
  return { ...page, lines: [...lines].map((line) => [line, sources.get(line) ?? UNKNOWN] as const) };
}

const UNKNOWN: MeshSource = { mark: null, arrivedMs: 0 };

function sourcesOf(database: DatabaseSync): Sources {
  const rows = database.prepare("SELECT line, mark, arrived_ms FROM lines").all();
  return new Map(
    rows.map((row) => [
      row["line"] as string,
      { mark: row["mark"] as LineMark | null, arrivedMs: row["arrived_ms"] as number },
    ]),
  );
}

/**
 * By (name, line), from the cursor on; of generations that are over nothing is shown. Every row is handed out, fitting or not, so that the clock is
 * looked at: a page that takes too long is cut where it has got to, as one of jobs (job-list.ts).
 */
export function readAgents(
  database: DatabaseSync,
  { site, cursor, limit }: MeshAgentQuery,
  pageMsMax: number = PAGE_MS_MAX,
): MeshAgentPage {
  const endsAtMs = performance.now() + pageMsMax;
  const count = Math.min(limit, MESH_PAGE_ROWS_MAX);
  const rows = database
    .prepare(
      `SELECT rows.id, rows.line, rows.text, lines.site, lines.ended, lines.mark, lines.arrived_ms
       FROM merged_rows AS rows CROSS JOIN lines ON lines.line = rows.line
       WHERE rows.kind = 'agent' AND rows.is_gone = 0 AND (rows.id, rows.line) > (?, ?)
       ORDER BY rows.id, rows.line`,
    )
    .iterate(...cursorOf(cursor));
  const agents: MeshAgent[] = [];
  let [length, looked] = [0, 0];
  let next: string | null = null;
  for (const row of rows) {
    if (row["ended"] === null && (site === undefined || row["site"] === site)) {
      const text = row["text"] as string;
      const source = { mark: row["mark"] as LineMark | null, arrivedMs: row["arrived_ms"] as number };
      agents.push(agentOf(parseJson(text) as AgentRow, source));
      // Kinds and labels are another site's words: each is short, and a page of them is not.
      length += text.length;
    }
    const isLate = ++looked % PAGE_ROWS_PER_LOOK === 0 && performance.now() >= endsAtMs;
    if (agents.length < count && length < JOBS_PAGE_BYTES_MAX && !isLate) continue;
    next = Buffer.from(`${row["line"] as string}\n${row["id"] as string}`).toString("base64url");
    break;
  }
  return { agents, next, through: readPosition(database) };
}

function cursorOf(cursor: string | undefined): readonly [string, string] {
  if (cursor === undefined) return ["", ""];
  const text = Buffer.from(cursor, "base64url").toString();
  // No line has one.
  const end = text.indexOf("\n");
  if (end > 0) return [text.slice(end + 1), text.slice(0, end)];
  throw new TenureError("BAD_REQUEST", "this cursor is of no page of agents: send the `next` of the page before.");
}

function agentOf({ id, line, info, state }: AgentRow, source: MeshSource): MeshAgent {
  return {
    name: id,
    site: siteOf(line),
    line,
    isOnline: state?.isOnline ?? false,
    isDraining: info?.draining ?? false,
    platform: info?.platform ?? null,
    capacity: info?.capacity ?? 0,
    kinds: info?.kinds ?? [],
    labels: info?.labels ?? [],
    changedAtMs: state?.atMs ?? info?.atMs ?? 0,
    ...source,
  };
}

export function readControllers(database: DatabaseSync): ControllerView[] {
  const rows = database.prepare("SELECT * FROM controller_nodes ORDER BY id LIMIT ?").all(BigInt(MESH_CONTROLLERS_MAX));
  return rows.map((row) => ({
    id: row["id"] as string,
    url: row["url"] as string,
    name: row["name"] as string,
    registeredAt: row["registered_at"] as number,
    lastHeartbeatAt: row["last_heartbeat_at"] as number,
    expiresAt: row["expires_at"] as number,
    isActive: row["is_active"] === 1,
    metadata: parseJson(row["metadata"] as string) as ControllerView["metadata"],
  }));
}

/** Events of a line come in order. */
export function readLast(database: DatabaseSync, line: string): number {
  const last = database.prepare("SELECT line_sequence FROM event_log WHERE line = ? ORDER BY sequence DESC LIMIT 1");
  return (last.get(line)?.["line_sequence"] as number | undefined) ?? 0;
}

export function readEvents(database: DatabaseSync, query: MeshEventQuery): MeshEventPage {
  const { afterArrival, site } = query;
  const limit = Math.min(query.limit, MESH_PAGE_ROWS_MAX);
  const filters: (readonly [string, string | undefined])[] = [
    ["line = ?", query.line],
    // The names of its lines begin with the site's and a dot; the character after the dot is a slash.
    ["line > ?", site === undefined ? undefined : `${site}.`],
    ["line < ?", site === undefined ? undefined : `${site}/`],
    ["event_type = ?", query.eventType],
    ["entity_id = ?", query.entityId],
  ];
  const asked = filters.filter((filter): filter is [string, string] => filter[1] !== undefined);
  const conditions = asked.map(([condition]) => ` AND ${condition}`).join("");
  const order = afterArrival === undefined ? "DESC" : "ASC";
  const rows = database
    .prepare(`SELECT * FROM event_log WHERE sequence > ?${conditions} ORDER BY sequence ${order} LIMIT ?`)
    .iterate(BigInt(afterArrival ?? 0), ...asked.map(([, value]) => value), BigInt(limit));
  const events: MeshEvent[] = [];
  let bytes = 0;
  for (const row of rows) {
    const event = eventOf(row);
    events.push(event);
    bytes += event.payload.length;
    if (bytes >= JOBS_PAGE_BYTES_MAX) break;
  }
  const isFull = events.length >= limit || bytes >= JOBS_PAGE_BYTES_MAX;
  const oldest = database.prepare("SELECT coalesce(min(sequence), 1) AS oldest FROM event_log").get()!["oldest"];
  return {
    events: afterArrival === undefined ? events.toReversed() : events,
    next: isFull && afterArrival !== undefined ? (events.at(-1)?.arrival ?? null) : null,
    droppedThrough: (oldest as number) - 1,
    through: readPosition(database),
  };
}

function eventOf(row: Record<string, unknown>): MeshEvent {
  return {
    arrival: row["sequence"] as number,
    line: row["line"] as string,
    generation: row["generation"] as number,
    lineSequence: row["line_sequence"] as number,
    id: row["id"] as string,
    timestamp: row["timestamp"] as number,
    eventType: row["event_type"] as string,
    entityId: row["entity_id"] as string,
    entityType: row["entity_type"] as string,
    payload: row["payload"] as string,
    sourceControllerId: row["source_controller_id"] as string,
    previousHash: row["previous_hash"] as string | null,
    eventHash: row["event_hash"] as string,
  };
}

export function readReceipt(database: DatabaseSync, line: string, sequence: number): number | null {
  const row = database
    .prepare("SELECT receipt, first FROM receipts WHERE line = ? AND through >= ? ORDER BY through LIMIT 1")
    .get(line, BigInt(sequence));
  return row === undefined || (row["first"] as number) > sequence ? null : (row["receipt"] as number);
}

export function readReceiptPlace(database: DatabaseSync, receipt: number): MeshPlace | null {
  const row = database
    .prepare(
      "SELECT receipts.line, first, sequence FROM receipts JOIN event_log ON event_log.line = receipts.line AND line_sequence = first WHERE receipt = ?",
    )
    .get(BigInt(receipt));
  if (row === undefined) return null;
  return {
    arrival: row["sequence"] as number,
    line: row["line"] as string,
    lineSequence: row["first"] as number,
  };
}

export function readCheckpoint(database: DatabaseSync, line: string, after: number): MeshCheckpoint | null {
  const row = database
    .prepare("SELECT size, after, note FROM checkpoints WHERE line = ? AND size > ? ORDER BY size LIMIT 1")
    .get(line, BigInt(after));
  if (row === undefined) return null;
  return { size: row["size"] as number, after: row["after"] as number, note: row["note"] as string };
}

/** Into a file that is not there yet. */
export function copyTo(database: DatabaseSync, path: string): number {
  database.prepare("VACUUM INTO ?").run(path);
  const copy = new DatabaseSync(path, { readOnly: true });
  try {
    return readPosition(copy);
  } finally {
    copy.close();
  }
}

/** Lines that are marked count for nothing. */
export function readHash(database: DatabaseSync): StoredHash {
  const lines = database.prepare("SELECT line, sum, mark FROM lines").all();
  const sums = lines.filter((line) => line["mark"] === null).map((line) => line["sum"] as string);
  const marks = lines
    .filter((line) => line["mark"] !== null)
    .map((line) => [line["line"] as string, line["mark"] as LineMark] as const);
  const rows = database
    .prepare(
      "SELECT count(*) AS count FROM lines JOIN merged_rows AS rows ON rows.line = lines.line WHERE lines.mark IS NULL AND rows.is_gone = 0",
    )
    .get()!["count"] as number;
  return {
    hash: projectionHash(sums),
    through: readPosition(database),
    rows,
    missing: readMissing(database),
    marks,
  };
}
