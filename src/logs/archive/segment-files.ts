// Sealed segments on the disk, read as wholes: the last few that were read stay in memory, because readers come in
// order and a peer fetches a segment piece by piece. One segment bounds what a reader holds.
//
// Invariant: what is returned as sealed is, by its header and footer, the segment that the entry lists. A whole file in
// another's place (a mistake of a backup, a write that went astray) is damage like any other.

import { isSameBytes, openSealed, type SealedSegment, type SegmentEntry } from "../../core/archive/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk } from "../../ports/disk.ts";
import { SEGMENTS_KEPT_MAX } from "../limits.ts";
import type { ArchiveNames } from "./file-names.ts";
import { readFile, type FileRead } from "./file-read.ts";

interface Kept {
  readonly entry: SegmentEntry;
  readonly read: Promise<SegmentRead>;
}

export type SegmentRead =
  | { readonly kind: "sealed"; readonly bytes: Uint8Array; readonly sealed: SealedSegment }
  | { readonly kind: "damaged"; readonly why: string };

export class SegmentFiles {
  readonly #disk: Disk;
  readonly #names: ArchiveNames;
  readonly #digest: Digest;
  readonly #kept: Kept[] = [];

  constructor({ disk, names, digest }: { readonly disk: Disk; readonly names: ArchiveNames; readonly digest: Digest }) {
    this.#disk = disk;
    this.#names = names;
    this.#digest = digest;
  }

  /** Rejects with BACKEND_UNAVAILABLE where it can't be read now. */
  async read(entry: SegmentEntry): Promise<SegmentRead> {
    const at = this.#kept.findIndex((kept) => kept.entry === entry);
    const kept = at < 0 ? { entry, read: this.#open(entry) } : this.#kept.splice(at, 1)[0]!;
    this.#kept.push(kept);
    if (this.#kept.length > SEGMENTS_KEPT_MAX) this.#kept.shift();
    try {
      const read = await kept.read;
      if (read.kind === "damaged") this.#drop(kept);
      return read;
    } catch (error) {
      this.#drop(kept);
      throw error;
    }
  }

  /** As it is on the disk now, and not judged. */
  readAgain(entry: SegmentEntry): Promise<FileRead> {
    return readFile(this.#disk, this.#names.segment(entry.first));
  }

  forget(entry: SegmentEntry): void {
    const kept = this.#kept.find((one) => one.entry.first === entry.first);
    if (kept !== undefined) this.#drop(kept);
  }

  async #open(entry: SegmentEntry): Promise<SegmentRead> {
    const read = await this.readAgain(entry);
    if (read.kind === "damaged") return read;
    const sealed = openSealed(read.bytes, this.#digest);
    if (typeof sealed === "string") return { kind: "damaged", why: sealed };
    const first = sealed.header.before.sequence + 1;
    if (first !== entry.first) return { kind: "damaged", why: `it starts with event ${first} under another name` };
    if (!isSameBytes(sealed.contentHash, entry.contentHash))
      return { kind: "damaged", why: "its contents are not those that were sealed" };
    return { kind: "sealed", bytes: read.bytes, sealed };
  }

  #drop(kept: Kept): void {
    const at = this.#kept.indexOf(kept);
    if (at >= 0) this.#kept.splice(at, 1);
  }
}
