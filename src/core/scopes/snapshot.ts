// The state of all scopes as bytes:
//
//   magic u8, version u8, version 1: generation, version 2: base of the epochs, count u32, then each scope as bytes:
//   scope, epoch, held (session, identity, ttl, acquired at, resign requested, metadata), history
//
// First those that nobody holds, in the order in which they became free, which is part of the state; then those that are
// held, by name. So equal states are equal bytes, also where one was restored and the other applied record by record.
//
// A snapshot is taken on the consensus thread, which must not stop for long (design D10, trap 56c): the bytes of a scope are
// made once for each value of it and kept next to it (`prepareScope`), so taking one costs little more than copying. With all
// of it to be made, 5,000 scopes with whole histories took 85 ms; with all of it at hand, 5 ms.

import { assert } from "../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { TenureError } from "../kit/errors.ts";
import {
  SCOPE_BYTES_MAX,
  SCOPE_HISTORY_MAX,
  SCOPE_IDENTITY_BYTES_MAX,
  SCOPES_MAX,
  SNAPSHOT_BYTES_MAX,
} from "../kit/limits.ts";
import type { ScopeTransition } from "../../ports/scopes.ts";
import { readMetadata, writeMetadata } from "./events.ts";
import { GENERATION_MAX, SCOPE_SESSION_BYTES_MAX } from "./limits.ts";
import { EPOCHS_PER_GENERATION, type HoldState, type ScopeState } from "./scope-state.ts";

/** Where epochs are counted from a place inside of a generation: of a cluster that was recovered or restored. */
const SCOPES_SNAPSHOT_VERSION = 2;
/** Where they are counted from its begin. Older releases read this one alone. */
const SCOPES_SNAPSHOT_VERSION_AT_BEGIN = 1;
export const SCOPES_SNAPSHOT_MAGIC = 0x54;
const HEADER_BYTES = 14;
const SCOPE_BYTES = 512;
const REASONS = ["acquired", "resigned", "expired", "forced"] as const;

export interface ScopesSnapshot {
  readonly epochBase: number;
  /** In the order of the encoding. */
  readonly scopes: readonly ScopeState[];
}

const encoded = new WeakMap<ScopeState, Uint8Array>();

export function encodeScopes({ epochBase, scopes }: ScopesSnapshot): Uint8Array {
  const parts = scopes.map(bytesOf);
  const writer = new ByteWriter(parts.reduce((sum, { length }) => sum + 4 + length, HEADER_BYTES));
  writer.u8(SCOPES_SNAPSHOT_MAGIC);
  const isAtBegin = epochBase % EPOCHS_PER_GENERATION === 0;
  writer.u8(isAtBegin ? SCOPES_SNAPSHOT_VERSION_AT_BEGIN : SCOPES_SNAPSHOT_VERSION);
  writer.uint53(isAtBegin ? epochBase / EPOCHS_PER_GENERATION : epochBase);
  writer.u32(parts.length);
  for (const part of parts) writer.bytes(part);
  return writer.finish();
}

/** Throws SNAPSHOT_INVALID or FORMAT_UNSUPPORTED. Of no bytes at all: the state of a new cluster. */
export function decodeScopes(bytes: Uint8Array): ScopesSnapshot {
  if (bytes.length === 0) return { epochBase: 0, scopes: [] };
  try {
    return read(new ByteReader(bytes));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new TenureError("SNAPSHOT_INVALID", `the scopes' part of the snapshot can't be read: ${error.message}`, {
      cause: error,
    });
  }
}

export interface NewLine {
  /** At least; a higher one where the state needs it. */
  readonly generation: number;
  /** Where in that generation epochs go on. */
  readonly place: number;
  /** Of the last record in the log. */
  readonly position: number;
  /** That nobody has. */
  readonly session: string;
}

/**
 * The same scopes for a cluster that is restored or recovered. What was granted after this snapshot was taken is not in it, and
 * its epochs must not be granted again: the new ones are at least one whole generation above the last that it knows, which is more
 * records than a cluster writes.
 *
 * Nobody can renew a hold of before: others may have been granted the scope since. It is kept until its lease is over, so
 * that whoever still trusts in it has stopped by then; its holder campaigns again, and gets a higher epoch.
 */
