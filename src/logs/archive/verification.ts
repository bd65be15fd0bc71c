// Goes through the whole archive as it is on the disk: every byte, every link, the tree; one segment in memory at a time.
//
//   progress*  then  (broken | missing | progress)*  then  end
//
// A file that can't be read for a moment ends it with BACKEND_UNAVAILABLE: that says nothing about the file.
// A segment that was damaged is named with the first event that can't be believed, set aside and fetched again; the
// walk goes on after it, from what the next segment's header says.

import {
  checkSegment,
  isSameBytes,
  isSameEntry,
  openSealed,
  type ChainPoint,
  type SegmentEntry,
} from "../../core/archive/index.ts";
import { assert, assertNever } from "../../core/kit/assert.ts";
import { readFile } from "./file-read.ts";
import type { Readable } from "./reading.ts";
import { Slices } from "./slices.ts";

export type VerifyStep =
  /** Everything up to `through` was looked at. */
  | { readonly kind: "progress"; readonly through: number }
  | { readonly kind: "broken"; readonly sequence: number; readonly file: string; readonly why: string }
  /** `isLost`: no member has it. */
  | { readonly kind: "missing"; readonly first: number; readonly last: number; readonly isLost: boolean }
  /** `point`: the chain at the end; null where the last segment is broken or missing. */
  | {
      readonly kind: "end";
      readonly isIntact: boolean;
      readonly events: number;
      readonly point: ChainPoint | null;
      readonly longestSliceMs: number;
    };

/** What is durable of the segment that is not sealed. */
export interface OpenOnDisk {
  readonly first: number;
  readonly last: number;
  readonly sizeBytes: number;
}

export interface Verifiable extends Readable {
  readonly open: () => OpenOnDisk | null;
  /** Makes durable what is in memory. */
  readonly settle: () => Promise<void>;
}

type Checked =
  | { readonly kind: "fine"; readonly events: number; readonly after: ChainPoint }
  | { readonly kind: "broken"; readonly sequence: number; readonly why: string; readonly isRot: boolean };

export function verifyArchive(verifiable: Verifiable, from: number): AsyncGenerator<VerifyStep> {
  return new Verification(verifiable).run(from);
}

class Verification {
  readonly #around: Verifiable;
  readonly #slices: Slices;
  #events = 0;
  #isIntact = true;
  #before: ChainPoint | null = null;

  constructor(around: Verifiable) {
    this.#around = around;
    this.#slices = new Slices(around.environment.clock);
  }

