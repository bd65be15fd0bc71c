// Puts events into the tables of mesh.sqlite, in order of arrival, inside of a transaction of the writer's.
//
// Invariants:
// - An arrival is taken once: what is at or below the position changes nothing.
// - Each line's events come in order (receipts.ts has no gaps in a line), so a row that is gone can be dropped (core/mesh/merge); it is
//   kept as long as another line says something of the same job, because it says that an older generation's word is void.
// - What is shown of a job is computed from its rows whenever one of them, or the standing of its line, changes.
// - Of the lines of one put, sum and time are in memory and written once, at its end: each event changes both. A put that fails leaves nothing of it.

import { hash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { decodeEvent, eventHashOf, type StoredEvent } from "../../../core/events/index.ts";
import { assertNever } from "../../../core/kit/assert.ts";
import { parseJson } from "../../../core/kit/parse-json.ts";
import {
  type ControllerRow,
  EMPTY_SUM,
  type JobWords,
  type LineMark,
  Projection,
  type Row,
  type RowStore,
  shownController,
  shownJob,
  siteOf,
} from "../../../core/mesh/merge/index.ts";
import {
  MESH_EVENTS_DROPPED_MAX,
  MESH_EVENTS_KEPT,
  MESH_LINES_PER_SITE_MAX,
  MESH_PAYLOAD_LENGTH_MAX,
  MESH_RECEIPTS_DROPPED_MAX,
  MESH_REGISTRATION_MS,
  MESH_SHOWN_AGAIN_MAX,
} from "../limits.ts";
import type { MeshPiece, PostedEvent } from "./messages.ts";
import { readPosition, STATE_NUMBERS } from "../store.ts";
import { wordsOf } from "../words.ts";

const digest = { sha256Hex: (data: Uint8Array | string): string => hash("sha256", data, "hex") };

interface Receipt {
  readonly line: string;
  readonly receipt: number;
  readonly first: number;
  readonly through: number;
}

/** Of a line, while a put goes on. */
interface OpenLine {
  sum: string;
  arrivedMs: number;
  readonly mark: LineMark | null;
  through: number | null;
}

export class MeshRows {
  readonly #database: DatabaseSync;
  readonly #projection: Projection;
  readonly #statements: Statements;
  /** Of the arrival that is being taken: the key of a job that it brings. */
  #arrival = 0;
  readonly #lines = new Map<string, OpenLine>();

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = statementsOf(database);
    this.#projection = new Projection(this.#store(), digest);
  }

  put({ events, buffer }: MeshPiece): void {
    // What is left of one that failed was rolled back.
    this.#lines.clear();
    let through = readPosition(this.#database);
    let missing = 0;
    let from = 0;
    let receipt: Receipt | null = null;
    for (const posted of events) {
      const bytes = buffer.subarray(from, from + posted.length);
      from += posted.length;
      if (posted.arrival <= through) continue;
      // Before the first there may be what has left the archive long ago.
      missing += posted.arrival - through - 1;
      through = posted.arrival;
      this.#take(posted, bytes);
      receipt = this.#receipted(receipt, posted);
    }
    if (receipt !== null) this.#putReceipt(receipt);
    this.#putLines();
    this.setPosition(through);
    if (missing > 0) this.#statements.addMissing.run(BigInt(missing), BigInt(missing));
    this.#statements.dropEvents.run(BigInt(through - MESH_EVENTS_KEPT), BigInt(MESH_EVENTS_DROPPED_MAX));
  }

  setPosition(position: number): void {
    this.#statements.setPosition.run(BigInt(position));
  }

  mark(line: string, mark: LineMark | null): void {
    this.#lines.clear();
    if ((this.#statements.findLine.get(line)?.["mark"] ?? null) === mark) return;
    this.#line(line);
    this.#statements.setMark.run(mark, line);
    this.#lines.clear();
    this.#showAgain("contested", line, 0, Number.MAX_SAFE_INTEGER);
  }

  /** Where receipts before this one are, and the notes of their pages, as many as one transaction may remove. True: there are more. */
  forget(before: number): boolean {
    const { receiptsBefore, dropReceipt, dropCheckpoints } = this.#statements;
    let left = MESH_RECEIPTS_DROPPED_MAX;
    for (const { line } of this.#statements.receiptLines.all() as { line: string }[]) {
      const gone = receiptsBefore.all(line, BigInt(before), BigInt(left)) as { receipt: number; through: number }[];
      for (const { receipt } of gone) dropReceipt.run(line, BigInt(receipt));
      const last = gone.at(-1);
      if (last !== undefined) dropCheckpoints.run(line, BigInt(last.through));
      if ((left -= gone.length) <= 0) return true;
    }
    return false;
  }

  #take(posted: PostedEvent, bytes: Uint8Array): void {
    const { line, generation, lineSequence, checkpoint } = posted;
    this.#arrival = posted.arrival;
    const open = this.#line(line);
    open.arrivedMs = Math.max(open.arrivedMs, posted.arrivedMs);
    if (checkpoint !== null) {
      this.#statements.putCheckpoint.run(line, BigInt(lineSequence), BigInt(checkpoint.after), checkpoint.note);
    }
    const read = posted.hash === null ? decodeEvent(bytes) : null;
    // Pages are verified before they are applied: what can't be read here is of a kind that a later release knows.
    if (read === null || read.kind === "malformed") {
      this.#logEvent(posted, null, posted.hash ?? eventHashOf(bytes, digest));
      return;
    }
    this.#logEvent(posted, read.event, eventHashOf(bytes, digest));
    this.#projection.apply({ line, generation, event: { ...read.event, sequence: lineSequence } });
  }

  #logEvent(posted: PostedEvent, event: StoredEvent | null, eventHash: string): void {
    const payload = event === null ? "{}" : JSON.stringify(event.payload);
    this.#statements.logEvent.run(
      BigInt(posted.arrival),
      posted.line,
      BigInt(posted.generation),
      BigInt(posted.lineSequence),
      event?.id ?? "",
      event?.timestamp ?? 0,
      event?.eventType ?? (posted.hash === null ? "unreadable" : "withheld"),
      event?.entityId ?? "",
      event?.entityType ?? "",
      payload.length > MESH_PAYLOAD_LENGTH_MAX ? `{"omittedBytes":${Buffer.byteLength(payload)}}` : payload,
      event?.sourceControllerId ?? "",
      event?.previousHash ?? null,
      eventHash,
    );
  }

  /** Joined for as long as events of one receipt follow each other. */
  #receipted(last: Receipt | null, { line, lineSequence, receipt }: PostedEvent): Receipt | null {
    if (last !== null && (receipt !== last.receipt || line !== last.line)) {
      this.#putReceipt(last);
      last = null;
    }
    if (receipt === null) return null;
    return { line, receipt, first: last?.first ?? lineSequence, through: lineSequence };
  }

  #putReceipt({ line, receipt, first, through }: Receipt): void {
    this.#statements.putReceipt.run(line, BigInt(receipt), BigInt(first), BigInt(through));
  }

  /** From here on it is in the table, too. */
  #line(line: string): OpenLine {
    const open = this.#lines.get(line);
    if (open !== undefined) return open;
    this.#statements.beginLine.run(line, siteOf(line), EMPTY_SUM);
    const row = this.#statements.findLine.get(line)!;
    const found = {
      sum: row["sum"] as string,
      arrivedMs: row["arrived_ms"] as number,
      mark: row["mark"] as LineMark | null,
      through: row["ended"] as number | null,
    };
    this.#lines.set(line, found);
    return found;
  }

  #putLines(): void {
    for (const [line, { sum, arrivedMs }] of this.#lines) this.#statements.putLine.run(sum, arrivedMs, line);
    this.#lines.clear();
  }

  #store(): RowStore {
    const { getRow, setRow, end } = this.#statements;
    return {
      get: (kind, line, id) => (getRow.get(kind, id, line)?.["text"] as string | undefined) ?? null,
      set: (row, text, isGone) => {
        const { id, line } = row.row;
        setRow.run(row.kind, id, line, BigInt(sequenceOf(row)), isGone ? 1n : 0n, text);
        this.#changed(row);
      },
      sum: (line) => this.#line(line).sum,
      setSum: (line, sum) => void (this.#line(line).sum = sum),
      ended: (line, through) => {
        // A site says this as often as it likes, and of lines that nobody has: what changes nothing costs nothing.
        if (!this.#hasRoomFor(line)) return;
        const open = this.#line(line);
        const before = open.through ?? Number.MAX_SAFE_INTEGER;
        if (through >= before) return;
        open.through = through;
        end.run(BigInt(through), line);
        this.#showAgain("between", line, through + 1, before);
      },
    };
  }

  /** Jobs whose last word in this line is there. A few at a time: a site may have more than fit into memory. */
  #showAgain(which: "between" | "contested", line: string, from: number, through: number): void {
    const find = this.#statements[which];
    let [sequence, id] = [from, ""];
    for (;;) {
      const found = find.all(line, BigInt(sequence), id, BigInt(through), BigInt(MESH_SHOWN_AGAIN_MAX));
      for (const row of found) this.#show(row["id"] as string);
      const last = found.at(-1);
      if (last === undefined) return;
      [sequence, id] = [last["sequence"] as number, last["id"] as string];
    }
  }

  #hasRoomFor(line: string): boolean {
    const { findLine, linesOfSite } = this.#statements;
    return findLine.get(line) !== undefined || linesOfSite.all(siteOf(line)).length < MESH_LINES_PER_SITE_MAX;
  }

  #changed({ kind, row }: Row): void {
    const { id } = row;
    switch (kind) {
      case "job":
        this.#show(id, row);
        return;
      case "agent":
        this.#statements.dropGone.run(kind, id);
        return;
      case "controller":
        this.#showController(id);
        return;
      default:
        assertNever(kind, "kind of row");
    }
  }

  /** `set`: one of its rows, as it was set just now. */
  #show(id: string, set: JobWords | null = null): void {
    const { findJob, deleteJob, deleteWords } = this.#statements;
    const shown = shownJob(this.#rowsOf(id, set), (line) => this.#line(line));
    const before = findJob.get(id);
    const key = before === undefined ? this.#arrival : (before["sequence"] as number);
    if (shown === null) {
      if (before === undefined) return;
      deleteWords.run(BigInt(key));
      deleteJob.run(BigInt(key));
      return;
    }
    const { state, kind, queue, agent, site, platform, submittedBy, error, labels } = shown;
    // Not the agent: it changes with every attempt, and the words would be written again each time.
    const words = wordsOf([kind, queue, platform, submittedBy, error, ...labels.flat()]);
    const values = [STATE_NUMBERS[state], kind ?? "", queue ?? "", agent, site, words, JSON.stringify(shown)] as const;
    this.#statements.putJob.run(BigInt(key), id, ...values);
    if (before?.["searched"] === words) return;
    if (before !== undefined) deleteWords.run(BigInt(key));
    this.#statements.insertWords.run(BigInt(key), words);
  }

  /** Of a job. Where all of them are gone, they are dropped. */
  #rowsOf(id: string, set: JobWords | null): readonly JobWords[] {
    const rows = this.#statements.rowsOf.all("job", id);
    if (rows.every((row) => row["is_gone"] === 1)) {
      this.#statements.dropGone.run("job", id);
      return [];
    }
    return rows.map((row) =>
      set !== null && row["line"] === set.line ? set : (parseJson(row["text"] as string) as JobWords),
    );
  }

  #showController(id: string): void {
    const rows = this.#statements.rowsOf.all("controller", id);
    const shown = shownController(rows.map((row) => parseJson(row["text"] as string) as ControllerRow));
    if (shown === null || shown.registration === null) return;
    const { registration, life } = shown;
    const aliveMs = Math.floor(life?.atMs ?? registration.atMs);
    const { urls, version } = registration;
    this.#statements.putController.run(
      id,
      registration.url ?? "",
      registration.name ?? id,
      BigInt(Math.floor(registration.atMs)),
      BigInt(aliveMs),
      BigInt(aliveMs + MESH_REGISTRATION_MS),
      life?.isActive === false ? 0n : 1n,
      JSON.stringify({ line: shown.line, urls, ...(version === null ? {} : { version }) }),
    );
  }
}

