// The stamp says whose directory this is: one cluster, one node, one disk (trap 13, design D5).
//
// It is the first thing written to a directory and is only ever replaced as a whole, so its phase tells
// how far the preparation of the directory came:
//
//   (empty) ──▶ founding ──▶ ready          a founder, with the incarnation that the configuration names
//   (empty) ──▶ joining  ──▶ ready          a node that will fetch everything
//   ready, damaged ──▶ replacing ──▶ joining ──▶ ready
//   (empty) | ready ──▶ recovering ──▶ ready    an operator's: begins a new cluster with a state that is at hand
//
// Invariants:
// - Nothing is acknowledged before `ready`, so an unready directory may be prepared again from the start.
// - `ready` is written after the first segment is durable, so a ready directory without one is damaged.
// - `replacing` carries the new incarnation already: from then on the damaged files are no one's log.
// - `recovering` carries the new cluster and incarnation, and the state to begin with is durable before it is written:
//   up to then the old log counts, from then on the new state, and a restart finishes what was begun.

import type { Digest } from "../../ports/digest.ts";
import { ByteReader, DecodeError, type ByteWriter } from "../kit/bytes.ts";
import { parsePeerKey } from "../kit/ids.ts";
import { CLUSTER_ID_BYTES_MAX, PEER_KEY_BYTES_MAX, WAL_FRAME_PAYLOAD_BYTES_MAX } from "../kit/limits.ts";
import { FrameWriter, readFrame } from "./frame.ts";

/** Stands in the stamp file and at the head of each segment. */
export interface Stamp {
  readonly clusterId: string;
  readonly nodeId: string;
  readonly incarnation: string;
}

// The place in the list is the number on disk: append, never reorder.
const PHASES = ["founding", "joining", "replacing", "ready", "recovering"] as const;
export type StampPhase = (typeof PHASES)[number];

export type StampRead =
  | { readonly kind: "stamp"; readonly stamp: Stamp; readonly phase: StampPhase }
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "bad"; readonly why: string };

export function encodeStampFile(stamp: Stamp, phase: StampPhase, digest: Digest): Uint8Array {
  const frames = new FrameWriter();
  const writer = frames.begin("stamp");
  writeStamp(writer, stamp);
  writer.u8(PHASES.indexOf(phase));
  return frames.finish(0, digest);
}

export function decodeStampFile(bytes: Uint8Array, digest: Digest): StampRead {
  const frame = readFrame(bytes, 0, 0, WAL_FRAME_PAYLOAD_BYTES_MAX, digest);
  if (frame.kind !== "frame") return frame;
  if (frame.type !== "stamp" || frame.endBytes !== bytes.length) return { kind: "bad", why: "it is not a stamp" };
  try {
    const reader = new ByteReader(bytes, frame.payloadAt, frame.endBytes);
    const stamp = readStamp(reader);
    const phase = PHASES[reader.u8()];
    if (phase === undefined || reader.remainingBytes > 0) return { kind: "bad", why: "it is not a stamp" };
    return { kind: "stamp", stamp, phase };
  } catch (error) {
    if (error instanceof DecodeError) return { kind: "bad", why: error.message };
    throw error;
  }
}

export function writeStamp(writer: ByteWriter, stamp: Stamp): void {
  writer.text(stamp.clusterId);
  writer.text(stamp.nodeId);
  writer.text(stamp.incarnation);
}

export function readStamp(reader: ByteReader): Stamp {
  const clusterId = reader.text(CLUSTER_ID_BYTES_MAX);
  const nodeId = reader.text(PEER_KEY_BYTES_MAX);
  const incarnation = reader.text(PEER_KEY_BYTES_MAX);
  if (parsePeerKey(`${nodeId}@${incarnation}`) === undefined)
    throw new DecodeError("malformed", "not a node and its disk");
  return { clusterId, nodeId, incarnation };
}

export function describeStamp(stamp: Stamp): string {
  return `node ${stamp.nodeId}, disk ${stamp.incarnation}, of cluster ${stamp.clusterId}`;
}
