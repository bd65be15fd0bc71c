// Transactions as bytes: an event as a part of a record of the log (core/state/records.ts), a state as a part of a snapshot. One encoding for one
// value. Numbers are eight bytes, ids 16, hashes 32; what may be absent has a byte in front, a list its length.
//
//   staged     0, id, home, by, at, operations
//   prepared   1, header, at, fence, reserved, operations
//   decided    2, header, at, outcome u8, fence?, reason?, results, outbox
//   delivered  3, id, at
//   settled    4, id, at, by?
//   fence      5, fence, at
//   dropped    6, id, at
//
//   header     id, home, participants, digest, timeout, by
//   state      phase u8, place, at, then as the event that made it; committed: who has reported

import { assert, assertNever } from "../../kit/assert.ts";
import { type ByteReader, type ByteWriter, DecodeError } from "../../kit/bytes.ts";
import type { ErrorCode } from "../../kit/errors.ts";
import {
  CLUSTER_ID_BYTES_MAX,
  JOB_ID_BYTES_MAX,
  PEER_KEY_BYTES_MAX,
  TXN_BY_BYTES_MAX,
  TXN_MESSAGE_BYTES_MAX,
  TXN_OPERATIONS_MAX,
  TXN_PARTICIPANTS_MAX,
} from "../../kit/limits.ts";
import type { TxnDecidedEvent, TxnEvent, TxnPreparedEvent, TxnStagedEvent } from "../events.ts";
import {
  LaterForm,
  readHash,
  readId,
  readIsland,
  readIslands,
  readList,
  readOptional,
  writeHash,
  writeIsland,
  writeId,
  writeList,
  writeOptional,
} from "./fields.ts";
import { TXN_CODE_BYTES_MAX } from "../limits.ts";
import type { TcFence, TxnHeader, TxnOutboxEntry, TxnReason, TxnReserved, TxnResult, TxnState } from "../model.ts";
import { readOperation, writeOperation } from "./operation.ts";
import { readSpec, specBytes } from "./spec.ts";
import { NOTHING_RESERVED } from "../txn-state.ts";

const KINDS = [
  "txn-staged",
  "txn-prepared",
  "txn-decided",
  "txn-delivered",
  "txn-settled",
  "txn-fence",
  "txn-dropped",
] as const;
const PHASES = ["staged", "prepared", "committed", "rolled-back"] as const;
const OUTCOMES = ["committed", "rolled-back"] as const;
const HAS_VERSION = 1;
const HAS_EPOCH = 2;
const HAS_JOB = 4;
const HAS_ALL = 7;

// ---- events ------------------------------------------------------------------------------------------

export function writeTxnEvent(writer: ByteWriter, event: TxnEvent): void {
  writer.u8(KINDS.indexOf(event.kind));
  switch (event.kind) {
    case "txn-staged":
      writeStaged(writer, event.header);
      writer.uint53(event.atMs);
      return writeList(writer, event.operations, (one) => writeOperation(writer, one));
    case "txn-prepared":
      writeHeader(writer, event.header);
      writer.uint53(event.atMs);
      writeFence(writer, event.fence);
      writeReserved(writer, event.reserved);
      return writeList(writer, event.operations, (one) => writeOperation(writer, one));
    case "txn-decided":
      return writeDecided(writer, event);
    case "txn-delivered":
    case "txn-dropped":
      writeId(writer, event.id);
      return writer.uint53(event.atMs);
    case "txn-settled":
      writeId(writer, event.id);
      writer.uint53(event.atMs);
      return writeOptional(writer, event.by, (by) => writeIsland(writer, by));
    case "txn-fence":
      writeFence(writer, event.fence);
      return writer.uint53(event.atMs);
    default:
      return assertNever(event, "event of a transaction");
  }
}

/** Null: of a form that this release does not know. */
export function readTxnEvent(reader: ByteReader): TxnEvent | null {
  try {
    return readEvent(reader);
  } catch (error) {
    if (error instanceof LaterForm) return null;
    throw error;
  }
}

function readEvent(reader: ByteReader): TxnEvent {
  const kind = KINDS[reader.u8()];
  switch (kind) {
    case "txn-staged":
      return readStagedEvent(reader);
    case "txn-prepared":
      return readPreparedEvent(reader);
    case "txn-decided":
      return readDecidedEvent(reader);
    case "txn-delivered":
    case "txn-dropped":
      return { kind, id: readId(reader), atMs: reader.uint53() };
    case "txn-settled":
      return { kind, id: readId(reader), atMs: reader.uint53(), by: readOptional(reader, () => readIsland(reader)) };
    case "txn-fence":
      return { kind, fence: readFence(reader), atMs: reader.uint53() };
    case undefined:
      throw new LaterForm();
    default:
      return assertNever(kind, "event of a transaction");
  }
}

