// The saved state of mesh.sqlite: a copy of the file as it was after some arrival, from which it is built again where the archives do not begin
// with the first event any more. Once they are cut, it is the only copy of what was said before the cut; so it has a sum, and is never changed.
//
//   mesh.sqlite.base        which file it is, through which arrival, and its sum
//   mesh.sqlite.base-…      the file
//
// Invariant: the record is written last and replaced at once, so there is always a whole saved state, the one before or the new one.

import { createHash } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  createReadStream,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { TenureError } from "../../../core/kit/errors.ts";
import { parseJson } from "../../../core/kit/parse-json.ts";
import { BASE_READ_BYTES } from "../limits.ts";
import { filesNextTo } from "../store.ts";

const BASE_FILE = /^\.base-/;

export interface Base {
  /** The last arrival that is in it. */
  readonly through: number;
  /** Its name, next to the file that it was made of. */
  readonly file: string;
  readonly sha256: string;
}

/** Null: there is none, or its record can't be read. */
export function readBase(path: string): Base | null {
  let read: Partial<Base> | null;
  try {
    read = parseJson(readFileSync(`${path}.base`, "utf8")) as Partial<Base> | null;
  } catch {
    return null;
  }
  const { through, file, sha256 } = read ?? {};
  const isWhole = typeof file === "string" && file === basename(file) && typeof sha256 === "string";
  return isWhole && Number.isSafeInteger(through) ? { through: through!, file, sha256 } : null;
}

/** Makes this file, which nobody has open, the saved state of `path`. Not in one go: the main thread has other things to do. */
export async function keepBase(path: string, from: string, through: number): Promise<Base> {
  const handle = await open(from, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  const sum = createHash("sha256");
  for await (const chunk of createReadStream(from, { highWaterMark: BASE_READ_BYTES })) sum.update(chunk as Buffer);
  const sha256 = sum.digest("hex");
  // Another state of the same arrival has another name: the one before stays whole until the record names this one.
  const base = { through, file: `${basename(path)}.base-${through}-${sha256.slice(0, 12)}`, sha256 };
  const kept = join(dirname(path), base.file);
  renameSync(from, kept);
  // The name first: a record without its file would give up the one before, too.
  sync(dirname(path));
  writeRecord(path, base);
  for (const other of filesNextTo(path, BASE_FILE)) if (other !== kept) rmSync(other, { force: true });
  return base;
}

export function dropBase(path: string): void {
  rmSync(`${path}.base`, { force: true });
  for (const file of filesNextTo(path, BASE_FILE)) rmSync(file, { force: true });
}

/** A copy of the saved state of `of` as `path`, where there is no file. Throws DISK_DAMAGED where it is not what was saved, and DISK_FULL. */
export function copyBase(of: string, { file, sha256 }: Base, path: string): void {
  const made = `${path}.tmp`;
  try {
    copyFileSync(join(dirname(of), file), made);
    if (sumOf(made) !== sha256) throw damaged(file, "its bytes are not those that were saved");
    // Before it has its name: what a crash leaves half written would be taken for what was saved.
    sync(made);
    renameSync(made, path);
  } catch (error) {
    rmSync(made, { force: true });
    if (TenureError.is(error)) throw error;
    const { code } = error as { code?: unknown };
    if (code === "ENOSPC" || code === "EDQUOT") {
      throw new TenureError("DISK_FULL", `there is no room for a copy of ${file}.`, { cause: error });
    }
    if (code === "ENOENT" || code === "EIO") throw damaged(file, String(error));
    throw new TenureError("BACKEND_UNAVAILABLE", `${file} can't be copied: ${String(error)}.`, { cause: error });
  }
}

function damaged(file: string, why: string): TenureError {
  return new TenureError("DISK_DAMAGED", `${file} can't be used: ${why}.`);
}

function writeRecord(path: string, base: Base): void {
  const made = `${path}.base.tmp`;
  writeFileSync(made, `${JSON.stringify(base)}\n`, { flush: true });
  renameSync(made, `${path}.base`);
  sync(dirname(path));
}

/** A file, or the names in a directory. */
function sync(path: string): void {
  const opened = openSync(path, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

function sumOf(path: string): string {
  const sum = createHash("sha256");
  const buffer = Buffer.allocUnsafe(BASE_READ_BYTES);
  const file = openSync(path, "r");
  try {
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer))
      sum.update(buffer.subarray(0, read));
  } finally {
    closeSync(file);
  }
  return sum.digest("hex");
}
