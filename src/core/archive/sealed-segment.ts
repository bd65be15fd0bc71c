// Reads events of a sealed segment from any of them on, by the index in its footer. What is read is checked against
// its checksum; that the footer fits the contents is for `checkSegment` to say.

import type { Digest } from "../../ports/digest.ts";
import { SegmentCursor } from "./segment-cursor.ts";
import { footerAt, readFooter, readHeader, type SegmentHeader } from "./segment-format.ts";

export interface SealedSegment {
  readonly header: SegmentHeader;
  readonly contentHash: Uint8Array;
  /** Reads from an event of the segment on. */
  cursorAt(sequence: number): SegmentCursor;
}

/** A text says why it can't be read. */
export function openSealed(bytes: Uint8Array, digest: Digest): SealedSegment | string {
  const head = readHeader(bytes, digest);
  if (head.kind === "newer") return `format version ${head.version}`;
  if (head.kind === "bad") return head.why;
  const at = footerAt(bytes);
  if (at < head.endBytes) return "it does not end with a footer";
  const footer = readFooter(bytes, at, digest);
  if (typeof footer === "string") return footer;
  const { header } = head;
  const cursorAt = (sequence: number): SegmentCursor => {
    const events = sequence - header.before.sequence - 1;
    const block = footer.blocks.findLast(({ eventsBefore }) => eventsBefore <= events);
    const { offsetBytes, seed, eventsBefore } = block ?? {
      offsetBytes: head.endBytes,
      seed: head.crc,
      eventsBefore: 0,
    };
    return new SegmentCursor(bytes, offsetBytes, seed, header.before.sequence + eventsBefore, digest);
  };
  return { header, contentHash: footer.contentHash, cursorAt };
}
