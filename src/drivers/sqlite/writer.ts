// Takes puts, one after the other, and stores them in transactions.
//
//   taking ──put──▶ taking       puts that wait share a transaction, up to TRANSACTION_BYTES_MAX
//     │ a put fails: it, and all that share its transaction, are refused; nothing of them is stored
//     ▼
//   refusing ──position──▶ taking
//
// While it refuses, every put is refused with the same error: puts are pipelined, and one that got in after another that
// did not would leave a hole below the position. So whoever feeds it asks for the position and feeds from there.
// A put in several pieces has a transaction of its own, so that no earlier one waits for its later pieces.

import type { DatabaseSync } from "node:sqlite";
import { TenureError } from "../../core/kit/errors.ts";
import { faultOf } from "./faults.ts";
import { FREE_PAGES_KEPT, TRANSACTION_BYTES_MAX, VACUUM_PAGES_MAX } from "./limits.ts";
import type { Piece, StoreOptions } from "./messages.ts";
import { moveAside, openStore, readPosition, removeStore, type StoreDesign } from "./store.ts";

export interface WriterReplies {
  stored(id: number): void;
  refused(id: number, error: TenureError): void;
  replaced(aside: string | null, reason: string): void;
}

/** Puts rows into the tables, inside of a transaction. */
export interface Rows<P extends Piece> {
  put(piece: P): void;
  /** `line` null: as before. */
  setPosition(position: number, line: string | null): void;
}

interface OpenStore<R> {
  readonly database: DatabaseSync;
  readonly rows: R;
  /** What is committed. */
  position: number;
}

interface Transaction {
  /** Last pieces, to be answered when it is committed. */
  readonly ids: number[];
  position: number;
  line: string | null;
  bytes: number;
  /** In the middle of a put. */
  isPartial: boolean;
}

