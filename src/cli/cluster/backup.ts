// `tenure cluster snapshot save DIR --keep N`: a backup from a timer. The file gets its name when it is whole, checked and on disk;
// only then do older ones go. What fails leaves every backup that was there.
//
// Only files whose names this command makes are touched. What a killed run has left unfinished is removed after a day: until then
// it may be another run's, still under way.

import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";
import type { Client } from "../../client/index.ts";
import { BACKUP_UNFINISHED_MS } from "../limits.ts";
import { saveSnapshot, type SnapshotFile } from "./snapshot.ts";

/** By name they are in the order of their time. */
const BACKUP = /^tenure-\d{8}T\d{6}\.\d{3}Z\.snap$/;
const UNFINISHED = /^tenure-\d{8}T\d{6}\.\d{3}Z\.snap\.[0-9a-f]+\.part$/;

export interface BackupOptions {
  /** So many stay, with the new one. */
  readonly keep: number;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

export interface Backup extends SnapshotFile {
  readonly removed: readonly string[];
}

export async function saveBackup(client: Client, directory: string, options: BackupOptions): Promise<Backup> {
  const { keep, signal, nowMs } = options;
  const name = `tenure-${new Date(nowMs).toISOString().replaceAll(/[-:]/g, "")}.snap`;
  const saved = await saveSnapshot(client, join(directory, name), { force: false, signal });
  return { ...saved, removed: await removeOld(directory, name, keep, nowMs) };
}

/** The new one stays also where a clock that was set back makes it the oldest by its name. */
async function removeOld(directory: string, newName: string, keep: number, nowMs: number): Promise<readonly string[]> {
  const names = (await readdir(directory)).toSorted();
  const older = names.filter((name) => BACKUP.test(name) && name !== newName);
  const removed = older.slice(0, Math.max(0, older.length - (keep - 1)));
  for (const name of names.filter((one) => UNFINISHED.test(one))) {
    const changedMs = (await stat(join(directory, name)).catch(() => null))?.mtimeMs ?? nowMs;
    if (nowMs - changedMs > BACKUP_UNFINISHED_MS) removed.push(name);
  }
  for (const name of removed) {
    await rm(join(directory, name), { force: true }).catch((error: Error) => {
      const text = `${join(directory, newName)} is saved, but the old ${name} can't be removed: ${error.message}.`;
      throw new TenureError("CONFIG_INVALID", text, { cause: error });
    });
  }
  return removed;
}
