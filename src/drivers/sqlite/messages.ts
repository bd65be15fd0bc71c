// What the main thread and the two threads of SQLite say to each other. Each request has one answer; a thread takes
// requests in the order in which they were posted.

import type { ErrorCode } from "../../core/kit/errors.ts";
import type { ExpiredJobs, ExpiredPlace, JobLog, JobLogPage, JobQuery } from "../../ports/views.ts";

export interface StoreOptions {
  readonly path: string;
  readonly clusterId: string;
}

/** A part of a put; the last part is answered when the whole put is stored, each of the others when it is taken. */
export interface Piece {
  readonly kind: "put";
  readonly position: number;
  /** Of the event there; null: as before. */
  readonly line: string | null;
  readonly bytes: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

export interface PutPiece extends Piece {
  /** See PutHow. */
  readonly isPast: boolean;
  readonly settles: boolean;
  /** JSON of one job each. */
  readonly jobs: readonly string[];
  readonly logs: readonly JobLog[];
  readonly forgotten: readonly string[];
}

export type WriterRequest =
  /** Opens the file or makes a new one. After this, and only after this, puts are taken again if one was refused. */
  | { readonly kind: "position" }
  | { readonly kind: "line" }
  | PutPiece
  | { readonly kind: "doubt"; readonly nowMs: number }
  | { readonly kind: "trust" }
  /** What the file was built without, as JSON. */
  | { readonly kind: "holes" }
  | { readonly kind: "set-holes"; readonly ranges: string }
  /** Removes the file and starts anew. */
  | { readonly kind: "rebuild"; readonly why: string }
  /** Moves the file aside and starts anew. */
  | { readonly kind: "discard"; readonly reason: string }
  | { readonly kind: "close" };

export type ReaderRequest =
  | { readonly kind: "reached" }
  | { readonly kind: "get"; readonly jobId: string }
  | { readonly kind: "expired"; readonly nowMs: number; readonly limit: number; readonly after: ExpiredPlace | null }
  | { readonly kind: "list"; readonly query: JobQuery }
  | {
      readonly kind: "log";
      readonly jobId: string;
      readonly attempt: number;
      readonly offset: number;
      readonly bytesMax: number;
    }
  /** The file was replaced. */
  | { readonly kind: "reopen" }
  | { readonly kind: "close" };

/** A job that is JSON still, or null, and the position of the same moment. */
export interface StoredRow {
  readonly json: string | null;
  readonly position: number;
  /** JSON still. */
  readonly holes: string | null;
}

/** A page whose jobs are JSON still. */
export interface StoredPage {
  readonly jobs: readonly string[];
  readonly next: string | null;
  readonly position: number;
}

export interface Answers {
  readonly position: number;
  readonly line: string | null;
  readonly put: null;
  readonly doubt: null;
  readonly trust: null;
  readonly holes: string | null;
  readonly "set-holes": null;
  readonly rebuild: null;
  readonly discard: null;
  readonly reached: number;
  readonly get: StoredRow;
  readonly expired: ExpiredJobs;
  readonly list: StoredPage;
  readonly log: JobLogPage;
  readonly reopen: null;
  readonly close: null;
}

export interface Posted<R> {
  readonly id: number;
  readonly request: R;
}

export type ThreadMessage =
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  | { readonly kind: "refusal"; readonly id: number; readonly code: ErrorCode; readonly message: string }
  /** The file is another one now; the old one lies at `aside`, or was not worth keeping. */
  | { readonly kind: "replaced"; readonly aside: string | null; readonly reason: string };