function readStagedEvent(reader: ByteReader): TxnStagedEvent {
  const header = readStaged(reader);
  const atMs = reader.uint53();
  return { kind: "txn-staged", header, atMs, operations: readOperations(reader) };
}

function readPreparedEvent(reader: ByteReader): TxnPreparedEvent {
  const header = readHeader(reader);
  const atMs = reader.uint53();
  const fence = readFence(reader);
  const reserved = readReserved(reader);
  return { kind: "txn-prepared", header, atMs, fence, reserved, operations: readOperations(reader) };
}

function writeDecided(writer: ByteWriter, event: TxnDecidedEvent): void {
  writeHeader(writer, event.header);
  writer.uint53(event.atMs);
  writer.u8(OUTCOMES.indexOf(event.outcome));
  writeOptional(writer, event.fence, (fence) => writeFence(writer, fence));
  writeReason(writer, event.reason);
  writeResults(writer, event.results);
  writeOutbox(writer, event.outbox);
}

function readDecidedEvent(reader: ByteReader): TxnDecidedEvent {
  const header = readHeader(reader);
  const atMs = reader.uint53();
  const outcome = OUTCOMES[reader.u8()];
  if (outcome === undefined) throw new LaterForm();
  const fence = readOptional(reader, () => readFence(reader));
  const reason = readReason(reader);
  const results = readResults(reader);
  return { kind: "txn-decided", header, atMs, outcome, fence, reason, results, outbox: readOutbox(reader) };
}

// ---- states ------------------------------------------------------------------------------------------

/** Of one that is needed still. */
export function writeLive(writer: ByteWriter, state: TxnState): void {
  writer.u8(PHASES.indexOf(state.phase));
  writer.uint53(state.place);
  writer.uint53(state.atMs);
  switch (state.phase) {
    case "staged":
      writeStaged(writer, state.header);
      return writeList(writer, state.operations, (one) => writeOperation(writer, one));
    case "prepared":
      writeHeader(writer, state.header);
      writeReserved(writer, state.reserved);
      return writeList(writer, state.operations, (one) => writeOperation(writer, one));
    case "committed":
      writeHeader(writer, state.header);
      writeReason(writer, state.reason);
      writeResults(writer, state.results);
      writeOutbox(writer, state.outbox);
      return writeList(writer, state.settledBy, (one) => writeIsland(writer, one));
    case "rolled-back":
      return assert(false, "what is rolled back is settled");
    default:
      return assertNever(state.phase, "phase of a transaction");
  }
}

export function readLive(reader: ByteReader): TxnState {
  const phase = PHASES[reader.u8()];
  const place = reader.uint53();
  const atMs = reader.uint53();
  switch (phase) {
    case "staged": {
      const header = readStaged(reader);
      return { ...EMPTY, phase, place, atMs, header, operations: readOperations(reader) };
    }
    case "prepared": {
      const header = readHeader(reader);
      const reserved = readReserved(reader);
      return { ...EMPTY, phase, place, atMs, header, reserved, operations: readOperations(reader) };
    }
    case "committed": {
      const header = readHeader(reader);
      const reason = readReason(reader);
      const results = readResults(reader);
      const outbox = readOutbox(reader);
      const settledBy = readList(reader, TXN_PARTICIPANTS_MAX, () => readIsland(reader));
      return { ...EMPTY, phase, place, atMs, header, reason, results, outbox, settledBy };
    }
    default:
      throw new DecodeError("malformed", "a transaction in no phase, or rolled back and needed still");
  }
}

/** Of one that nobody needs any more: when it was so, and its id, are in front. */
export function writeSettled(writer: ByteWriter, state: TxnState, settledAtMs: number): void {
  writer.uint53(settledAtMs);
  writeHeader(writer, state.header);
  writer.u8(PHASES.indexOf(state.phase));
  writer.uint53(state.place);
  writer.uint53(state.atMs);
  writeReason(writer, state.reason);
  writeResults(writer, state.results);
}

export function readSettled(reader: ByteReader): TxnState {
  reader.uint53();
  const header = readHeader(reader);
  const phase = PHASES[reader.u8()];
  if (phase !== "committed" && phase !== "rolled-back") throw new DecodeError("malformed", "settled, and not decided");
  const place = reader.uint53();
  const atMs = reader.uint53();
  const reason = readReason(reader);
  return { ...EMPTY, phase, place, atMs, header, reason, results: readResults(reader), isSettled: true };
}

const EMPTY = {
  operations: [],
  reserved: NOTHING_RESERVED,
  results: [],
  outbox: [],
  reason: null,
  settledBy: [],
  isSettled: false,
} as const;

// ---- parts -------------------------------------------------------------------------------------------

