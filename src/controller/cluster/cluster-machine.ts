// The state machine of a server: what the cluster knows of itself, around the machines of those who use the log.
//
//   entry = 0, version, kind, …   a command of the cluster's own
//         | n, data               the n-th inner machine's; `innerProposals` puts that byte there
//
// It keeps the hash over every entry that was applied (a CRC-32 chained over index, term and data, a few thousand of the
// last ones by index), which nodes compare to find out that their states differ, the node ids that the founder
// invited and that have not become voters yet, which clusters this one was recovered or restored from, and whether it is
// paused (docs/decisions/0041-recovered-clusters.md).
//
// Invariants:
// - All of it is a function of the log, and travels in the snapshot: equal at an equal index on every node.
// - An entry that this release does not know (tag, version or kind) changes nothing but the hash, which covers its bytes, and
//   is counted. So an old release agrees with a new one about the hash and about everything it understands. A new kind
//   must be proposed only once every member runs a release that knows it.

import { assert } from "../../core/kit/assert.ts";
import { DecodeError, decoded, ByteReader, ByteWriter, tagged } from "../../core/kit/bytes.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { ANCESTORS_MAX, CLUSTER_ID_BYTES_MAX, SNAPSHOT_BYTES_MAX } from "../../core/kit/limits.ts";
import { joined, measuredParts, partsOf, type Pieces, readMeasured, readPart, wholeOf } from "../../core/kit/pieces.ts";
import type { Proposals } from "../../ports/consensus.ts";
import type { Digest } from "../../ports/digest.ts";
import type { SnapshotData, StateMachine } from "../../ports/state-machine.ts";
import { CHAIN_POINT_BYTES, type ChainPoint, ChainRing, readChainPoints, writeChainPoints } from "./cluster-chain.ts";
import { INNER_MACHINES_MAX, INVITED_MAX, LINK_BUFFER_BYTES, NODE_ID_BYTES_MAX } from "./limits.ts";

const TAG_CLUSTER = 0;
const TAG_INNER_FIRST = 1;
const COMMAND_VERSION = 1;
const KIND_INVITE = 1;
const KIND_SETTLED = 2;
const KIND_RESUMED = 3;
const SNAPSHOT_VERSION = 4;
/**
 * With two inner machines, of which the last alone may be large. Written while there are no more: older releases read it. With more
 * they would leave the third one's state out without a word.
 */
const SNAPSHOT_VERSION_OF_TWO = 3;
const MACHINES_OF_TWO = 2;
/** Of no cluster in particular, without ancestors, not paused. */
const SNAPSHOT_VERSION_OF_NO_LINE = 2;
/** With the first inner machine alone. */
const SNAPSHOT_VERSION_OF_ONE = 1;
const LINK_BYTES = 16;
const U32_SPAN = 2 ** 32;

export type ClusterCommand =
  /** These may join by themselves: as learners once they are seen, as voters once they have caught up. */
  | { readonly kind: "invite"; readonly nodeIds: readonly string[] }
  /** It is a voter now, or is not wanted any more. */
  | { readonly kind: "settled"; readonly nodeId: string }
  /** A cluster that was restored paused begins to act. */
  | { readonly kind: "resumed" };

/** Where a cluster comes from. */
export interface ClusterLine {
  /** Of which cluster this is the state; null: it does not say (older releases, tests). */
  readonly clusterId: string | null;
  /** What it was recovered or restored from, the newest first. Its epochs are above all of theirs. */
  readonly ancestors: readonly string[];
  /** Nothing is leased, fired or granted until an operator resumes it. */
  readonly isPaused: boolean;
}

const NO_LINE: ClusterLine = { clusterId: null, ancestors: [], isPaused: false };

type AppliedEntry = Parameters<StateMachine["apply"]>[0];

export class ClusterMachine implements StateMachine {
  /** Entries that this release does not know. */
  unknownCommands = 0;
  /** What it hashes with. */
  readonly digest: Digest;
  readonly #inner: readonly StateMachine[];
  readonly #chain = new ChainRing();
  readonly #link = new Uint8Array(LINK_BUFFER_BYTES);
  readonly #linkView = new DataView(this.#link.buffer);
  #invited = new Set<string>();
  #wasInvited = false;
  #line = NO_LINE;
  readonly #onResumed: (() => void)[] = [];

