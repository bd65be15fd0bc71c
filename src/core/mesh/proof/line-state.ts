// How far a line is known: where it begins, and its binary form in records and snapshots.
//
// Invariants: `size` 0 has no hash; the frontier, where there is one, is of exactly `size`; one state has one encoding.

import { MerkleFrontier } from "../../events/merkle.ts";
import { bytesOfHash, HASH_BYTES, hexOf } from "../../events/hex.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../kit/bytes.ts";
import { EVENT_SOURCE_BYTES_MAX, EVENT_TIMESTAMP_MAX } from "../../kit/limits.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { LineState, Ring, RingKey } from "../model.ts";
import { FRONTIER_BYTES_MAX, NAME_BYTES_MAX, NOTE_LENGTH_MAX, RING_KEYS_MAX, TIMESTAMP_TEXT_MAX } from "./limits.ts";
import { isLineId, lineIdOf } from "./line-id.ts";
import { ringProblem } from "./ring.ts";

const STATE_VERSION = 1;

/** The line that this ring begins, before its first event. Later generations continue another line where they can (successor.ts). */
export function emptyLine(firstRing: Ring, digest: Pick<Digest, "sha256Hex">): LineState {
  const line = lineIdOf(firstRing, digest);
  const frontier = new Uint8Array(0);
  return { line, ring: firstRing, isStated: false, size: 0, hash: null, timestamp: 0, frontier, checkpoint: null };
}

/** The tree of the state, to be appended to. */
export function frontierOf(state: LineState, digest: Pick<Digest, "sha256">): MerkleFrontier {
  if (state.frontier.length === 0) return new MerkleFrontier(digest);
  return MerkleFrontier.decode(state.frontier, digest);
}

/** 64 hexadecimal digits. */
export function rootOf(state: LineState, digest: Pick<Digest, "sha256">): string {
  return hexOf(frontierOf(state, digest).root());
}

export function encodeLineState(state: LineState): Uint8Array {
  const writer = new ByteWriter(1_024);
  writer.u8(STATE_VERSION);
  writer.text(state.line);
  writer.text(state.ring.controller);
  writer.uint53(state.ring.generation);
  writer.text(state.ring.author);
  writer.u8(state.ring.keys.length);
  for (const { node, key } of state.ring.keys) {
    writer.text(node);
    writer.text(key);
  }
  writer.bool(state.isStated);
  writer.uint53(state.size);
  writer.bytes(state.hash === null ? new Uint8Array(0) : bytesOfHash(state.hash));
  writer.text(String(state.timestamp));
  writer.bytes(state.frontier);
  writer.text(state.checkpoint ?? "");
  return writer.finish();
}

/** Throws a DecodeError where the bytes are not those of a state. */
export function decodeLineState(bytes: Uint8Array): LineState {
  const reader = new ByteReader(bytes);
  const version = reader.u8();
  if (version !== STATE_VERSION) throw new DecodeError("malformed", `a line's state of format ${version}`);
  const line = reader.text(NAME_BYTES_MAX);
  if (!isLineId(line)) throw new DecodeError("malformed", "a line's id");
  const ring = readRing(reader);
  const isStated = reader.bool();
  const size = reader.uint53();
  const hash = readHash(reader);
  const timestamp = readTimestamp(reader);
  const frontier = reader.bytes(FRONTIER_BYTES_MAX).slice();
  const checkpoint = reader.text(2 * NOTE_LENGTH_MAX);
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow a line's state");
  if ((size === 0) !== (hash === null) || (size === 0) !== (frontier.length === 0))
    throw new DecodeError("malformed", "a line's size does not fit its hash or its tree");
  return { line, ring, isStated, size, hash, timestamp, frontier, checkpoint: checkpoint === "" ? null : checkpoint };
}

function readRing(reader: ByteReader): Ring {
  const controller = reader.text(NAME_BYTES_MAX);
  const generation = reader.uint53();
  const author = reader.text(EVENT_SOURCE_BYTES_MAX);
  const count = reader.u8();
  if (count > RING_KEYS_MAX) throw new DecodeError("malformed", `a ring of ${count} keys`);
  const keys: RingKey[] = [];
  for (let at = 0; at < count; at++) keys.push({ node: reader.text(NAME_BYTES_MAX), key: reader.text(NAME_BYTES_MAX) });
  const ring = { controller, generation, author, keys };
  const problem = ringProblem(ring);
  if (problem !== null) throw new DecodeError("malformed", problem);
  return ring;
}

function readHash(reader: ByteReader): string | null {
  const hash = reader.bytes(HASH_BYTES);
  if (hash.length !== 0 && hash.length !== HASH_BYTES) throw new DecodeError("malformed", "a hash");
  return hash.length === 0 ? null : hexOf(hash);
}

function readTimestamp(reader: ByteReader): number {
  const text = reader.text(TIMESTAMP_TEXT_MAX);
  const timestamp = Number(text);
  if (!(timestamp >= 0 && timestamp <= EVENT_TIMESTAMP_MAX) || String(timestamp) !== text)
    throw new DecodeError("malformed", "a timestamp");
  return timestamp;
}
