// Reads events again, in order, from any of them on: from memory what is not sealed and written yet, the rest from files.
// Each event's checksum is looked at; a segment in which one is wrong is set aside and fetched again.

import {
  type ArchivedEvent,
  type ChainPoint,
  type Holdings,
  type SegmentBuilder,
  type SegmentCursor,
  type SegmentEntry,
} from "../../core/archive/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { READ_BYTES_MAX, READ_EVENTS_MAX, READ_STEPS_PER_LOOK } from "../limits.ts";
import { notNow } from "./file-read.ts";
import type { ArchiveEnvironment } from "./recovery.ts";
import type { SegmentFiles } from "./segment-files.ts";
import { Slices } from "./slices.ts";

export interface Readable {
  readonly environment: ArchiveEnvironment;
  readonly files: SegmentFiles;
  readonly holdings: () => Holdings;
  readonly inMemory: (sequence: number) => SegmentBuilder | undefined;
  readonly lastSequence: () => number;
  readonly head: () => ChainPoint;
  /** `sequence`: the first event that can't be read. */
  readonly damaged: (entry: SegmentEntry, sequence: number, why: string) => Promise<void>;
}

/** Where a segment's events are read from. */
interface Source {
  readonly before: ChainPoint;
  cursorAt(sequence: number): SegmentCursor;
}

export async function* readEvents(
  readable: Readable,
  from: number,
  max: number,
): AsyncGenerator<readonly ArchivedEvent[]> {
  assert(from >= 1, "events are counted from one", () => String(from));
  const { clock } = readable.environment;
  const slices = new Slices(clock);
  let next = from;
  const end = (): number => Math.min(readable.lastSequence(), from + max - 1);
  while (next <= end()) {
    const { entry, source } = await sourceOf(readable, next);
    const cursor = source.cursorAt(next);
    slices.begin();
    for (;;) {
      const batch = takeBatch(readable, cursor, next, end());
      if (batch === "bad") throw await damagedAt(readable, entry, next, cursor.why);
      if (batch.length === 0) {
        if (entry !== null && next <= Math.min(entry.last, end()))
          throw await damagedAt(readable, entry, next, "the file ends before it");
        break;
      }
      next += batch.length;
      yield batch;
      if (slices.isOver) await slices.pause();
    }
  }
}

/** The events from `next` on, up to `last` or the segment's end; "bad" where the next one can't be read. */
function takeBatch(readable: Readable, cursor: SegmentCursor, next: number, last: number): ArchivedEvent[] | "bad" {
  const { chain } = readable.environment;
  const batch: ArchivedEvent[] = [];
  let bytes = 0;
  while (batch.length < READ_EVENTS_MAX && bytes < READ_BYTES_MAX && cursor.sequence < last) {
    const step = cursor.next();
    if (step === "bad") return batch.length > 0 ? batch : "bad";
    if (step !== "event") break;
    if (cursor.sequence < next) continue;
    const data = cursor.data();
    bytes += data.length;
    batch.push({ sequence: cursor.sequence, bytes: data, eventHash: chain.hash(data) });
  }
  return batch;
}

/** The chain after one event. */
export async function pointAt(readable: Readable, sequence: number): Promise<ChainPoint> {
  const { environment, holdings } = readable;
  if (sequence === holdings().start.sequence) return holdings().start;
  if (sequence > readable.lastSequence()) throw notHere(sequence, "it is not applied here yet");
  const { entry, source } = await sourceOf(readable, sequence);
  const walk = environment.chain.follow(source.before);
  if (walk === null) throw await damagedAt(readable, entry, sequence, "its header names no place in a chain");
  const cursor = source.cursorAt(source.before.sequence + 1);
  const slices = new Slices(environment.clock);
  for (let steps = 1; cursor.sequence < sequence; steps++) {
    if (cursor.next() !== "event") throw await damagedAt(readable, entry, cursor.sequence + 1, cursor.why);
    walk.check(cursor.data());
    if (steps % READ_STEPS_PER_LOOK === 0 && slices.isOver) await slices.pause();
  }
  const fault = walk.fault(null);
  if (fault !== null) throw await damagedAt(readable, entry, fault.sequence, fault.why);
  return walk.point();
}

