// Records of the state log: what happened to scopes, values and transactions, all of it at one place in the log, or nothing of it.
//
//   version 1   one event of a scope (core/scopes/events.ts), which all releases read
//   version 2   magic u8, version u8, count u8, for each change: part u8, its bytes
//
// A release that does not know version 2 stops at such a record, instead of having another state than the others: it is written only when every
// member reads it.

import { assert } from "../kit/assert.ts";
import { ByteReader, ByteWriter, decoded, DecodeError } from "../kit/bytes.ts";
import { ENTRY_BYTES_MAX } from "../kit/limits.ts";
import { decodeEvent, encodeEvent, type ScopeEvent } from "../scopes/index.ts";
import { readTxnEvent, type TxnEvent, writeTxnEvent } from "../txn/index.ts";
import { readValueEvent, type ValueEvent, writeValueEvent } from "../values/index.ts";
import { CHANGES_PER_RECORD_MAX } from "./limits.ts";

/** Of scopes, of values and of transactions: their names of what happened do not meet. */
export type StateChange = ScopeEvent | ValueEvent | TxnEvent;

/** At most one change of each scope, of each value and of each transaction. */
export type StateRecord = readonly StateChange[];

export type DecodedRecord =
  | { readonly kind: "changes"; readonly changes: StateRecord }
  | { readonly kind: "malformed" }
  | { readonly kind: "later-version"; readonly version: number };

export const RECORD_VERSION = 2;
const MAGIC = 0x53;
const PART_SCOPE = 0;
const PART_VALUE = 1;
const PART_TXN = 2;
const RECORD_BYTES = 512;

export function isOfValue(change: StateChange): change is ValueEvent {
  return change.kind === "value-put" || change.kind === "value-deleted";
}

export function isOfTxn(change: StateChange): change is TxnEvent {
  return change.kind.startsWith("txn-");
}

export function isOfScope(change: StateChange): change is ScopeEvent {
  return !isOfValue(change) && !isOfTxn(change);
}

export function encodeRecord(changes: StateRecord): Uint8Array {
  assert(changes.length > 0 && changes.length <= CHANGES_PER_RECORD_MAX, "a record has changes, and not too many");
  const [first] = changes as [StateChange];
  if (changes.length === 1 && isOfScope(first)) return encodeEvent(first);
  const writer = new ByteWriter(RECORD_BYTES);
  writer.u8(MAGIC);
  writer.u8(RECORD_VERSION);
  writer.u8(changes.length);
  for (const change of changes) writeChange(writer, change);
  return writer.finish();
}

function writeChange(writer: ByteWriter, change: StateChange): void {
  if (isOfValue(change)) {
    writer.u8(PART_VALUE);
    writeValueEvent(writer, change);
  } else if (isOfTxn(change)) {
    writer.u8(PART_TXN);
    writeTxnEvent(writer, change);
  } else {
    writer.u8(PART_SCOPE);
    writer.bytes(encodeEvent(change));
  }
}

export function decodeRecord(bytes: Uint8Array): DecodedRecord {
  return decoded(
    () => read(bytes),
    () => ({ kind: "malformed" }),
  );
}

function read(bytes: Uint8Array): DecodedRecord {
  const reader = new ByteReader(bytes);
  if (reader.u8() !== MAGIC) return { kind: "malformed" };
  const version = reader.u8();
  if (version > RECORD_VERSION) return { kind: "later-version", version };
  if (version < RECORD_VERSION) {
    const event = decodeEvent(bytes);
    return event.kind === "malformed" || event.kind === "later-version"
      ? { kind: "malformed" }
      : { kind: "changes", changes: [event] };
  }
  const count = reader.u8();
  if (count === 0 || count > CHANGES_PER_RECORD_MAX) throw new DecodeError("malformed", `${count} changes`);
  const changes: StateChange[] = [];
  for (let at = 0; at < count; at++) {
    const change = readChange(reader);
    // Others have applied it: whoever passed over it would have another state.
    if (change === null) return { kind: "later-version", version: RECORD_VERSION + 1 };
    changes.push(change);
  }
  return reader.remainingBytes === 0 ? { kind: "changes", changes } : { kind: "malformed" };
}

/** Null: of a kind that this release does not know. */
function readChange(reader: ByteReader): StateChange | null {
  const part = reader.u8();
  if (part === PART_VALUE) return readValueEvent(reader);
  if (part === PART_TXN) return readTxnEvent(reader);
  if (part !== PART_SCOPE) return null;
  const event = decodeEvent(reader.bytes(ENTRY_BYTES_MAX));
  if (event.kind === "later-version") return null;
  if (event.kind === "malformed") throw new DecodeError("malformed", "no event of a scope");
  return event;
}
