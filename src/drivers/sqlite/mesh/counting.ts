// Counts what mesh.sqlite has: every row and every job that is shown, as they are stored. The sums that are kept along were right when the rows were
// written, and say nothing of a row that was changed or lost since, by the disk or by a mistake of ours: a replay compares this.
//
// In steps, so that other reads go on between; all of one moment, on a connection of its own. What nobody goes on with is given up, because the
// file can't be tidied up while somebody reads an old state of it.

import { hash } from "node:crypto";
import { type RowKind, rowHash, RowSum, rowTextHash } from "../../../core/mesh/merge/index.ts";
import { MESH_COUNT_IDLE_MS_MAX, MESH_COUNT_MS_MAX, PAGE_ROWS_PER_LOOK } from "../limits.ts";
import { openReader } from "../store.ts";
import type { StoredCount } from "./messages.ts";
import { readHash } from "./reads.ts";

const digest = { sha256Hex: (data: Uint8Array | string): string => hash("sha256", data, "hex") };

export class Counting {
  readonly #database: ReturnType<typeof openReader>;
  readonly #steps: Generator<void, StoredCount, void>;
  #idle: NodeJS.Timeout | null = null;
  #isOver = false;

  constructor(path: string) {
    this.#database = openReader(path);
    this.#steps = this.#count();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Null: there is more to count. It is over when it throws. */
  next(): StoredCount | null {
    try {
      const counted = this.#step();
      if (counted === null) this.#waitForNext();
      else this.close();
      return counted;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#database.close();
  }

  #step(): StoredCount | null {
    const endsAtMs = performance.now() + MESH_COUNT_MS_MAX;
    do {
      for (let rows = 0; rows < PAGE_ROWS_PER_LOOK; rows++) {
        const step = this.#steps.next();
        if (step.done === true) return step.value;
      }
    } while (performance.now() < endsAtMs);
    return null;
  }

  #waitForNext(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.close(), MESH_COUNT_IDLE_MS_MAX);
    this.#idle.unref();
  }

  *#count(): Generator<void, StoredCount, void> {
    const database = this.#database;
    database.exec("BEGIN");
    const stored = readHash(database);
    const marked = new Set(stored.marks.map(([line]) => line));
    const [rows, shown] = [new RowSum(), new RowSum()];
    for (const row of database.prepare("SELECT kind, line, text FROM merged_rows WHERE is_gone = 0").iterate()) {
      if (!marked.has(row["line"] as string)) rows.add(hashOf(row["kind"] as RowKind, row["text"] as string));
      yield;
    }
    for (const row of database.prepare("SELECT json FROM jobs").iterate()) {
      shown.add(rowHash("shown", row["json"] as string, digest));
      yield;
    }
    return { ...stored, counted: rows.hex(), shown: shown.hex() };
  }
}

/** What can't be read is another text than the one that was stored, and has another hash. */
function hashOf(kind: RowKind, text: string): string {
  try {
    return rowTextHash(kind, text, digest);
  } catch {
    return rowHash(kind, text, digest);
  }
}
