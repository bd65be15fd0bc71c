// Messages, entries and what is stored of them, as bytes and back.
//
// A message: format version, cluster id, kind, from, to, term, then the fields of its kind.
//
// Invariants:
// - decodeMessage and decodeConfChange accept any bytes and never throw; what they refuse, they name.
// - What is decoded could have been encoded: integers are at most 2^53−1 (trap 31), peer keys are
//   well-formed, an append's entries are contiguous, lists are within limits.ts. So the step function
//   never meets a shape that no honest peer can send; whether it is plausible is for the step to say.
// - The read… functions throw a DecodeError and are for callers that catch it (the log's recovery).
// - Decoded data are views of the bytes that came in: nobody may write to those bytes again.

import { assert, assertNever } from "../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError, type DecodeReason } from "../kit/bytes.ts";
import type { PeerKey } from "../kit/ids.ts";
import {
  APPEND_ENTRIES_MAX,
  CLUSTER_ID_BYTES_MAX,
  CONF_CHANGE_OPERATIONS_MAX,
  ENTRY_BYTES_MAX,
  MESSAGE_BYTES_MAX,
} from "../kit/limits.ts";
import { MESSAGE_BUFFER_BYTES } from "./limits.ts";
import {
  readConfiguration,
  readPeer,
  readPeers,
  writeConfiguration,
  writePeers,
} from "./membership/configuration-codec.ts";
import type {
  ConfChange,
  ConfChangeOperation,
  Entry,
  EntryType,
  HardState,
  Message,
  MessageType,
  MsgApp,
  SnapshotMeta,
} from "./types.ts";

const FORMAT_VERSION = 1;
const CONF_CHANGE_VERSION = 1;
/** What an entry needs next to its data: term, index, type, length. */
const ENTRY_HEADER_BYTES = 21;

// The place in each list is the number on the wire and on disk: append, never reorder.
const MESSAGE_KINDS: readonly MessageType[] = [
  "MsgApp",
  "MsgAppResp",
  "MsgHeartbeat",
  "MsgHeartbeatResp",
  "MsgSnap",
  "MsgVote",
  "MsgPreVote",
  "MsgVoteResp",
  "MsgPreVoteResp",
  "MsgTimeoutNow",
  "MsgTransferRefused",
  "MsgReadIndex",
  "MsgReadIndexResp",
  "MsgAskMembers",
  "MsgMembers",
];
const ENTRY_TYPES: readonly EntryType[] = ["EntryNormal", "EntryConfChange"];
const OPERATIONS: readonly ConfChangeOperation["op"][] = ["add-voter", "add-learner", "remove"];

export type DecodedMessage =
  | { readonly ok: true; readonly message: Message }
  | { readonly ok: false; readonly reason: DecodeReason | "version" | "cluster" | "kind" | "trailing" };

// ---- messages --------------------------------------------------------------------------------------

const messageWriter = new ByteWriter(MESSAGE_BUFFER_BYTES);

/** The bytes are a view of a common buffer: send or copy them, but never transfer their ArrayBuffer. */
export function encodeMessage(message: Message, clusterId: string): Uint8Array {
  const w = messageWriter;
  w.begin(capacityFor(message));
  w.u8(FORMAT_VERSION);
  w.text(clusterId);
  assert(w.lengthBytes <= 1 + 4 + CLUSTER_ID_BYTES_MAX, "cluster id is within its bound", () => clusterId);
  w.u8(MESSAGE_KINDS.indexOf(message.type));
  w.text(message.from);
  w.text(message.to);
  w.uint53(message.term);
  writeFields(w, message);
  assert(
    w.lengthBytes <= MESSAGE_BYTES_MAX,
    "message is within its bound",
    () => `${message.type} of ${w.lengthBytes} bytes`,
  );
  return w.finish();
}

export function decodeMessage(bytes: Uint8Array, clusterId: string): DecodedMessage {
  if (bytes.length > MESSAGE_BYTES_MAX) return { ok: false, reason: "malformed" };
  try {
    const r = new ByteReader(bytes);
    if (r.u8() !== FORMAT_VERSION) return { ok: false, reason: "version" };
    if (r.text(CLUSTER_ID_BYTES_MAX) !== clusterId) return { ok: false, reason: "cluster" };
    const type = MESSAGE_KINDS[r.u8()];
    if (type === undefined) return { ok: false, reason: "kind" };
    const message = readMessage(r, type);
    if (r.remainingBytes > 0) return { ok: false, reason: "trailing" };
    return { ok: true, message };
  } catch (error) {
    if (error instanceof DecodeError) return { ok: false, reason: error.reason };
    throw error;
  }
}