export class Writer<P extends Piece, R extends Rows<P>> {
  readonly #design: StoreDesign<R>;
  readonly #options: StoreOptions;
  readonly #replies: WriterReplies;
  #store: OpenStore<R> | null = null;
  #transaction: Transaction | null = null;
  #refusal: TenureError | null = new TenureError(
    "BACKEND_UNAVAILABLE",
    "the views were opened anew: ask for their position and feed from there.",
  );

  constructor(design: StoreDesign<R>, options: StoreOptions, replies: WriterReplies) {
    this.#design = design;
    this.#options = options;
    this.#replies = replies;
  }

  get path(): string {
    return this.#options.path;
  }

  /** Throws a TenureError where the file can't be had. */
  position(): number {
    this.flush();
    const { position } = this.#guarded(() => {
      if (this.#store !== null && this.#design.isUnfinished(this.#store.database)) this.#remove();
      return this.#open();
    });
    this.#refusal = null;
    return position;
  }

  /** After all puts so far. */
  read<T>(work: (database: DatabaseSync) => T): T {
    this.flush();
    return this.#guarded(() => work(this.#open().database));
  }

  rebuild(why: string): null {
    this.flush();
    this.#refuseAll(
      new TenureError("BACKEND_UNAVAILABLE", `${this.#options.path} is built anew: feed it from position 0.`),
    );
    this.#remove(why);
    return null;
  }

  /** After all puts so far. Throws a TenureError, and has changed nothing then. */
  change(work: (rows: R) => void): null {
    this.flush();
    if (this.#refusal !== null) throw this.#refusal;
    return this.#guarded(() => {
      const { database, rows } = this.#open();
      database.exec("BEGIN IMMEDIATE");
      try {
        work(rows);
        database.exec("COMMIT");
      } catch (error) {
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
      return null;
    });
  }

  put(id: number, piece: P): void {
    if (this.#refusal !== null) {
      this.#replies.refused(id, this.#refusal);
      return;
    }
    if (piece.isFirst && !piece.isLast) this.flush();
    try {
      this.#store ??= this.#open();
      this.#apply(this.#store, id, piece);
    } catch (error) {
      this.#fail(error, id);
      return;
    }
    if (!piece.isLast) this.#replies.stored(id);
    if ((this.#transaction?.bytes ?? 0) >= TRANSACTION_BYTES_MAX) this.flush();
  }

  /** Commits what is complete. */
  flush(): void {
    const transaction = this.#transaction;
    if (transaction === null || transaction.isPartial) return;
    const store = this.#store!;
    try {
      store.rows.setPosition(transaction.position, transaction.line);
      store.database.exec("COMMIT");
    } catch (error) {
      this.#fail(error, null);
      return;
    }
    this.#transaction = null;
    store.position = transaction.position;
    for (const id of transaction.ids) this.#replies.stored(id);
    this.#vacuum(store);
  }

  /** The reader has found it damaged, or somebody wants it anew. */
  discard(reason: string): void {
    this.#refuseAll(
      new TenureError("DISK_DAMAGED", `${this.#options.path} was moved aside (${reason}): feed it from position 0.`),
    );
    this.#setAside("damaged", reason);
  }

  close(): void {
    this.flush();
    this.#store?.database.close();
    this.#store = null;
  }

  #apply(store: OpenStore<R>, id: number, piece: P): void {
    const committed = this.#transaction?.position ?? store.position;
    // At the same position again: the pieces of a snapshot come at 0, and the same rows once more do no harm.
    if (piece.position < committed) {
      if (!piece.isLast) return;
      if (this.#transaction === null) this.#replies.stored(id);
      else this.#transaction.ids.push(id);
      return;
    }
    if (this.#transaction === null) {
      store.database.exec("BEGIN IMMEDIATE");
      this.#transaction = { ids: [], position: store.position, line: null, bytes: 0, isPartial: false };
    }
    const transaction = this.#transaction;
    transaction.isPartial = !piece.isLast;
    transaction.bytes += piece.bytes;
    store.rows.put(piece);
    if (!piece.isLast) return;
    transaction.position = piece.position;
    transaction.line = piece.line ?? transaction.line;
    transaction.ids.push(id);
  }

  #open(): OpenStore<R> {
    if (this.#store !== null) return this.#store;
    let opened = this.#openOrMove();
    if (opened.kind === "unfit") {
      if (opened.reason === "unfinished") this.#remove();
      else this.#setAside(opened.reason, `its ${opened.reason} is another one`);
      opened = this.#openOrMove();
    }
    if (opened.kind === "unfit") throw new TenureError("DISK_DAMAGED", `${this.#options.path} can't be made anew.`);
    const { database } = opened;
    this.#store = { database, rows: this.#design.rows(database), position: readPosition(database) };
    return this.#store;
  }

  #openOrMove(): ReturnType<typeof openStore> {
    try {
      return openStore(this.#options, this.#design);
    } catch (error) {
      const fault = faultOf(error, this.#options.path);
      if (fault?.kind !== "damaged") throw error;
      this.#setAside("damaged", fault.error.message);
      return openStore(this.#options, this.#design);
    }
  }

  #guarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      const fault = faultOf(error, this.#options.path);
      if (fault === null) throw error;
      this.#refusal = fault.error;
      throw fault.error;
    }
  }

  /** A mistake of ours goes on and ends the thread: what it was about to store is rolled back with its connection. */
  #fail(error: unknown, id: number | null): void {
    const fault = faultOf(error, this.#options.path);
    if (fault === null) throw error;
    if (id !== null) this.#replies.refused(id, fault.error);
    this.#refuseAll(fault.error);
    if (fault.kind === "damaged") this.#setAside("damaged", fault.error.message);
  }

  #refuseAll(error: TenureError): void {
    this.#refusal = error;
    const ids = this.#transaction?.ids ?? [];
    this.#transaction = null;
    for (const id of ids) this.#replies.refused(id, error);
    const database = this.#store?.database;
    // SQLite has rolled back by itself after some errors, a full disk among them.
    if (database?.isTransaction === true) database.exec("ROLLBACK");
  }

  #setAside(name: string, reason: string): void {
    this.#store?.database.close();
    this.#store = null;
    this.#replies.replaced(moveAside(this.#options.path, name), reason);
  }

  #remove(why = "it was not built to its end"): void {
    this.#store?.database.close();
    this.#store = null;
    removeStore(this.#options.path);
    this.#replies.replaced(null, why);
  }

  /** Room of forgotten jobs goes back to the disk. What fails here fails again where it matters. */
  #vacuum(store: OpenStore<R>): void {
    try {
      const free = store.database.prepare("PRAGMA freelist_count").get()!["freelist_count"] as number;
      if (free > FREE_PAGES_KEPT) store.database.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES_MAX})`);
    } catch (error) {
      this.#fail(error, null);
    }
  }
}