/** Of its last word, by which it is found when its line turns out to have been restored from before. */
function sequenceOf({ kind, row }: Row): number {
  return kind === "job" ? (row.state?.at.sequence ?? 0) : 0;
}

type Statements = Readonly<Record<keyof typeof SQL, StatementSync>>;

const SQL = {
  setPosition: "UPDATE meta SET value = ? WHERE name = 'position'",
  addMissing: "INSERT INTO meta (name, value) VALUES ('missing', ?) ON CONFLICT (name) DO UPDATE SET value = value + ?",
  beginLine: "INSERT OR IGNORE INTO lines (line, site, sum, arrived_ms) VALUES (?, ?, ?, 0)",
  findLine: "SELECT sum, mark, ended, arrived_ms FROM lines WHERE line = ?",
  putLine: "UPDATE lines SET sum = ?, arrived_ms = ? WHERE line = ?",
  setMark: "UPDATE lines SET mark = ? WHERE line = ?",
  end: "UPDATE lines SET ended = ? WHERE line = ?",
  linesOfSite: "SELECT line FROM lines WHERE line > ?1 || '.' AND line < ?1 || '/'",
  getRow: "SELECT text FROM merged_rows WHERE kind = ? AND id = ? AND line = ?",
  setRow: "INSERT OR REPLACE INTO merged_rows (kind, id, line, sequence, is_gone, text) VALUES (?, ?, ?, ?, ?, ?)",
  rowsOf: "SELECT line, is_gone, text FROM merged_rows WHERE kind = ? AND id = ?",
  dropGone: "DELETE FROM merged_rows WHERE kind = ? AND id = ? AND is_gone = 1",
  between:
    "SELECT id, sequence FROM merged_rows WHERE line = ? AND kind = 'job' AND (sequence, id) > (?, ?) AND sequence <= ? ORDER BY sequence, id LIMIT ?",
  contested:
    "SELECT id, sequence FROM merged_rows AS own WHERE line = ? AND kind = 'job' AND (sequence, id) > (?, ?) AND sequence <= ? AND EXISTS (SELECT 1 FROM merged_rows AS other WHERE other.kind = 'job' AND other.id = own.id AND other.line <> own.line) ORDER BY sequence, id LIMIT ?",
  findJob: "SELECT sequence, searched FROM jobs WHERE id = ?",
  putJob:
    "INSERT OR REPLACE INTO jobs (sequence, id, state, kind, queue, agent, site, searched, json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  deleteJob: "DELETE FROM jobs WHERE sequence = ?",
  insertWords: "INSERT INTO words (rowid, text) VALUES (?, ?)",
  deleteWords: "DELETE FROM words WHERE rowid = ?",
  putController:
    "INSERT OR REPLACE INTO controller_nodes (id, url, name, registered_at, last_heartbeat_at, expires_at, is_active, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  logEvent:
    "INSERT OR REPLACE INTO event_log (sequence, line, generation, line_sequence, id, timestamp, event_type, entity_id, entity_type, payload, source_controller_id, previous_hash, event_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  dropEvents:
    "DELETE FROM event_log WHERE sequence IN (SELECT sequence FROM event_log WHERE sequence <= ? ORDER BY sequence LIMIT ?)",
  putReceipt:
    "INSERT INTO receipts (line, receipt, first, through) VALUES (?, ?, ?, ?) ON CONFLICT (line, receipt) DO UPDATE SET first = min(first, excluded.first), through = max(through, excluded.through)",
  receiptLines: "SELECT line FROM lines",
  receiptsBefore: "SELECT receipt, through FROM receipts WHERE line = ? AND receipt < ? ORDER BY receipt LIMIT ?",
  dropReceipt: "DELETE FROM receipts WHERE line = ? AND receipt = ?",
  dropCheckpoints: "DELETE FROM checkpoints WHERE line = ? AND size <= ?",
  putCheckpoint: "INSERT OR REPLACE INTO checkpoints (line, size, after, note) VALUES (?, ?, ?, ?)",
} as const;

function statementsOf(database: DatabaseSync): Statements {
  const prepare = (text: string): StatementSync => {
    const statement = database.prepare(text);
    // What is run says which row it inserted last, and the words' own tables have keys that are no number of JavaScript's.
    if (!text.startsWith("SELECT")) statement.setReadBigInts(true);
    return statement;
  };
  return Object.fromEntries(Object.entries(SQL).map(([name, text]) => [name, prepare(text)])) as Statements;
}
