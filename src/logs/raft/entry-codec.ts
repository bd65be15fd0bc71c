// How the log's entries and snapshots are written down, version 1:
//
//   entry     magic u8, version u8, kind u8 (1 open, 2 append), epoch, after
//             append: count u32, for each record its bytes
//   snapshot  magic u8, version u8, position, epoch, the fold's snapshot
//
// Bytes that are no such entry are `malformed`. Those of a later version are distinguished from them: whoever can't read an
// entry that others apply has another state from there on, and must not go on.

import { TenureError } from "../../core/kit/errors.ts";
import { ByteReader, ByteWriter, decoded, DecodeError } from "../../core/kit/bytes.ts";
import { joined, partsOf, type Pieces, readPart, wholeOf } from "../../core/kit/pieces.ts";
import { ENTRY_BYTES_MAX, SNAPSHOT_BYTES_MAX } from "../../core/kit/limits.ts";
import type { LogHead } from "../../ports/log.ts";
import { BATCH_RECORDS_MAX } from "../limits.ts";

const LOG_FORMAT_VERSION = 1;
const ENTRY_MAGIC = 0x4c;
const SNAPSHOT_MAGIC = 0x6c;
const KIND_OPEN = 1;
const KIND_APPEND = 2;
const OPEN_BYTES = 19;
const APPEND_HEADER_BYTES = 23;
const RECORD_HEADER_BYTES = 4;
const SNAPSHOT_HEADER_BYTES = 22;

export type LogEntry =
  /** `after`: where the head of whoever opens it is, so that a node whose head is elsewhere finds out. */
  | { readonly kind: "open"; readonly epoch: number; readonly after: number }
  | {
      readonly kind: "append";
      readonly epoch: number;
      readonly after: number;
      readonly batch: readonly Uint8Array[];
    };

export type DecodedEntry =
  | LogEntry
  | { readonly kind: "malformed" }
  | { readonly kind: "later-version"; readonly version: number };

export function appendBytes(batch: readonly Uint8Array[]): number {
  return batch.reduce((sum, data) => sum + RECORD_HEADER_BYTES + data.length, APPEND_HEADER_BYTES);
}

export function encodeEntry(entry: LogEntry): Uint8Array {
  const writer = new ByteWriter(entry.kind === "open" ? OPEN_BYTES : appendBytes(entry.batch));
  writer.u8(ENTRY_MAGIC);
  writer.u8(LOG_FORMAT_VERSION);
  writer.u8(entry.kind === "open" ? KIND_OPEN : KIND_APPEND);
  writer.uint53(entry.epoch);
  writer.uint53(entry.after);
  if (entry.kind === "append") {
    writer.u32(entry.batch.length);
    for (const data of entry.batch) writer.bytes(data);
  }
  return writer.finish();
}

/** The records are views of `bytes`. */
export function decodeEntry(bytes: Uint8Array): DecodedEntry {
  return decoded(
    () => read(new ByteReader(bytes)),
    () => ({ kind: "malformed" }),
  );
}

function read(reader: ByteReader): DecodedEntry {
  if (reader.u8() !== ENTRY_MAGIC) return { kind: "malformed" };
  const version = reader.u8();
  if (version > LOG_FORMAT_VERSION) return { kind: "later-version", version };
  const kind = reader.u8();
  const epoch = reader.uint53();
  if (version !== LOG_FORMAT_VERSION || (kind !== KIND_OPEN && kind !== KIND_APPEND)) return { kind: "malformed" };
  const after = reader.uint53();
  if (kind === KIND_OPEN) return reader.remainingBytes === 0 ? { kind: "open", epoch, after } : { kind: "malformed" };
  const count = reader.u32();
  if (count === 0 || count > BATCH_RECORDS_MAX) return { kind: "malformed" };
  const batch: Uint8Array[] = [];
  for (let at = 0; at < count; at++) batch.push(reader.bytes(ENTRY_BYTES_MAX));
  return reader.remainingBytes === 0 ? { kind: "append", epoch, after, batch } : { kind: "malformed" };
}

export interface LogSnapshot {
  readonly head: LogHead;
  readonly fold: Uint8Array;
}

export function encodeSnapshot({ head, fold }: LogSnapshot): Uint8Array {
  return wholeOf(snapshotPieces(head, fold));
}

/** The same in pieces. */
export function snapshotPieces(head: LogHead, fold: Uint8Array | Pieces): Pieces {
  const writer = new ByteWriter(SNAPSHOT_HEADER_BYTES);
  writer.u8(SNAPSHOT_MAGIC);
  writer.u8(LOG_FORMAT_VERSION);
  writer.uint53(head.position);
  writer.uint53(head.epoch);
  return joined(writer.finish(), partsOf([fold]));
}

/** Null for the empty snapshot with which a cluster is founded. */
export function decodeSnapshot(bytes: Uint8Array): LogSnapshot | null {
  if (bytes.length === 0) return null;
  try {
    return readSnapshot(new ByteReader(bytes));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new TenureError("SNAPSHOT_INVALID", `the log's part of the snapshot can't be read: ${error.message}`, {
      cause: error,
    });
  }
}

function readSnapshot(reader: ByteReader): LogSnapshot {
  if (reader.u8() !== SNAPSHOT_MAGIC) throw new DecodeError("malformed", "it is no snapshot of a log");
  const version = reader.u8();
  if (version > LOG_FORMAT_VERSION) throw laterVersion("a snapshot", version);
  if (version !== LOG_FORMAT_VERSION) throw new DecodeError("malformed", `version ${version}`);
  const head = { position: reader.uint53(), epoch: reader.uint53() };
  const fold = readPart(reader, SNAPSHOT_BYTES_MAX);
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes too many`);
  return { head, fold };
}

export function laterVersion(what: string, version: number): TenureError {
  return new TenureError(
    "FORMAT_UNSUPPORTED",
    `${what} of the log has format ${version}, and this node reads ${LOG_FORMAT_VERSION} at most. It stops, because others have applied it: start the newer version of Tenure here too.`,
  );
}

/** The same snapshot around another state: for tools that change it while no node runs. */
export function withFoldSnapshot(
  snapshot: Uint8Array,
  change: (fold: Uint8Array, head: LogHead) => Uint8Array,
): Uint8Array {
  const { head, fold } = decodeSnapshot(snapshot) ?? { head: { position: 0, epoch: 0 }, fold: new Uint8Array(0) };
  return encodeSnapshot({ head, fold: change(fold, head) });
}
