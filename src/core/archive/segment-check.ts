// What the bytes of a segment's file are worth, judged from end to end: structure, checksums, the chain, the tree,
// the hashes of blocks and contents. It goes in steps, so that whoever runs it lets others run in between.
//
//   sealed    whole, with its footer: may be served and believed
//   open      whole up to `sizeBytes`, without a footer; `tail` says what is after that, null where nothing is
//   broken    the first event that can't be believed; `isRot` where the bytes are not those that were written
//   newer     a later release's
//
// A torn write and rot in a file without footer look alike, and both are cut: what was cut is still in the Raft log
// or in the snapshot before it, because the log is compacted only up to a snapshot, which carries the open segment.
// Everywhere else damage is damage, and the segment is fetched from a peer.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { isSameBytes, isSamePoint, type Chain, type ChainPoint, type ChainWalk } from "./chain.ts";
import { BLOCK_BYTES_MAX, CHECKED_BYTES_PER_STEP, CHECKED_EVENTS_PER_STEP } from "./limits.ts";
import type { SegmentEntry } from "./manifest.ts";
import { SegmentCursor } from "./segment-cursor.ts";
import { contentHashOf, readHeader, type Block, type Footer, type SegmentHeader } from "./segment-format.ts";

export type SegmentVerdict =
  | {
      readonly kind: "sealed";
      readonly header: SegmentHeader;
      readonly entry: SegmentEntry;
      readonly after: ChainPoint;
    }
  | {
      readonly kind: "open";
      readonly header: SegmentHeader;
      readonly after: ChainPoint;
      readonly sizeBytes: number;
      readonly tail: string | null;
    }
  | { readonly kind: "broken"; readonly sequence: number; readonly why: string; readonly isRot: boolean }
  | { readonly kind: "newer"; readonly version: number };

export interface CheckInput {
  readonly bytes: Uint8Array;
  /** As its name says, or the manifest. */
  readonly first: number;
  /** Where the chain stood before it, if that is known by other means than its own header. */
  readonly before: ChainPoint | null;
  readonly blockBytesMax?: number | undefined;
}

/** Yields how many events it has taken in the step. */
export function* checkSegment(input: CheckInput, chain: Chain, digest: Digest): Generator<number, SegmentVerdict> {
  const { bytes, first, before } = input;
  const head = readHeader(bytes, digest);
  if (head.kind === "newer") return head;
  if (head.kind === "bad") return broken(first, head.why, true);
  const { header } = head;
  if (header.before.sequence + 1 !== first) {
    return broken(first, `it starts with event ${header.before.sequence + 1} under another name`, true);
  }
  if (before !== null && !isSamePoint(before, header.before)) {
    return broken(first, "its header does not continue the chain before it", false);
  }

  const walk = chain.follow(header.before);
  if (walk === null) return broken(first, "its header names no place in a chain", true);
  const blocks = new BlockHashes(bytes, head.endBytes, head.crc, input.blockBytesMax ?? BLOCK_BYTES_MAX, digest);
  const cursor = new SegmentCursor(bytes, head.endBytes, head.crc, header.before.sequence, digest);
  for (;;) {
    let step = cursor.next();
    let taken = 0;
    const untilBytes = cursor.atBytes + CHECKED_BYTES_PER_STEP;
    for (; step === "event"; step = cursor.next()) {
      if (!walk.check(cursor.data())) return faulty(walk, null);
      blocks.add(cursor);
      if (++taken === CHECKED_EVENTS_PER_STEP || cursor.atBytes >= untilBytes) break;
    }
    if (taken > 0) yield taken;
    if (step === "event") continue;
    if (step === "footer")
      return judgeFooter(header, cursor, walk, blocks.finish(cursor), head.endBytes, bytes, digest);
    if (walk.fault(null) !== null) return faulty(walk, null);
    const tail = step === "bad" ? cursor.why : null;
    return { kind: "open", header, after: walk.point(), sizeBytes: cursor.atBytes, tail };
  }
}

function judgeFooter(
  header: SegmentHeader,
  cursor: SegmentCursor,
  walk: ChainWalk,
  blocks: readonly Block[],
  headerBytes: number,
  bytes: Uint8Array,
  digest: Digest,
): SegmentVerdict {
  const { footer } = cursor;
  if (walk.fault(footer.after) !== null) return faulty(walk, footer.after);
  const after = walk.point();
  const first = header.before.sequence + 1;
  if (after.sequence < first) return broken(first, "it is sealed without an event", false);
  if (!isSamePoint(after, footer.after)) return broken(after.sequence, "its footer does not fit its last event", false);
  const odd = oddBlock(blocks, footer);
  if (odd !== null) return broken(first + odd, "a block's hash is wrong", true);
  const contentHash = contentHashOf(bytes.subarray(0, headerBytes), blocks, digest);
  if (!isSameBytes(contentHash, footer.contentHash))
    return broken(after.sequence, "the hash of its contents is wrong", true);
  const entry = { first, last: after.sequence, lastHash: after.hash!, contentHash, sizeBytes: bytes.length };
  return { kind: "sealed", header, entry, after };
}

/** Events before the first block that is not as the footer says; null where all are. */
function oddBlock(blocks: readonly Block[], footer: Footer): number | null {
  for (let i = 0; i < Math.max(blocks.length, footer.blocks.length); i++) {
    const own = blocks[i];
    const told = footer.blocks[i];
    const isSame =
      own !== undefined &&
      told !== undefined &&
      own.eventsBefore === told.eventsBefore &&
      own.offsetBytes === told.offsetBytes &&
      own.seed === told.seed &&
      isSameBytes(own.hash, told.hash);
    if (!isSame) return own?.eventsBefore ?? 0;
  }
  return null;
}

/** The blocks of a file that is being read, as its writer made them. */
class BlockHashes {
  readonly #bytes: Uint8Array;
  readonly #blockBytesMax: number;
  readonly #digest: Digest;
  readonly #blocks: Block[] = [];
  #at: number;
  #seed: number;
  #eventsBefore = 0;
  #events = 0;

  constructor(bytes: Uint8Array, atBytes: number, seed: number, blockBytesMax: number, digest: Digest) {
    this.#bytes = bytes;
    this.#at = atBytes;
    this.#seed = seed;
    this.#blockBytesMax = blockBytesMax;
    this.#digest = digest;
  }

  /** The cursor is after an event. */
  add(cursor: SegmentCursor): void {
    this.#events++;
    if (cursor.atBytes - this.#at >= this.#blockBytesMax) this.#close(cursor);
  }

  finish(cursor: SegmentCursor): readonly Block[] {
    if (cursor.atBytes > this.#at) this.#close(cursor);
    return this.#blocks;
  }

  #close(cursor: SegmentCursor): void {
    const hash = this.#digest.sha256(this.#bytes.subarray(this.#at, cursor.atBytes));
    this.#blocks.push({ eventsBefore: this.#eventsBefore, offsetBytes: this.#at, seed: this.#seed, hash });
    this.#at = cursor.atBytes;
    this.#seed = cursor.crc;
    this.#eventsBefore = this.#events;
  }
}

function faulty(walk: ChainWalk, expected: ChainPoint | null): SegmentVerdict {
  const fault = walk.fault(expected);
  assert(fault !== null, "a chain that is refused is broken");
  return broken(fault.sequence, fault.why, false);
}

function broken(sequence: number, why: string, isRot: boolean): SegmentVerdict {
  return { kind: "broken", sequence, why, isRot };
}