  constructor(inner: readonly StateMachine[], digest: Digest) {
    assert(inner.length <= INNER_MACHINES_MAX, "inner machines are few");
    this.#inner = inner;
    this.digest = digest;
  }

  /** Sorted. */
  get invited(): readonly string[] {
    return [...this.#invited];
  }

  /** Whether anybody was ever invited: a founder invites once. */
  get wasInvited(): boolean {
    return this.#wasInvited;
  }

  /** Before the first entry is applied: the cluster that its snapshots name. */
  belongsTo(clusterId: string): void {
    this.#line = { ...this.#line, clusterId };
  }

  get ancestors(): readonly string[] {
    return this.#line.ancestors;
  }

  get isPaused(): boolean {
    return this.#line.isPaused;
  }

  /** Called when it acts from now on. */
  onResumed(tell: () => void): void {
    this.#onResumed.push(tell);
  }

  /** The last entry that changed the state, and the hash over all up to it. */
  get head(): { readonly index: number; readonly hash: number } {
    return this.#chain.head;
  }

  /** The hash over everything applied up to an index; null where it is not applied yet, or not known any more. */
  hashAt(index: number): number | null {
    return this.#chain.hashAt(index);
  }

  apply(entry: AppliedEntry): unknown {
    this.#chain.push(entry.index, this.#linked(entry));
    const { data } = entry;
    const inner = this.#inner[data[0]! - TAG_INNER_FIRST];
    if (inner !== undefined) {
      // The engine hands on no empty entry, and so does this.
      if (data.length === 1) return undefined;
      return inner.apply({ index: entry.index, term: entry.term, data: data.subarray(1) });
    }
    const command = decodeClusterCommand(data);
    if (command === null) this.unknownCommands++;
    else this.#command(command);
    return undefined;
  }

  /** CRC-32 over index, term and data, after the hash before. */
  #linked({ index, term, data }: AppliedEntry): number {
    const view = this.#linkView;
    view.setUint32(0, Math.floor(index / U32_SPAN));
    view.setUint32(4, index >>> 0);
    view.setUint32(8, Math.floor(term / U32_SPAN));
    view.setUint32(12, term >>> 0);
    const digest = this.digest;
    const seed = this.#chain.headHash;
    const endBytes = LINK_BYTES + data.length;
    if (endBytes > this.#link.length) {
      return digest.crc32(data, digest.crc32(this.#link.subarray(0, LINK_BYTES), seed));
    }
    // One call instead of two: for small entries the calls are what it costs.
    this.#link.set(data, LINK_BYTES);
    return digest.crc32(this.#link.subarray(0, endBytes), seed);
  }

  #command(command: ClusterCommand): void {
    if (command.kind === "invite") {
      this.#wasInvited = true;
      const all = [...new Set([...this.#invited, ...command.nodeIds])].sort();
      this.#invited = new Set(all.slice(0, INVITED_MAX));
    } else if (command.kind === "settled") {
      this.#invited.delete(command.nodeId);
    } else this.#resume();
  }

  #resume(): void {
    if (!this.#line.isPaused) return;
    this.#line = { ...this.#line, isPaused: false };
    for (const tell of this.#onResumed) tell();
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  snapshot(): SnapshotData | Promise<SnapshotData> {
    const invited = this.invited;
    const head = { line: this.#line, wasInvited: this.#wasInvited, invited, points: this.#chain.points() };
    const taken = this.#inner.map((machine) => machine.snapshot());
    const inner = taken.filter((one) => one instanceof Uint8Array);
    if (inner.length === taken.length) return encodeSnapshot({ ...head, inner });
    return Promise.all(taken.map(async (one) => one)).then((data) => snapshotPieces(head, data));
  }

  *prepare(data: Uint8Array): Generator<void, void, void> {
    const { inner } = decodeSnapshot(data);
    for (const [at, machine] of this.#inner.entries()) {
      if (machine.prepare !== undefined) yield* machine.prepare(inner[at] ?? NO_BYTES);
    }
  }

  /** Where it throws, it may be restored in part: it is of no use any more. No bytes at all are the state before the first entry. */
  restore(data: Uint8Array): void {
    const { line, wasInvited, invited, points, inner } = decodeSnapshot(data);
    for (const [at, machine] of this.#inner.entries()) machine.restore(inner[at] ?? NO_BYTES);
    const { clusterId } = this.#line;
    const wasPaused = this.#line.isPaused;
    this.#line = { ...line, clusterId };
    this.#wasInvited = wasInvited;
    this.#invited = new Set(invited);
    this.#chain.replace(points);
    if (wasPaused && !line.isPaused) for (const tell of this.#onResumed) tell();
  }
}

interface Snapshot {
  readonly line: ClusterLine;
  readonly wasInvited: boolean;
  readonly invited: readonly string[];
  readonly points: readonly ChainPoint[];
  /** Of each inner machine; none: its state before the first entry. */
  readonly inner: readonly Uint8Array[];
}

const NO_BYTES = new Uint8Array(0);

function encodeSnapshot({ inner, ...head }: Snapshot): Uint8Array {
  return wholeOf(snapshotPieces(head, inner));
}

function snapshotPieces(
  { line, wasInvited, invited, points }: Omit<Snapshot, "inner">,
  inner: readonly SnapshotData[],
): Pieces {
  const writer = new ByteWriter(4_096 + points.length * CHAIN_POINT_BYTES);
  const hasLine = line.clusterId !== null || line.ancestors.length > 0 || line.isPaused;
  // An inner machine without bytes is as before its first entry, and the last ones of these need not be mentioned.
  const parts = inner.slice(0, inner.findLastIndex((one) => !isEmpty(one)) + 1);
  const isMeasured = parts.length > MACHINES_OF_TWO || parts.slice(0, -1).some((one) => !(one instanceof Uint8Array));
  const version = hasLine ? SNAPSHOT_VERSION_OF_TWO : SNAPSHOT_VERSION_OF_NO_LINE;
  writer.u8(isMeasured ? SNAPSHOT_VERSION : version);
  if (hasLine || isMeasured) writeLine(writer, line);
  writer.bool(wasInvited);
  writer.u32(invited.length);
  for (const nodeId of invited) writer.text(nodeId);
  writeChainPoints(writer, points);
  writer.u32(parts.length);
  return joined(writer.finish(), isMeasured ? measuredParts(parts) : partsOf(parts));
}

function isEmpty(part: SnapshotData): boolean {
  return part instanceof Uint8Array && part.length === 0;
}

function decodeSnapshot(data: Uint8Array): Snapshot {
  if (data.length === 0) return { line: NO_LINE, wasInvited: false, invited: [], points: [], inner: [] };
  try {
    return readSnapshot(new ByteReader(data));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new TenureError("SNAPSHOT_INVALID", `the state in this snapshot can't be read: ${error.message}`);
  }
}

function readSnapshot(reader: ByteReader): Snapshot {
  const version = reader.u8();
  if (version < SNAPSHOT_VERSION_OF_ONE || version > SNAPSHOT_VERSION) {
    const why = `the state in this snapshot has version ${version}, and this release reads up to ${SNAPSHOT_VERSION}; use the release that wrote it, or a newer one`;
    throw new TenureError("FORMAT_UNSUPPORTED", why);
  }
  const line = version >= SNAPSHOT_VERSION_OF_TWO ? readLine(reader) : NO_LINE;
  const wasInvited = reader.bool();
  const count = reader.u32();
  if (count > INVITED_MAX) throw new DecodeError("malformed", `${count} invited nodes`);
  const invited = Array.from({ length: count }, () => reader.text(NODE_ID_BYTES_MAX));
  const points = readChainPoints(reader);
  const machines = version === SNAPSHOT_VERSION_OF_ONE ? 1 : reader.u32();
  if (machines > INNER_MACHINES_MAX) throw new DecodeError("malformed", `${machines} inner machines`);
  const inner =
    version === SNAPSHOT_VERSION
      ? readMeasured(reader, machines)
      : Array.from({ length: machines }, () => readPart(reader, SNAPSHOT_BYTES_MAX));
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes too many`);
  return { line, wasInvited, invited, points, inner };
}

function writeLine(writer: ByteWriter, { clusterId, ancestors, isPaused }: ClusterLine): void {
  writer.text(clusterId ?? "");
  writer.u8(ancestors.length);
  for (const one of ancestors) writer.text(one);
  writer.bool(isPaused);
}

function readLine(reader: ByteReader): ClusterLine {
  const clusterId = reader.text(CLUSTER_ID_BYTES_MAX);
  const count = reader.u8();
  if (count > ANCESTORS_MAX) throw new DecodeError("malformed", `${count} ancestors`);
  const ancestors = Array.from({ length: count }, () => reader.text(CLUSTER_ID_BYTES_MAX));
  return { clusterId: clusterId === "" ? null : clusterId, ancestors, isPaused: reader.bool() };
}

export interface NewCluster {
  readonly clusterId: string;
  /** The cluster that this is the state of, where the snapshot itself does not say; null: nobody knows. */
  readonly from: string | null;
  /** What is paused already stays so, whatever this says: only an operator resumes it. */
  readonly isPaused: boolean;
  readonly change: (inner: Uint8Array, at: number) => Uint8Array;
}

/**
 * The same snapshot for a cluster that is founded anew from it, with other states of the inner machines: it names those that it
 * comes from, and nobody is invited to it by the old one's founder.
 */
export function asNewCluster(data: Uint8Array, { clusterId, from, isPaused, change }: NewCluster): Uint8Array {
  const snapshot = decodeSnapshot(data);
  const parent = from ?? snapshot.line.clusterId;
  const known = snapshot.line.ancestors.filter((one) => one !== parent);
  const ancestors = (parent === null ? known : [parent, ...known]).slice(0, ANCESTORS_MAX);
  const line = { clusterId, ancestors, isPaused: isPaused || snapshot.line.isPaused };
  return encodeSnapshot({ ...snapshot, line, invited: [], inner: snapshot.inner.map(change) });
}

/** What a snapshot says of where it comes from. */
export function lineOf(data: Uint8Array): ClusterLine {
  return decodeSnapshot(data).line;
}

// ---- the entries -----------------------------------------------------------------------------------

export function encodeClusterCommand(command: ClusterCommand): Uint8Array {
  const writer = new ByteWriter();
  writer.u8(TAG_CLUSTER);
  writer.u8(COMMAND_VERSION);
  if (command.kind === "invite") {
    writer.u8(KIND_INVITE);
    writer.u32(command.nodeIds.length);
    for (const nodeId of command.nodeIds) writer.text(nodeId);
  } else if (command.kind === "settled") {
    writer.u8(KIND_SETTLED);
    writer.text(command.nodeId);
  } else writer.u8(KIND_RESUMED);
  return writer.finish();
}

/** Null for everything that this release does not know or can't read. */
function decodeClusterCommand(data: Uint8Array): ClusterCommand | null {
  return decoded(
    () => readCommand(new ByteReader(data)),
    () => null,
  );
}

function readCommand(reader: ByteReader): ClusterCommand | null {
  if (reader.u8() !== TAG_CLUSTER || reader.u8() !== COMMAND_VERSION) return null;
  const command = readFields(reader, reader.u8());
  return reader.remainingBytes === 0 ? command : null;
}

function readFields(reader: ByteReader, kind: number): ClusterCommand | null {
  if (kind === KIND_SETTLED) return { kind: "settled", nodeId: reader.text(NODE_ID_BYTES_MAX) };
  if (kind === KIND_RESUMED) return { kind: "resumed" };
  if (kind !== KIND_INVITE) return null;
  const count = reader.u32();
  if (count > INVITED_MAX) return null;
  return { kind: "invite", nodeIds: Array.from({ length: count }, () => reader.text(NODE_ID_BYTES_MAX)) };
}

// ---- the inner machines' way to propose ------------------------------------------------------------

/** For whoever owns the inner machine at this place: what it proposes comes back to it as it was. */
export function innerProposals(engine: () => Proposals, at = 0): Proposals {
  return { propose: (data) => engine().propose(data.map((one) => tagged(one, TAG_INNER_FIRST + at))) };
}
