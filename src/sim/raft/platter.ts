// What the disk of one peer holds for certain: its log, read from synced bytes under synced names alone, as a power loss that
// keeps nothing else would leave it. Each byte is read once; a disk that is gone stays as it was last seen.
//
// Invariants checked while reading: no entry is at or below a commit index that was written before it
// (docs/decisions/0006-commit-on-disk.md); and no entry that is there is written again, which would cut off all that follows it
// (trap 5): only another one at its place does that.

import { incarnationOf, type PeerKey } from "../../core/kit/ids.ts";
import type { HardState } from "../../core/raft/types.ts";
import {
  readRecords,
  readSegmentHeader,
  segmentSeed,
  type SegmentHeader,
  type WalRecord,
} from "../../core/wal/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Inode, SimDisk } from "../kernel/index.ts";

const SEGMENT_PATTERN = /^wal-([0-9]+)$/;
const NOTHING: HardState = { term: 0, vote: null, commit: 0 };

interface Segment {
  readonly inode: Inode;
  readonly header: SegmentHeader;
  readonly endBytes: number;
}

export class Platter {
  readonly #incarnation: string;
  readonly #digest: Digest;
  /** Headers never change once they are durable. */
  readonly #headers = new WeakMap<Inode, { readonly header: SegmentHeader; readonly endBytes: number }>();
  #number = 0;
  #inode: Inode | null = null;
  #atBytes = 0;
  #seed = 0;
  #terms: number[] = [];
  #lastIndex = 0;
  #highestIndex = 0;
  #snapshotIndex = 0;
  #hardState = NOTHING;
  /** What was found to be wrong while reading. */
  fault: string | null = null;

  constructor(peer: PeerKey, digest: Digest) {
    this.#incarnation = incarnationOf(peer);
    this.#digest = digest;
  }

  get hardState(): HardState {
    return this.#hardState;
  }

  get lastIndex(): number {
    return Math.max(this.#lastIndex, this.#snapshotIndex);
  }

  /** That it has ever held, also where another leader's entries have cut it off since. */
  get highestIndex(): number {
    return Math.max(this.#highestIndex, this.#snapshotIndex);
  }

  has(index: number, term: number): boolean {
    return index <= this.#snapshotIndex || (index <= this.#lastIndex && this.#terms[index] === term);
  }

  /** Reads what has become durable since. A disk that carries no log of this peer any more changes nothing. */
  look(disk: SimDisk): void {
    const current = disk.directory.durable.get(nameOf(this.#number));
    const isSame = current !== undefined && current === this.#inode && current.durableBytes >= this.#atBytes;
    if (isSame && !disk.directory.durable.has(nameOf(this.#number + 1))) return this.#read(current);
    const segments = this.#segmentsOf(disk);
    const tail = segments.at(-1);
    if (tail === undefined) return;
    if (isSame) this.#read(current);
    else this.#reset(tail.header);
    const from = isSame ? this.#number + 1 : tail.header.oldestNumber;
    for (const segment of segments) if (segment.header.number >= from) this.#enter(segment);
  }

  /** Those of this peer with a durable header, oldest first. */
  #segmentsOf(disk: SimDisk): Segment[] {
    const segments: Segment[] = [];
    for (const [name, inode] of disk.directory.durable) {
      if (!SEGMENT_PATTERN.test(name)) continue;
      let known = this.#headers.get(inode);
      if (known === undefined) {
        const read = readSegmentHeader(inode.durableView(), this.#digest);
        if (read.header === null || read.header.stamp.incarnation !== this.#incarnation) continue;
        known = { header: read.header, endBytes: read.endBytes };
        this.#headers.set(inode, known);
      }
      segments.push({ inode, ...known });
    }
    return segments.sort((a, b) => a.header.number - b.header.number);
  }

  #reset({ snapshot }: SegmentHeader): void {
    this.#terms = [];
    this.#lastIndex = snapshot?.index ?? 0;
    this.#hardState = NOTHING;
  }

  #enter({ inode, header, endBytes }: Segment): void {
    const { snapshot, number, oldestNumber, stamp, hardState } = header;
    this.#number = number;
    this.#inode = inode;
    this.#atBytes = endBytes;
    this.#seed = segmentSeed(stamp, number, this.#digest);
    this.#hardState = hardState;
    this.#snapshotIndex = snapshot?.index ?? 0;
    // Nothing before this segment counts: another node's snapshot replaced it, or this one covers it.
    if (oldestNumber === number) this.#lastIndex = this.#snapshotIndex;
    this.#read(inode);
  }

  #read(inode: Inode): void {
    const bytes = inode.durableView();
    if (bytes.length === this.#atBytes) return;
    const { records, endBytes } = readRecords(bytes, this.#atBytes, this.#seed, this.#digest);
    this.#atBytes = endBytes;
    for (const record of records) this.#add(record);
  }

  #add(record: WalRecord): void {
    if (record.type === "batch") return;
    if (record.type === "hard-state") {
      this.#hardState = record.hardState;
      return;
    }
    const { index, term } = record;
    const { commit } = this.#hardState;
    if (index <= commit) this.fault ??= `commit index ${commit} is on disk before entry ${index}, which it covers`;
    if (index <= this.#lastIndex && this.#terms[index] === term)
      this.fault ??= `entry ${index} of term ${term} is written again, and cuts off what follows it up to ${this.#lastIndex}`;
    this.#terms[index] = term;
    this.#lastIndex = index;
    this.#highestIndex = Math.max(this.#highestIndex, index);
  }
}

function nameOf(number: number): string {
  return `wal-${String(number).padStart(10, "0")}`;
}
