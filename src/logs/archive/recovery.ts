// What a directory holds of an archive after a restart. Nothing is changed before all of it is judged.
//
// Whole segments that the catalog lists are believed without being read: `verify` and every read check them. The others
// are read: those that were sealed, installed or begun since the catalog was last written.
//
// The tail of the open segment is cut where it is torn. Any other damage is set aside and reported; the history then
// ends before it, and the snapshot that the node starts from says what lacks (Archive.restore). What was set aside before is
// looked at again: a file that is whole after all, and has no other in its place, is taken back.
//
// Invariant: what is believed is durable. After a kill, bytes may be visible that no sync has covered.

import {
  checkSegment,
  decodeCatalog,
  Holdings,
  isSameEntry,
  SegmentBuilder,
  type Catalog,
  type Chain,
  type ChainPoint,
  type SegmentLimits,
  type SegmentVerdict,
} from "../../core/archive/index.ts";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { type ArchiveNames, syncDirectory, syncFile } from "./file-names.ts";
import { readFile } from "./file-read.ts";
import { asideBytes } from "./aside.ts";
import { Slices } from "./slices.ts";

export interface ArchiveEnvironment {
  readonly disk: Disk;
  readonly names: ArchiveNames;
  readonly digest: Digest;
  readonly clock: Clock;
  readonly chain: Chain;
  readonly limits: SegmentLimits;
}

/**
 * For the operator. `sequence`: the first event that can't be read; from there on it will be fetched or replayed. `returned`: it
 * was set aside, is whole after all, and counts again.
 */
export interface Finding {
  readonly kind: "torn" | "damaged" | "returned";
  readonly file: string;
  readonly sequence: number;
  readonly why: string;
}

export interface Recovered {
  readonly holdings: Holdings;
  /** The chain at the end of what is here. */
  readonly head: ChainPoint;
  readonly open: { readonly builder: SegmentBuilder; readonly file: DiskFile } | null;
  readonly findings: readonly Finding[];
  /** Of files that were set aside. */
  readonly asideBytes: number;
}

export async function recoverArchive(environment: ArchiveEnvironment): Promise<Recovered> {
  return new Recovery(environment).run();
}

class Recovery {
  readonly #environment: ArchiveEnvironment;
  readonly #slices: Slices;
  readonly #findings: Finding[] = [];
  /** To be done when everything is judged. */
  readonly #believed: string[] = [];
  readonly #aside: number[] = [];
  readonly #obsolete: string[] = [];
  /** Whole, and under the name of a damaged one; and those of them that count again. */
  readonly #candidates = new Set<number>();
  readonly #returned = new Set<number>();
  #holdings = new Holdings();
  #after: ChainPoint | null = null;
  #open: { readonly header: SegmentBuilder["header"]; readonly bytes: Uint8Array; readonly isTorn: boolean } | null =
    null;

  constructor(environment: ArchiveEnvironment) {
    this.#environment = environment;
    this.#slices = new Slices(environment.clock);
  }