export function withNewScopesLine(
  snapshotBytes: Uint8Array,
  { generation, place, position, session }: NewLine,
): Uint8Array {
  assert(place >= 0 && place < EPOCHS_PER_GENERATION, "a place is one of its generation's", () => `${place}`);
  const { epochBase: before, scopes } = decodeScopes(snapshotBytes);
  const newest = scopes.reduce((most, { epoch }) => Math.max(most, epoch), before + position);
  const next = Math.max(Math.floor(newest / EPOCHS_PER_GENERATION) + 2, generation);
  if (!Number.isSafeInteger(generation) || next >= GENERATION_MAX) {
    throw new TenureError(
      "BAD_REQUEST",
      `generation ${next} of epochs can't be used: it must be lower than ${GENERATION_MAX}. Is the clock of this machine right?`,
    );
  }
  const epochBase = next * EPOCHS_PER_GENERATION + place - position;
  const ended = scopes.map((state) => (state.hold === null ? state : { ...state, hold: { ...state.hold, session } }));
  return encodeScopes({ epochBase, scopes: ended });
}

/** Makes the bytes of this value now, so that the next snapshot need not. */
export function prepareScope(state: ScopeState): void {
  bytesOf(state);
}

function bytesOf(state: ScopeState): Uint8Array {
  let bytes = encoded.get(state);
  if (bytes === undefined) {
    bytes = encodeScope(state);
    encoded.set(state, bytes);
  }
  return bytes;
}

function encodeScope({ scope, epoch, hold, history }: ScopeState): Uint8Array {
  const writer = new ByteWriter(SCOPE_BYTES);
  writer.text(scope);
  writer.uint53(epoch);
  writer.bool(hold !== null);
  if (hold !== null) {
    writer.text(hold.session);
    writer.text(hold.identity);
    writer.uint53(hold.ttlMs);
    writer.uint53(hold.acquiredAtMs);
    writer.bool(hold.resignRequested);
    writeMetadata(writer, hold.metadata);
  }
  writer.u8(history.length);
  for (const { atMs, epoch: of, identity, reason, heldMs } of history) {
    writer.uint53(atMs);
    writer.uint53(of);
    writer.text(identity);
    writer.u8(REASONS.indexOf(reason));
    writer.uint53(heldMs ?? 0);
  }
  return writer.finish();
}

function read(reader: ByteReader): ScopesSnapshot {
  if (reader.u8() !== SCOPES_SNAPSHOT_MAGIC) throw new DecodeError("malformed", "it is no snapshot of scopes");
  const version = reader.u8();
  if (version > SCOPES_SNAPSHOT_VERSION) {
    throw new TenureError(
      "FORMAT_UNSUPPORTED",
      `a snapshot of scopes has format ${version}, and this node reads ${SCOPES_SNAPSHOT_VERSION} at most; start the newer version of Tenure here too`,
    );
  }
  if (version < SCOPES_SNAPSHOT_VERSION_AT_BEGIN) throw new DecodeError("malformed", `version ${version}`);
  const base = reader.uint53();
  const epochBase = version === SCOPES_SNAPSHOT_VERSION_AT_BEGIN ? base * EPOCHS_PER_GENERATION : base;
  if (epochBase / EPOCHS_PER_GENERATION > GENERATION_MAX) throw new DecodeError("wild", `a base of epochs of ${base}`);
  const count = reader.u32();
  if (count > SCOPES_MAX) throw new DecodeError("malformed", `${count} scopes where ${SCOPES_MAX} are allowed`);
  const scopes: ScopeState[] = [];
  for (let at = 0; at < count; at++) {
    const part = reader.bytes(SNAPSHOT_BYTES_MAX);
    const state = readScope(new ByteReader(part));
    encoded.set(state, part);
    scopes.push(state);
  }
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes too many`);
  return { epochBase, scopes };
}

function readScope(reader: ByteReader): ScopeState {
  const scope = reader.text(SCOPE_BYTES_MAX);
  const epoch = reader.uint53();
  const hold = reader.bool() ? readHold(reader, epoch) : null;
  const count = reader.u8();
  if (count > SCOPE_HISTORY_MAX) throw new DecodeError("malformed", `${count} transitions of one scope`);
  const history = Array.from({ length: count }, () => readTransition(reader));
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes behind a scope`);
  return { scope, epoch, hold, history };
}

function readHold(reader: ByteReader, epoch: number): HoldState {
  const session = reader.text(SCOPE_SESSION_BYTES_MAX);
  const identity = reader.text(SCOPE_IDENTITY_BYTES_MAX);
  const ttlMs = reader.uint53();
  const acquiredAtMs = reader.uint53();
  const resignRequested = reader.bool();
  return { epoch, session, identity, ttlMs, acquiredAtMs, resignRequested, metadata: readMetadata(reader) };
}

function readTransition(reader: ByteReader): ScopeTransition {
  const atMs = reader.uint53();
  const epoch = reader.uint53();
  const identity = reader.text(SCOPE_IDENTITY_BYTES_MAX);
  const reason = REASONS[reader.u8()];
  if (reason === undefined) throw new DecodeError("malformed", "a transition without a reason");
  const heldMs = reader.uint53();
  return { atMs, epoch, identity, reason, heldMs: reason === "acquired" ? null : heldMs };
}
