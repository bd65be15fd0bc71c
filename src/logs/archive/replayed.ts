// Events that a log brings again, compared with those that are here. In a segment that is on the disk alone a difference is seen at
// its last event, at the latest: each event's hash is over the one before, so all that follow a different one differ too.

import {
  isSameBytes,
  type CommittedEvent,
  type Manifest,
  type SegmentBuilder,
  type SegmentCursor,
} from "../../core/archive/index.ts";
import { chainBroken } from "../../core/events/index.ts";
import type { ArchiveNames } from "./file-names.ts";

export class Replayed {
  #at: { readonly held: SegmentBuilder; readonly cursor: SegmentCursor } | null = null;

  /** Throws CHAIN_BROKEN. `known`: the hash of the event that is here, where it is at hand; `held`: its segment, while it is in memory. */
  check(one: CommittedEvent, known: string | null, held: SegmentBuilder | undefined): void {
    const { sequence, eventHash } = one.event;
    if (known === null ? held === undefined || this.#isIn(held, one) : eventHash === known) return;
    throw chainBroken(sequence, "the archive holds another event in its place");
  }

  /** They come in order, so each is read once. */
  #isIn(held: SegmentBuilder, { event: { sequence }, bytes }: CommittedEvent): boolean {
    const isNext = this.#at?.held === held && this.#at.cursor.sequence === sequence - 1;
    const at = isNext ? this.#at!.cursor : held.cursorAt(sequence);
    // A cursor reads what was there when it was made.
    const cursor = isNext && at.next() !== "event" ? held.cursorAt(sequence) : at;
    while (cursor.sequence < sequence && cursor.next() === "event");
    this.#at = { held, cursor };
    return cursor.sequence === sequence && isSameBytes(cursor.data(), bytes);
  }
}

export interface Listed {
  readonly manifest: Manifest;
  readonly lastSequence: number;
  readonly names: ArchiveNames;
}

/** The files of an archive with events after this one. */
export function filesBehind({ manifest, lastSequence, names }: Listed, sequence: number): string[] {
  const { start, segments } = manifest;
  const firsts = segments.filter(({ last }) => last > sequence).map(({ first }) => first);
  const open = (segments.at(-1)?.last ?? start.sequence) + 1;
  return [...firsts, ...(lastSequence >= open ? [open] : [])].map((first) => names.segment(first));
}