  async *run(from: number): AsyncGenerator<VerifyStep> {
    const { holdings, open, settle } = this.#around;
    await settle();
    let next = Math.max(1, from);
    for (;;) {
      const { start } = holdings();
      // Retention may go on meanwhile.
      if (next <= start.sequence + 1) {
        next = start.sequence + 1;
        this.#before = start;
      }
      const entry = holdings().find(next);
      if (entry === undefined) break;
      if (holdings().stateOf(entry) === "writing") {
        await settle();
        continue;
      }
      yield* this.#segment(entry);
      next = entry.last + 1;
    }
    const tail = open();
    if (tail !== null && tail.last >= next) yield* this.#tail(tail);
    const longestSliceMs = this.#slices.longestMs;
    yield { kind: "end", isIntact: this.#isIntact, events: this.#events, point: this.#before, longestSliceMs };
  }

  async *#segment(entry: SegmentEntry): AsyncGenerator<VerifyStep> {
    if (this.#around.holdings().stateOf(entry) === "missing") {
      this.#isIntact = false;
      this.#before = null;
      const isLost = this.#around.holdings().isLost(entry);
      yield { kind: "missing", first: entry.first, last: entry.last, isLost };
      return;
    }
    const checked = await this.#check(entry);
    // It was let go meanwhile.
    if (entry.last <= this.#around.holdings().start.sequence) return;
    if (checked.kind === "broken" && checked.isRot) await this.#around.damaged(entry, checked.sequence, checked.why);
    yield* this.#tell(entry.first, entry.last, checked);
  }

  async *#tail(tail: OpenOnDisk): AsyncGenerator<VerifyStep> {
    const { disk, names, chain, digest } = this.#around.environment;
    const read = await readFile(disk, names.segment(tail.first));
    if (read.kind === "damaged") {
      yield* this.#tell(tail.first, tail.last, broken(tail.first, read.why));
      return;
    }
    this.#slices.begin();
    const input = { bytes: read.bytes.subarray(0, tail.sizeBytes), first: tail.first, before: this.#before };
    const verdict = await this.#slices.run(checkSegment(input, chain, digest));
    assert(verdict.kind !== "sealed" && verdict.kind !== "newer", "the open segment has no footer", () => verdict.kind);
    if (verdict.kind === "broken") yield* this.#tell(tail.first, tail.last, verdict);
    else if (verdict.after.sequence < tail.last) {
      const why = verdict.tail ?? "the file ends before it";
      yield* this.#tell(tail.first, tail.last, {
        kind: "broken",
        sequence: verdict.after.sequence + 1,
        why,
        isRot: true,
      });
    } else {
      const events = verdict.after.sequence - tail.first + 1;
      yield* this.#tell(tail.first, tail.last, { kind: "fine", events, after: verdict.after });
    }
  }

  *#tell(first: number, last: number, checked: Checked): Generator<VerifyStep> {
    if (checked.kind === "broken") {
      this.#isIntact = false;
      this.#before = null;
      const file = this.#around.environment.names.segment(first);
      yield { kind: "broken", sequence: checked.sequence, file, why: checked.why };
      return;
    }
    this.#events += checked.events;
    this.#before = checked.after;
    yield { kind: "progress", through: last };
  }

  async #check(entry: SegmentEntry): Promise<Checked> {
    const { chain, digest, limits } = this.#around.environment;
    const read = await this.#around.files.readAgain(entry);
    if (read.kind === "damaged") return broken(entry.first, read.why);
    const { bytes } = read;
    this.#slices.begin();
    const input = { bytes, first: entry.first, before: this.#before, blockBytesMax: limits.blockBytesMax };
    const verdict = await this.#slices.run(checkSegment(input, chain, digest));
    switch (verdict.kind) {
      case "broken":
        return { ...verdict, isRot: verdict.isRot || !this.#isAsListed(bytes, entry) };
      case "newer":
        return broken(entry.first, `it has format version ${verdict.version}`);
      case "open":
        return broken(Math.min(verdict.after.sequence + 1, entry.last), verdict.tail ?? "it has no footer");
      case "sealed":
        if (!isSameEntry(verdict.entry, entry))
          return broken(entry.first, "its contents are not those that were sealed");
        return (
          this.#checkpointIn(entry, bytes) ?? {
            kind: "fine",
            events: entry.last - entry.first + 1,
            after: verdict.after,
          }
        );
      default:
        return assertNever(verdict, "verify a segment");
    }
  }

  /** Then another copy would be as broken: the mistake is ours, and nobody can repair it by fetching. */
  #isAsListed(bytes: Uint8Array, entry: SegmentEntry): boolean {
    const sealed = openSealed(bytes, this.#around.environment.digest);
    return typeof sealed !== "string" && isSameBytes(sealed.contentHash, entry.contentHash);
  }

  /** Where history was cut, its first events are believed because they lead to the checkpoint. */
  #checkpointIn(entry: SegmentEntry, bytes: Uint8Array): Checked | null {
    const { checkpoint } = this.#around.holdings();
    if (checkpoint === null || checkpoint.sequence < entry.first || checkpoint.sequence > entry.last) return null;
    const { chain, digest } = this.#around.environment;
    const sealed = openSealed(bytes, digest);
    if (typeof sealed === "string") return broken(entry.first, sealed);
    const cursor = sealed.cursorAt(checkpoint.sequence);
    while (cursor.sequence < checkpoint.sequence && cursor.next() === "event");
    if (chain.hash(cursor.data()) === checkpoint.hash) return null;
    return { ...broken(checkpoint.sequence, "it is not the event of the checkpoint"), isRot: false };
  }
}

function broken(sequence: number, why: string): Checked & { readonly kind: "broken" } {
  return { kind: "broken", sequence, why, isRot: true };
}