function writeHeader(writer: ByteWriter, { id, home, participants, digest, timeoutMs, by }: TxnHeader): void {
  writeId(writer, id);
  writeIsland(writer, home);
  writeList(writer, participants, (one) => writeIsland(writer, one));
  writeHash(writer, digest);
  writer.uint53(timeoutMs);
  writer.text(by);
}

function readHeader(reader: ByteReader): TxnHeader {
  const id = readId(reader);
  const home = readIsland(reader);
  const participants = readIslands(reader, TXN_PARTICIPANTS_MAX);
  const digest = readHash(reader);
  const timeoutMs = reader.uint53();
  return { id, home, participants, digest, timeoutMs, by: reader.text(TXN_BY_BYTES_MAX) };
}

function writeStaged(writer: ByteWriter, { id, home, by }: TxnHeader): void {
  writeId(writer, id);
  writeIsland(writer, home);
  writer.text(by);
}

function readStaged(reader: ByteReader): TxnHeader {
  const id = readId(reader);
  const home = readIsland(reader);
  return { id, home, participants: [], digest: "", timeoutMs: 0, by: reader.text(TXN_BY_BYTES_MAX) };
}

export function writeFence(writer: ByteWriter, { clusterId, term, recoveredBy }: TcFence): void {
  writer.text(clusterId);
  writer.uint53(term);
  writeOptional(writer, recoveredBy, (by) => writer.text(by));
}

export function readFence(reader: ByteReader): TcFence {
  const clusterId = reader.text(CLUSTER_ID_BYTES_MAX);
  const term = reader.uint53();
  return { clusterId, term, recoveredBy: readOptional(reader, () => reader.text(PEER_KEY_BYTES_MAX)) };
}

function writeReserved(writer: ByteWriter, { values, bytes, scopes }: TxnReserved): void {
  writer.uint53(values);
  writer.uint53(bytes);
  writer.uint53(scopes);
}

function readReserved(reader: ByteReader): TxnReserved {
  return { values: reader.uint53(), bytes: reader.uint53(), scopes: reader.uint53() };
}

function readOperations(reader: ByteReader): TxnState["operations"] {
  return readList(reader, TXN_OPERATIONS_MAX, () => readOperation(reader));
}

function writeReason(writer: ByteWriter, reason: TxnReason | null): void {
  writeOptional(writer, reason, ({ code, message, backendHash }) => {
    writer.text(code);
    writer.text(message);
    writeOptional(writer, backendHash, (hash) => writeIsland(writer, hash));
  });
}

/** A later release may have codes that this one does not know; it is kept as it is. */
function readReason(reader: ByteReader): TxnReason | null {
  return readOptional(reader, () => {
    const code = reader.text(TXN_CODE_BYTES_MAX) as ErrorCode;
    const message = reader.text(TXN_MESSAGE_BYTES_MAX);
    return { code, message, backendHash: readOptional(reader, () => readIsland(reader)) };
  });
}

function writeResults(writer: ByteWriter, results: readonly TxnResult[]): void {
  writeList(writer, results, ({ version, epoch, jobId }) => {
    const has =
      (version === null ? 0 : HAS_VERSION) | (epoch === null ? 0 : HAS_EPOCH) | (jobId === null ? 0 : HAS_JOB);
    writer.u8(has);
    if (version !== null) writer.uint53(version);
    if (epoch !== null) writer.uint53(epoch);
    if (jobId !== null) writer.text(jobId);
  });
}

function readResults(reader: ByteReader): readonly TxnResult[] {
  return readList(reader, TXN_OPERATIONS_MAX, () => {
    const has = reader.u8();
    if (has > HAS_ALL) throw new LaterForm();
    const version = (has & HAS_VERSION) === 0 ? null : reader.uint53();
    const epoch = (has & HAS_EPOCH) === 0 ? null : reader.uint53();
    return { version, epoch, jobId: (has & HAS_JOB) === 0 ? null : reader.text(JOB_ID_BYTES_MAX) };
  });
}

function writeOutbox(writer: ByteWriter, outbox: readonly TxnOutboxEntry[]): void {
  writeList(writer, outbox, ({ operation, jobId, spec }) => {
    writer.u8(operation);
    writer.text(jobId);
    writer.bytes(specBytes(spec));
  });
}

function readOutbox(reader: ByteReader): readonly TxnOutboxEntry[] {
  const outbox = readList(reader, TXN_OPERATIONS_MAX, () => ({
    operation: reader.u8(),
    jobId: reader.text(JOB_ID_BYTES_MAX),
    spec: readSpec(reader),
  }));
  if (outbox.some(({ operation }, at) => at > 0 && operation <= outbox[at - 1]!.operation))
    throw new DecodeError("malformed", "jobs out of order");
  return outbox;
}
