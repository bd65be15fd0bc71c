// The files of an archive: their names, and how they are written.
//
// A directory may hold several archives, each with a name of its own; here it is "events".
//
//   events-0000000000000001    the segment that starts with event 1; names sort by sequence
//   events-catalog             what is known of the segments, so that a start need not read them all
//   tmp-events-…               a file that is not finished; worthless after a restart
//   damaged-events-…           a segment in which damage was found: evidence, until a peer's copy takes its place. A start
//                              looks at it again, and takes it back where it is whole after all
//   former-events-…            history that was given up, of another line or after a gap; never read

import { durableFiles } from "../../loops/durable-file.ts";

const DAMAGED_PREFIX = "damaged-";
const FORMER_PREFIX = "former-";
const UNFINISHED_PREFIX = "tmp-";
const SEQUENCE_DIGITS = 16;

/** How one archive names its files. */
export class ArchiveNames {
  readonly catalog: string;
  readonly #name: string;
  readonly #pattern: RegExp;

  constructor(name: string) {
    this.#name = name;
    this.catalog = `${name}-catalog`;
    this.#pattern = new RegExp(`^${name}-([0-9]{${SEQUENCE_DIGITS}})$`);
  }

  segment(first: number): string {
    return `${this.#name}-${String(first).padStart(SEQUENCE_DIGITS, "0")}`;
  }

  /** The first sequence of the segment with this name; null where it is no segment's. */
  firstOf(name: string): number | null {
    const match = this.#pattern.exec(name);
    return match === null ? null : Number(match[1]);
  }

  damaged(first: number): string {
    return `${DAMAGED_PREFIX}${this.segment(first)}`;
  }

  /** The first sequence of the damaged segment with this name; null where it is no such name. */
  damagedFirstOf(name: string): number | null {
    return name.startsWith(DAMAGED_PREFIX) ? this.firstOf(name.slice(DAMAGED_PREFIX.length)) : null;
  }

  former(first: number): string {
    return `${FORMER_PREFIX}${this.segment(first)}`;
  }

  /** Whether it was set aside, for an operator to look at and to remove. */
  isAside(name: string): boolean {
    return [DAMAGED_PREFIX, FORMER_PREFIX].some((prefix) => name.startsWith(`${prefix}${this.#name}-`));
  }

  isUnfinished(name: string): boolean {
    return name.startsWith(`${UNFINISHED_PREFIX}${this.#name}-`);
  }
}

export const { syncFile, syncDirectory, writeDurably } = durableFiles(
  "the archive's directory",
  (what, why) => `${what} could not be synced, and may have lost events: ${why}.`,
);