  get #names(): ArchiveNames {
    return this.#environment.names;
  }

  async run(): Promise<Recovered> {
    const { disk, names } = this.#environment;
    const found = (await disk.list("archive-list")).toSorted();
    this.#obsolete.push(...found.filter((name) => names.isUnfinished(name)));
    const present = new Set(found.map((name) => names.firstOf(name)).filter((first) => first !== null));
    const damaged = found.map((name) => names.damagedFirstOf(name)).filter((first) => first !== null);
    for (const first of damaged) if (!present.has(first)) await this.#lookAgain(first);
    const firsts = [...present, ...this.#candidates].toSorted((a, b) => a - b);
    const catalog = found.includes(names.catalog) ? await this.#readCatalog() : null;
    if (catalog !== null) await this.#listed(catalog, new Set(firsts));
    await this.#unlisted(firsts, Math.max(0, ...present));
    const head = this.#after ?? (await this.#headOfLast());
    this.#forgetDamaged(damaged, present);
    const open = await this.#change();
    return {
      holdings: this.#holdings,
      head,
      open,
      findings: this.#findings,
      asideBytes: (await asideBytes(this.#environment)) ?? 0,
    };
  }

  /** It may have been set aside for an error that has passed. */
  async #lookAgain(first: number): Promise<void> {
    const { verdict } = await this.#judge(first, this.#names.damaged(first), null);
    if (verdict.kind === "sealed") this.#candidates.add(first);
  }

  #return(first: number): void {
    if (!this.#candidates.has(first)) return;
    this.#returned.add(first);
    this.#find("returned", this.#names.damaged(first), first, "it is whole after all, and counts again");
  }

  /** Evidence that has served: of a segment that is whole again, or was let go. */
  #forgetDamaged(damaged: readonly number[], present: ReadonlySet<number>): void {
    for (const first of damaged) {
      const entry = this.#holdings.find(first);
      const isWhole = entry?.first === first && this.#holdings.stateOf(entry) === "whole" && present.has(first);
      if (isWhole || first <= this.#holdings.start.sequence) this.#obsolete.push(this.#names.damaged(first));
    }
  }

  async #readCatalog(): Promise<Catalog | null> {
    const { disk, digest, names } = this.#environment;
    const catalog = decodeCatalog(await disk.read(names.catalog, "archive-read-catalog"), digest);
    if (catalog === null) this.#find("damaged", names.catalog, 0, "it can't be read; all segments are read instead");
    return catalog;
  }

  async #listed(catalog: Catalog, firsts: ReadonlySet<number>): Promise<void> {
    const whole = new Set<number>();
    for (const entry of catalog.segments) {
      if (!firsts.has(entry.first)) {
        if (catalog.whole.has(entry.first))
          this.#find("damaged", this.#names.segment(entry.first), entry.first, "it is gone");
        continue;
      }
      // A candidate may be listed as whole: the process died before the catalog said otherwise.
      if (!catalog.whole.has(entry.first) || this.#candidates.has(entry.first)) {
        const { verdict } = await this.#check(entry.first, null);
        // Else it is what a slow node had of a segment before a snapshot took its place.
        if (verdict.kind !== "sealed" || !isSameEntry(verdict.entry, entry)) continue;
        this.#believed.push(this.#names.segment(entry.first));
      }
      this.#return(entry.first);
      whole.add(entry.first);
    }
    this.#holdings = Holdings.of({ ...catalog, whole });
  }

  /** Files after what the catalog lists, up to the first gap. */
  async #unlisted(firsts: readonly number[], lastPresent: number): Promise<void> {
    for (const first of firsts) {
      if (first <= this.#holdings.start.sequence && !this.#candidates.has(first))
        this.#obsolete.push(this.#names.segment(first));
      if (first <= this.#holdings.lastSequence) continue;
      // Also where the catalog is lost and history was cut: that a file is the first one is not for the file to say.
      if (first !== this.#holdings.lastSequence + 1) return;
      const { verdict, bytes } = await this.#check(first, this.#after);
      if (!this.#take(first, verdict, bytes, first >= lastPresent)) return;
    }
  }

  /** False: the history that can be used ends before this file. */
  #take(first: number, verdict: SegmentVerdict, bytes: Uint8Array, isLast: boolean): boolean {
    switch (verdict.kind) {
      case "sealed":
        if (!this.#isNext(first, verdict.header.before)) return false;
        this.#holdings.add(verdict.entry, "whole");
        this.#return(first);
        this.#believed.push(this.#names.segment(first));
        this.#after = verdict.after;
        return true;
      case "open":
        if (!isLast) {
          this.#setAside(first, verdict.after.sequence + 1, verdict.tail ?? "it has no footer, and a later one exists");
          return false;
        }
        if (!this.#isNext(first, verdict.header.before)) return false;
        if (verdict.tail !== null)
          this.#find("torn", this.#names.segment(first), verdict.after.sequence + 1, verdict.tail);
        this.#open = {
          header: verdict.header,
          bytes: bytes.subarray(0, verdict.sizeBytes),
          isTorn: verdict.tail !== null,
        };
        this.#after = verdict.after;
        return true;
      case "broken":
        if (isLast && verdict.isRot && verdict.sequence === first) {
          // Its header was never synced, or has rotted: then all of it is torn.
          this.#find("torn", this.#names.segment(first), first, verdict.why);
          this.#obsolete.push(this.#names.segment(first));
        } else this.#setAside(first, verdict.sequence, verdict.why);
        return false;
      case "newer":
        return false;
      default:
        return assertNever(verdict, "recover a segment");
    }
  }

  #isNext(first: number, before: ChainPoint): boolean {
    if (before.hash === this.#holdings.lastHash) return true;
    this.#setAside(first, first, "it does not continue the segment before it");
    return false;
  }

  async #check(first: number, before: ChainPoint | null): Promise<{ verdict: SegmentVerdict; bytes: Uint8Array }> {
    const name = this.#candidates.has(first) ? this.#names.damaged(first) : this.#names.segment(first);
    const judged = await this.#judge(first, name, before);
    if (judged.verdict.kind === "newer") throw unsupported(name, judged.verdict.version);
    return judged;
  }

  async #judge(
    first: number,
    name: string,
    before: ChainPoint | null,
  ): Promise<{ verdict: SegmentVerdict; bytes: Uint8Array }> {
    const { disk, chain, digest, limits } = this.#environment;
    const read = await readFile(disk, name);
    if (read.kind === "damaged") {
      // No rot: what can't be read is set aside and never removed.
      const verdict = { kind: "broken", sequence: first, why: read.why, isRot: false } as const;
      return { verdict, bytes: new Uint8Array(0) };
    }
    const { bytes } = read;
    this.#slices.begin();
    const input = { bytes, first, before, blockBytesMax: limits.blockBytesMax };
    return { verdict: await this.#slices.run(checkSegment(input, chain, digest)), bytes };
  }

  /**
   * The chain after the last sealed segment, from its footer: the catalog has only its hash. Segments at the end that are
   * not here are not counted: nothing can be appended after them, and the snapshot or the log brings them again.
   */
  async #headOfLast(): Promise<ChainPoint> {
    for (;;) {
      const last = this.#holdings.segments.at(-1);
      if (last === undefined) return this.#holdings.start;
      if (this.#holdings.stateOf(last) === "whole") {
        const { verdict } = await this.#check(last.first, null);
        if (verdict.kind === "sealed" && isSameEntry(verdict.entry, last)) return verdict.after;
        const isBroken = verdict.kind === "broken";
        this.#setAside(
          last.first,
          isBroken ? verdict.sequence : last.first,
          isBroken ? verdict.why : "it is another one",
        );
      }
      this.#holdings.dropLast();
    }
  }

  // ---- changing ------------------------------------------------------------------------------------

  async #change(): Promise<Recovered["open"]> {
    const { disk, digest, limits } = this.#environment;
    for (const first of this.#returned)
      await disk.rename(this.#names.damaged(first), this.#names.segment(first), "archive-take-back");
    for (const first of this.#aside)
      await disk.rename(this.#names.segment(first), this.#names.damaged(first), "archive-set-aside");
    for (const name of this.#believed) {
      const file = await disk.open(name, "archive-open");
      await syncFile(file, "archive-fdatasync");
      await file.close();
    }
    const open = this.#open;
    let file: DiskFile | null = null;
    if (open !== null) {
      file = await disk.open(this.#names.segment(open.header.before.sequence + 1), "archive-open");
      if (open.isTorn) await file.truncate(open.bytes.length, "archive-truncate");
      await syncFile(file, "archive-fdatasync");
    }
    await syncDirectory(disk, "archive-sync-directory");
    for (const name of this.#obsolete) await disk.remove(name, "archive-remove");
    if (open === null || file === null) return null;
    return { builder: SegmentBuilder.resume(open.header, open.bytes, limits, digest), file };
  }

  #setAside(first: number, sequence: number, why: string): void {
    // It lies aside already.
    if (this.#candidates.has(first)) return;
    this.#aside.push(first);
    this.#find("damaged", this.#names.segment(first), sequence, why);
  }

  #find(kind: Finding["kind"], file: string, sequence: number, why: string): void {
    this.#findings.push({ kind, file, sequence, why });
  }
}

function unsupported(name: string, version: number): TenureError {
  const next = "Start that release, or a later one, here";
  return new TenureError("FORMAT_UNSUPPORTED", `${name} has format version ${version}, from a later release. ${next}.`);
}
