// Copies of a node's sealed segments (`events-…`, `receipts-…`), next to a snapshot: checked, and put into the directory that the snapshot is
// restored to, before that belongs to a node. A crash in between leaves a directory that no server takes for its own; the same
// command goes on from there.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ChainPoint } from "../../core/archive/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { decodeSnapshotFile } from "../../core/wal/index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { readStampOf } from "../../engine/stamp-reader.ts";
import { type ArchiveKind, EVENTS, RECEIPTS, type UsableCopies, usableCopies } from "../../logs/index.ts";
import type { Disk } from "../../ports/disk.ts";
import { openArchive, refuseForeignHistory } from "../assembly/history.ts";
import { serverMachine } from "../assembly/machine.ts";
import { SYSTEM } from "./system.ts";

export interface PlacedHistory {
  /** History begins there; null: with the segment that the snapshot itself has. */
  readonly start: ChainPoint | null;
  /** The same of receipts. */
  readonly receiptsStart: ChainPoint | null;
  readonly notes: readonly string[];
}

/** `file` is the snapshot. Where it can't be restored nothing is placed, and the restore itself says why. */
export async function placeHistory(disk: Disk, file: Uint8Array, from: string): Promise<PlacedHistory> {
  const saved = decodeSnapshotFile(file, systemDigest);
  if (saved.kind !== "whole" || (await readStampOf(disk, systemDigest)) !== null)
    return { start: null, receiptsStart: null, notes: [] };
  const copies = [await copiesIn(from, saved.data, EVENTS), await copiesIn(from, saved.data, RECEIPTS)] as const;
  const notes = copies.flatMap((usable) => (usable.why === null ? [] : [copiesNote(from, usable)]));
  const [events, receipts] = copies;
  if (events.start === null && receipts.start === null) await refuseForeignHistory(disk, systemDigest);
  await place(disk, from, EVENTS, events);
  await place(disk, from, RECEIPTS, receipts);
  return { start: events.start, receiptsStart: receipts.start, notes };
}

async function place(disk: Disk, from: string, kind: ArchiveKind, usable: UsableCopies): Promise<void> {
  if (usable.start === null) return;
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const around = { ...SYSTEM, disk, logger: quiet, failed: () => undefined };
  const archive = await openArchive({ ...around, of: kind, syncs: "asked" });
  try {
    // What an earlier attempt has placed is kept; history of another line is set aside.
    await archive.restore(usable.captured);
    if (archive.lastSequence !== usable.lastEvent) throw aheadOf(usable.lastEvent);
    for (const entry of archive.missing()) {
      const name = kind.names.segment(entry.first);
      const bytes = await readCopy(from, name);
      if (bytes === null) throw new TenureError("CONFIG_INVALID", `${join(from, name)} was there, and is gone.`);
      await archive.install(bytes, entry);
    }
    await archive.durable(archive.lastSequence);
  } finally {
    await archive.close();
  }
}

/** How much of the history a snapshot's `data` can be restored with. */
export async function copiesIn(from: string, data: Uint8Array, kind: ArchiveKind): Promise<UsableCopies> {
  const captured = capturedIn(data, kind);
  if (captured.length === 0) return { captured, start: null, firstEvent: 1, lastEvent: 0, segments: 0, why: null };
  return await usableCopies(captured, (name) => readCopy(from, name), kind, SYSTEM);
}

export function copiesNote(from: string, { why }: UsableCopies): string {
  return `What is older can't be used. ${from} holds ${why}. Copy the segments after the snapshot was saved, not before.`;
}

function aheadOf(lastEvent: number): TenureError {
  const why = `the data directory is not empty: its history goes on after event ${lastEvent}, the snapshot's last`;
  return new TenureError(
    "CONFIG_INVALID",
    `${why}. Give those files with --history, and begin with an empty directory.`,
  );
}

/** What the snapshot carries of the archive; nothing where it has none. */
function capturedIn(data: Uint8Array, kind: ArchiveKind): Uint8Array {
  let found = new Uint8Array(0);
  const { machine, keepIn, keepReceiptsIn } = serverMachine(systemDigest);
  (kind === RECEIPTS ? keepReceiptsIn : keepIn)({
    append: () => undefined,
    capture: () => Promise.resolve(found),
    restore: (captured) => {
      found = captured.slice();
      return Promise.resolve();
    },
  });
  machine.restore(data);
  return found;
}

async function readCopy(from: string, name: string): Promise<Uint8Array | null> {
  try {
    return await readFile(join(from, name));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new TenureError("CONFIG_INVALID", `${join(from, name)} can't be read: ${message}.`, { cause: error });
  }
}
