// The state of all scopes as bytes, version 1:
//
//   magic u8, version u8, generation, count u32, then each scope as bytes:
//   scope, epoch, held (session, identity, ttl, acquired at, resign requested, metadata), history
//
// First those that nobody holds, in the order in which they became free, which is part of the state; then those that are
// held, by name. So equal states are equal bytes, also where one was restored and the other applied record by record.
//
// A snapshot is taken on the consensus thread, which must not stop for long (design D10, trap 56c): the bytes of a scope are
// made once for each value of it and kept beside it (`prepareScope`), so taking one costs little more than copying. With all
// of it to be made, 5,000 scopes with whole histories took 85 ms; with all of it at hand, 5 ms.

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
import { SCOPE_SESSION_BYTES_MAX } from "./limits.ts";
import { EPOCHS_PER_GENERATION, type Hold, type ScopeState } from "./scope-state.ts";

const SCOPES_SNAPSHOT_VERSION = 1;
/** Above it an epoch would pass 2^53-1. */
export const GENERATION_MAX = 2 ** 21 - 1;
const MAGIC = 0x54;
const HEADER_BYTES = 14;
const SCOPE_BYTES = 512;
const REASONS = ["acquired", "resigned", "expired", "forced"] as const;

export interface ScopesSnapshot {
  readonly generation: number;
  /** In the order of the encoding. */
  readonly scopes: readonly ScopeState[];
}

const encoded = new WeakMap<ScopeState, Uint8Array>();

export function encodeScopes({ generation, scopes }: ScopesSnapshot): Uint8Array {
  const parts = scopes.map(bytesOf);
  const writer = new ByteWriter(parts.reduce((sum, { length }) => sum + 4 + length, HEADER_BYTES));
  writer.u8(MAGIC);
  writer.u8(SCOPES_SNAPSHOT_VERSION);
  writer.uint53(generation);
  writer.u32(parts.length);
  for (const part of parts) writer.bytes(part);
  return writer.finish();
}

/** Throws SNAPSHOT_INVALID or FORMAT_UNSUPPORTED. Of no bytes at all: the state of a new cluster. */
export function decodeScopes(bytes: Uint8Array): ScopesSnapshot {
  if (bytes.length === 0) return { generation: 0, scopes: [] };
  try {
    return read(new ByteReader(bytes));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new TenureError("SNAPSHOT_INVALID", `the scopes' part of the snapshot can't be read: ${error.message}`, {
      cause: error,
    });
  }
}

/**
 * The same scopes in a higher generation, for a cluster that is restored or recovered: what was granted after this snapshot
 * was taken is not in it, and its epochs must not be handed out again.
 */
export function withGeneration(snapshotBytes: Uint8Array, generation: number): Uint8Array {
  const { generation: before, scopes } = decodeScopes(snapshotBytes);
  // A log of more than 2^32 records has reached into the next generation's epochs.
  const newest = scopes.reduce((most, { epoch }) => Math.max(most, epoch), 0);
  const low = Math.max(before, Math.floor(newest / EPOCHS_PER_GENERATION));
  if (!Number.isSafeInteger(generation) || generation <= low || generation > GENERATION_MAX) {
    throw new TenureError(
      "BAD_REQUEST",
      `generation ${generation} can't follow ${low}: it must be higher, and at most ${GENERATION_MAX}`,
    );
  }
  return encodeScopes({ generation, scopes });
}

export function generationOf(snapshotBytes: Uint8Array): number {
  return decodeScopes(snapshotBytes).generation;
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
  if (reader.u8() !== MAGIC) throw new DecodeError("malformed", "it is no snapshot of scopes");
  const version = reader.u8();
  if (version > SCOPES_SNAPSHOT_VERSION) {
    throw new TenureError(
      "FORMAT_UNSUPPORTED",
      `a snapshot of scopes has format ${version}, and this node reads ${SCOPES_SNAPSHOT_VERSION} at most; start the newer version of Tenure here too`,
    );
  }
  if (version !== SCOPES_SNAPSHOT_VERSION) throw new DecodeError("malformed", `version ${version}`);
  const generation = reader.uint53();
  if (generation > GENERATION_MAX) throw new DecodeError("wild", `generation ${generation}`);
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
  return { generation, scopes };
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

function readHold(reader: ByteReader, epoch: number): Hold {
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