/** The chain after a segment, as what follows it says; null where that is not here, or can't be read now. */
export async function pointBehind(readable: Readable, entry: SegmentEntry): Promise<ChainPoint | null> {
  if (entry.last === readable.lastSequence()) return readable.head();
  try {
    const { before } = (await sourceOf(readable, entry.last + 1)).source;
    return before.hash === entry.lastHash ? before : null;
  } catch (error) {
    if (TenureError.is(error) && isUnreadable(error.code)) return null;
    throw error;
  }
}

function isUnreadable(code: TenureError["code"]): boolean {
  return code === "DISK_DAMAGED" || code === "BACKEND_UNAVAILABLE" || code === "EVENTS_LOST";
}

/** Where history starts for one who can get nothing of what is missing: after the last of it; null where nothing is. */
export async function startBehindMissing(readable: Readable): Promise<ChainPoint | null> {
  for (;;) {
    const last = readable.holdings().missing().at(-1);
    if (last === undefined) return null;
    if (last.last === readable.lastSequence()) return readable.head();
    try {
      return (await sourceOf(readable, last.last + 1)).source.before;
    } catch (error) {
      // Then that one is missing too: the next turn begins after it.
      if (!TenureError.is(error) || error.code !== "DISK_DAMAGED") throw error;
    }
  }
}

/** A piece of a sealed segment's file; null where it is not here. */
export async function pieceOf(
  { holdings, files, damaged }: Readable,
  first: number,
  offsetBytes: number,
  bytesMax: number,
): Promise<Uint8Array | null> {
  const entry = holdings().find(first);
  if (entry === undefined || entry.first !== first || holdings().stateOf(entry) !== "whole") return null;
  const read = await files.read(entry).catch(notNow);
  if (read?.kind === "sealed") return read.bytes.subarray(offsetBytes, offsetBytes + bytesMax);
  if (read !== null) await damaged(entry, first, read.why);
  return null;
}

/** Throws LOG_COMPACTED where an event was let go. */
function checkKept({ holdings }: Readable, sequence: number): void {
  const { start } = holdings();
  if (sequence > start.sequence) return;
  const next = `Begin with event ${start.sequence + 1}`;
  throw new TenureError("LOG_COMPACTED", `event ${sequence} is behind the checkpoint and is not kept. ${next}.`);
}

async function sourceOf(readable: Readable, sequence: number): Promise<{ entry: SegmentEntry | null; source: Source }> {
  checkKept(readable, sequence);
  const builder = readable.inMemory(sequence);
  if (builder !== undefined) {
    return { entry: null, source: { before: builder.header.before, cursorAt: (at) => builder.cursorAt(at) } };
  }
  const entry = readable.holdings().find(sequence);
  if (entry !== undefined && readable.holdings().isLost(entry)) throw lostIn(entry);
  if (entry === undefined || readable.holdings().stateOf(entry) === "missing") {
    throw notHere(sequence, "it is missing here, and the other members are asked for it");
  }
  const read = await readable.files.read(entry);
  if (read.kind === "damaged") {
    checkKept(readable, sequence);
    throw await damagedAt(readable, entry, sequence, read.why);
  }
  const { sealed } = read;
  return { entry, source: { before: sealed.header.before, cursorAt: (at) => sealed.cursorAt(at) } };
}

function lostIn({ first, last }: SegmentEntry): TenureError {
  const next = `Go on with event ${last + 1}`;
  return new TenureError(
    "EVENTS_LOST",
    `events ${first} to ${last} are lost: no member of the cluster has them. ${next}.`,
  );
}

function notHere(sequence: number, why: string): TenureError {
  const next = "Ask another node, or this one again later";
  return new TenureError("BACKEND_UNAVAILABLE", `event ${sequence} is not in this node's archive: ${why}. ${next}.`);
}

async function damagedAt(
  readable: Readable,
  entry: SegmentEntry | null,
  sequence: number,
  why: string,
): Promise<TenureError> {
  assert(entry !== null, "what is in memory can be read", () => `event ${sequence}: ${why}`);
  await readable.damaged(entry, sequence, why);
  const next = "The segment is set aside, and asked for at the other members; ask one of them, or this node later";
  return new TenureError(
    "DISK_DAMAGED",
    `${readable.environment.names.segment(entry.first)} is damaged at event ${sequence}: ${why}. ${next}.`,
  );
}
