// Beacons: what each node says of itself to all others about once a second, next to consensus and never part of it. The
// split-brain detector and the failover count live on them.
//
// Format: CRC-32 of the rest, version, role, flags, wall clock, term, handed term, applied, leader, points of the hash
// chain. A newer version may append fields, which this one skips; it may change none. What can't be read, or has changed
// on its way, is counted and dropped: leaders step down and people are woken by what beacons say.
// States of the loop: idle ─start▶ running ─stop▶ stopped; each safe to call twice.

import { ByteReader, ByteWriter, decoded } from "../../core/kit/bytes.ts";
import type { Beacon, ChainPoint } from "../../core/health/index.ts";
import { parsePeerKey, type PeerKey } from "../../core/kit/ids.ts";
import { BEACON_BYTES_MAX, PEER_KEY_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Role } from "../../core/raft/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import { BEACON_FIRST_PAUSE_MS, BEACON_INTERVAL_MS, BEACON_POINTS_MAX } from "./limits.ts";

const CHECKSUM_BYTES = 4;
const BEACON_VERSION = 1;
const ROLES: readonly Role[] = ["follower", "pre-candidate", "candidate", "leader"];
const ESTABLISHED = 1;
/** Every node tells its hash at the multiples of this. */
const CHECKPOINT_ENTRIES = 1_024;
/** Nodes that started together should not all speak at once for ever. */
const BEACON_JITTER = 0.1;

// ---- the format ------------------------------------------------------------------------------------

export function encodeBeacon(beacon: Beacon, digest: Digest): Uint8Array {
  const writer = new ByteWriter(256);
  writer.u32(0);
  writer.u8(BEACON_VERSION);
  writer.u8(ROLES.indexOf(beacon.role));
  writer.u8(beacon.established ? ESTABLISHED : 0);
  writer.uint53(Math.max(0, Math.trunc(beacon.wallMs)));
  writer.uint53(beacon.term);
  writer.uint53(beacon.handedTerm);
  writer.uint53(beacon.applied);
  writer.text(beacon.leader ?? "");
  const chain = beacon.chain.slice(0, BEACON_POINTS_MAX);
  writer.u8(chain.length);
  for (const { index, hash } of chain) {
    writer.uint53(index);
    writer.u32(hash);
  }
  const bytes = writer.finish();
  checksumOf(bytes).setUint32(0, digest.crc32(bytes.subarray(CHECKSUM_BYTES)));
  return bytes;
}

/** Null for what is no beacon. */
export function decodeBeacon(bytes: Uint8Array, digest: Digest): Beacon | null {
  if (bytes.length < CHECKSUM_BYTES || bytes.length > BEACON_BYTES_MAX) return null;
  if (checksumOf(bytes).getUint32(0) !== digest.crc32(bytes.subarray(CHECKSUM_BYTES))) return null;
  return decoded(
    () => readBeacon(new ByteReader(bytes, CHECKSUM_BYTES)),
    () => null,
  );
}

function checksumOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, CHECKSUM_BYTES);
}

function readBeacon(reader: ByteReader): Beacon | null {
  const version = reader.u8();
  const role = ROLES[reader.u8()];
  const flags = reader.u8();
  const [wallMs, term, handedTerm, applied] = [reader.uint53(), reader.uint53(), reader.uint53(), reader.uint53()];
  const leaderText = reader.text(PEER_KEY_BYTES_MAX);
  const leader = leaderText === "" ? null : (parsePeerKey(leaderText) ?? null);
  const count = reader.u8();
  if (version < BEACON_VERSION || role === undefined || count > BEACON_POINTS_MAX) return null;
  if (leader === null && leaderText !== "") return null;
  const chain: ChainPoint[] = [];
  for (let i = 0; i < count; i++) chain.push({ index: reader.uint53(), hash: reader.u32() });
  if (version === BEACON_VERSION && reader.remainingBytes > 0) return null;
  return { role, term, leader, established: (flags & ESTABLISHED) !== 0, handedTerm, applied, chain, wallMs };
}

/** The points that a node tells: its head, and the last checkpoints that it still knows. */
export function beaconPoints(head: ChainPoint, hashAt: (index: number) => number | null): ChainPoint[] {
  if (head.index === 0) return [];
  const points = [head];
  const last = Math.floor(head.index / CHECKPOINT_ENTRIES);
  for (let back = 0; points.length < BEACON_POINTS_MAX && last - back > 0; back++) {
    const index = (last - back) * CHECKPOINT_ENTRIES;
    const hash = index === head.index ? null : hashAt(index);
    if (hash !== null) points.push({ index, hash });
  }
  return points;
}

// ---- the loop --------------------------------------------------------------------------------------

export interface BeaconLoopOptions {
  readonly peers: Peers;
  readonly clock: Clock;
  readonly random: Random;
  readonly digest: Digest;
  /** What this node says of itself now. */
  readonly say: () => Beacon;
  readonly heard: (from: PeerKey, beacon: Beacon) => void;
  readonly intervalMs?: number | undefined;
}

export class BeaconLoop {
  readonly counts = { sent: 0, heard: 0, refused: 0 };
  readonly #options: BeaconLoopOptions;
  #state: "idle" | "running" | "stopped" = "idle";
  #timer: Timer | null = null;

  constructor(options: BeaconLoopOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "running";
    this.#options.peers.onBeacon((from, bytes) => this.#received(from, bytes));
    this.#send();
  }

  stop(): void {
    this.#state = "stopped";
    this.#timer?.cancel();
    this.#timer = null;
  }

  #send(): void {
    if (this.#state !== "running") return;
    const { peers, clock, random, digest, say, intervalMs = BEACON_INTERVAL_MS } = this.#options;
    peers.broadcast(encodeBeacon(say(), digest));
    this.counts.sent++;
    const pauseMs =
      Math.min(intervalMs, BEACON_FIRST_PAUSE_MS * 2 ** this.counts.sent) *
      random.between(1 - BEACON_JITTER, 1 + BEACON_JITTER);
    this.#timer = clock.setTimer(clock.monotonicMs() + pauseMs, () => this.#send());
  }

  #received(from: PeerKey, bytes: Uint8Array): void {
    if (this.#state !== "running") return;
    const beacon = decodeBeacon(bytes, this.#options.digest);
    if (beacon === null) {
      this.counts.refused++;
      return;
    }
    this.counts.heard++;
    this.#options.heard(from, beacon);
  }
}