/** Close enough that a message is hardly ever copied while it is written. */
function capacityFor(message: Message): number {
  if (message.type === "MsgSnap") return 1024;
  if (message.type !== "MsgApp") return 192;
  let sizeBytes = 192;
  for (const entry of message.entries) sizeBytes += ENTRY_HEADER_BYTES + entry.data.length;
  return sizeBytes;
}

function writeFields(w: ByteWriter, message: Message): void {
  switch (message.type) {
    case "MsgApp":
      return writeAppend(w, message);
    case "MsgAppResp":
      w.uint53(message.index);
      w.bool(message.reject);
      w.uint53(message.rejectHint);
      w.uint53(message.logTerm);
      return w.uint53(message.round);
    case "MsgHeartbeat":
      w.uint53(message.commit);
      w.uint53(message.announced);
      w.uint53(message.echo);
      return w.uint53(message.round);
    case "MsgHeartbeatResp":
      w.uint53(message.round);
      w.u8(message.priority);
      w.bool(message.willing);
      return w.bool(message.stalled);
    case "MsgSnap":
      assert(message.snapshot.term <= message.term, "snapshot is not of a later term");
      writeSnapshotMeta(w, message.snapshot);
      return w.uint53(message.round);
    case "MsgVote":
    case "MsgPreVote":
      w.uint53(message.index);
      w.uint53(message.logTerm);
      w.bool(message.transfer);
      return w.u8(message.priority);
    case "MsgVoteResp":
    case "MsgPreVoteResp":
      return w.bool(message.reject);
    case "MsgTimeoutNow":
      w.bool(message.force);
      return writeAttempt(w, message.attempt);
    case "MsgTransferRefused":
      return writeAttempt(w, message.attempt);
    case "MsgReadIndex":
      return w.uint53(message.context);
    case "MsgReadIndexResp":
      w.uint53(message.context);
      return w.uint53(message.index);
    case "MsgAskMembers":
      return;
    case "MsgMembers":
      w.uint53(message.index);
      writePeers(w, message.members);
      return w.bool(message.committed);
    default:
      assertNever(message, "writeFields");
  }
}

/** A literal's properties are evaluated in the order in which they stand: that order is the format. */
function readMessage(r: ByteReader, type: MessageType): Message {
  const from = readPeer(r);
  const to = readPeer(r);
  const term = r.uint53();
  switch (type) {
    case "MsgApp":
      return readAppend(r, from, to, term);
    case "MsgAppResp":
      return {
        type,
        from,
        to,
        term,
        index: r.uint53(),
        reject: r.bool(),
        rejectHint: r.uint53(),
        logTerm: r.uint53(),
        round: r.uint53(),
      };
    case "MsgHeartbeat":
      return { type, from, to, term, commit: r.uint53(), announced: r.uint53(), echo: r.uint53(), round: r.uint53() };
    case "MsgHeartbeatResp":
      return { type, from, to, term, round: r.uint53(), priority: r.u8(), willing: r.bool(), stalled: r.bool() };
    case "MsgSnap": {
      const snapshot = readSnapshotMeta(r);
      if (snapshot.term > term) throw new DecodeError("malformed", "a snapshot of a later term");
      return { type, from, to, term, snapshot, round: r.uint53() };
    }
    case "MsgVote":
    case "MsgPreVote":
      return { type, from, to, term, index: r.uint53(), logTerm: r.uint53(), transfer: r.bool(), priority: r.u8() };
    case "MsgVoteResp":
    case "MsgPreVoteResp":
      return { type, from, to, term, reject: r.bool() };
    case "MsgTimeoutNow":
      return { type, from, to, term, force: r.bool(), attempt: readAttempt(r) };
    case "MsgTransferRefused":
      return { type, from, to, term, attempt: readAttempt(r) };
    case "MsgReadIndex":
      return { type, from, to, term, context: r.uint53() };
    case "MsgReadIndexResp":
      return { type, from, to, term, context: r.uint53(), index: r.uint53() };
    case "MsgAskMembers":
      return { type, from, to, term };
    case "MsgMembers":
      return { type, from, to, term, index: r.uint53(), members: readPeers(r), committed: r.bool() };
    default:
      return assertNever(type, "readMessage");
  }
}

/** Absent means 0: the first transfer of a term, which nearly all are, is read by releases that count none. */
function writeAttempt(w: ByteWriter, attempt: number): void {
  if (attempt > 0) w.uint53(attempt);
}

function readAttempt(r: ByteReader): number {
  if (r.remainingBytes === 0) return 0;
  const attempt = r.uint53();
  if (attempt === 0) throw new DecodeError("malformed", "a first attempt that says so");
  return attempt;
}

function writeAppend(w: ByteWriter, message: MsgApp): void {
  const fault = appendFault(message);
  assert(fault === null, "append is well-formed", () => String(fault));
  w.uint53(message.index);
  w.uint53(message.logTerm);
  w.uint53(message.commit);
  w.uint53(message.round);
  w.u32(message.entries.length);
  for (const entry of message.entries) writeEntry(w, entry);
}

function readAppend(r: ByteReader, from: PeerKey, to: PeerKey, term: number): MsgApp {
  const index = r.uint53();
  const logTerm = r.uint53();
  const commit = r.uint53();
  const round = r.uint53();
  const count = r.u32();
  if (count > APPEND_ENTRIES_MAX) throw new DecodeError("malformed", `${count} entries`);
  const entries: Entry[] = [];
  for (let i = 0; i < count; i++) entries.push(readEntry(r));
  const message: MsgApp = { type: "MsgApp", from, to, term, index, logTerm, entries, commit, round };
  const fault = appendFault(message);
  if (fault !== null) throw new DecodeError("malformed", fault);
  return message;
}

/** What no leader's log can hold: a gap, a term that falls, or an entry from after the leader's own term. */
function appendFault(message: MsgApp): string | null {
  const { entries, term } = message;
  if (entries.length > APPEND_ENTRIES_MAX) return `${entries.length} entries`;
  let previousIndex = message.index;
  let previousTerm = message.logTerm;
  if (previousTerm > term) return `term ${previousTerm} before the entries of a leader of term ${term}`;
  for (const entry of entries) {
    if (entry.index !== previousIndex + 1) return `index ${entry.index} after ${previousIndex}`;
    if (entry.term < previousTerm) return `term ${entry.term} after ${previousTerm}`;
    if (entry.term > term) return `an entry of term ${entry.term} from a leader of term ${term}`;
    previousIndex = entry.index;
    previousTerm = entry.term;
  }
  return null;
}

// ---- what the log stores ---------------------------------------------------------------------------

export function writeEntry(w: ByteWriter, entry: Entry): void {
  assert(entry.data.length <= ENTRY_BYTES_MAX, "entry is within its bound", () => `${entry.data.length} bytes`);
  w.uint53(entry.term);
  w.uint53(entry.index);
  w.u8(ENTRY_TYPES.indexOf(entry.type));
  w.bytes(entry.data);
}

export function readEntry(r: ByteReader): Entry {
  const term = r.uint53();
  const index = r.uint53();
  const type = ENTRY_TYPES[r.u8()];
  if (type === undefined) throw new DecodeError("malformed", "an unknown type of entry");
  return { term, index, type, data: r.bytes(ENTRY_BYTES_MAX) };
}

export function writeHardState(w: ByteWriter, hardState: HardState): void {
  w.uint53(hardState.term);
  w.bool(hardState.vote !== null);
  if (hardState.vote !== null) w.text(hardState.vote);
  w.uint53(hardState.commit);
}

export function readHardState(r: ByteReader): HardState {
  return { term: r.uint53(), vote: r.bool() ? readPeer(r) : null, commit: r.uint53() };
}

export function writeSnapshotMeta(w: ByteWriter, snapshot: SnapshotMeta): void {
  w.uint53(snapshot.index);
  w.uint53(snapshot.term);
  writeConfiguration(w, snapshot.configuration);
}

export function readSnapshotMeta(r: ByteReader): SnapshotMeta {
  return { index: r.uint53(), term: r.uint53(), configuration: readConfiguration(r) };
}

// ---- membership changes, as the data of an entry ---------------------------------------------------

export function encodeConfChange(change: ConfChange): Uint8Array {
  const { operations } = change;
  assert(
    operations.length <= CONF_CHANGE_OPERATIONS_MAX,
    "change is within its bound",
    () => `${operations.length} operations`,
  );
  const w = new ByteWriter(8 + 24 * operations.length);
  w.u8(CONF_CHANGE_VERSION);
  w.u8(operations.length);
  for (const { op, peer } of operations) {
    w.u8(OPERATIONS.indexOf(op));
    w.text(peer);
  }
  return w.finish();
}

/** Null where the bytes are not a change. An entry's data may come from a peer, so this is no assertion. */
export function decodeConfChange(bytes: Uint8Array): ConfChange | null {
  try {
    const r = new ByteReader(bytes);
    if (r.u8() !== CONF_CHANGE_VERSION) return null;
    const count = r.u8();
    if (count > CONF_CHANGE_OPERATIONS_MAX) return null;
    const operations: ConfChangeOperation[] = [];
    for (let i = 0; i < count; i++) {
      const op = OPERATIONS[r.u8()];
      if (op === undefined) return null;
      operations.push({ op, peer: readPeer(r) });
    }
    return r.remainingBytes === 0 ? { operations } : null;
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}
