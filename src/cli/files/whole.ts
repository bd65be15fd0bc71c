// A file that is written next to its place and gets its name when it is whole.
//
//   opened (next to, exclusive, 0600) ──write…──▶ synced ──checked by the caller──▶ named | dropped
//
// Invariants: what is there under the name is whole and on disk; a file that was there before is not overwritten unless that was
// asked for, also where it appears meanwhile; whatever fails leaves nothing behind. Every error is reported as this machine's own.

import { randomBytes } from "node:crypto";
import { access, link, open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";

/** Of file systems without hard links. */
const NO_LINKS: readonly (string | undefined)[] = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];

export class NewFile {
  readonly file: string;
  /** Where it is written. */
  readonly part: string;
  readonly #handle: FileHandle;
  readonly #isForced: boolean;

  private constructor(file: string, part: string, handle: FileHandle, isForced: boolean) {
    this.file = file;
    this.part = part;
    this.#handle = handle;
    this.#isForced = isForced;
  }

  /** Rejects where it can't be written here, before anybody is asked for what is to be in it. */
  static async open(file: string, isForced: boolean): Promise<NewFile> {
    if (!isForced && (await exists(file))) throw thereAlready(file);
    const part = `${file}.${randomBytes(6).toString("hex")}.part`;
    const handle = await local(file, () => open(part, "wx", 0o600));
    return new NewFile(file, part, handle, isForced);
  }

  async write(bytes: Uint8Array): Promise<void> {
    await local(this.file, () => this.#handle.writeFile(bytes));
  }

  async sync(): Promise<void> {
    await local(this.file, () => this.#handle.sync());
  }

  async name(): Promise<void> {
    await local(this.file, () => (this.#isForced ? rename(this.part, this.file) : this.#link()));
    await local(this.file, () => syncDirectory(dirname(this.file)));
  }

  /** Must be called, whatever came. */
  async close(): Promise<void> {
    await this.#handle.close();
    await rm(this.part, { force: true });
  }

  /** A second name, which is refused where there is such a file: a rename would replace it. */
  async #link(): Promise<void> {
    try {
      await link(this.part, this.file);
    } catch (error) {
      if (!NO_LINKS.includes((error as NodeJS.ErrnoException).code)) throw error;
      // Ours from here on, so that what the rename replaces is nobody's.
      await (await open(this.file, "wx", 0o600)).close();
      await rename(this.part, this.file).catch(async (failed: unknown) => {
        await rm(this.file, { force: true });
        throw failed;
      });
    }
  }
}

async function local<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw localError(file, error as NodeJS.ErrnoException);
  }
}

function localError(file: string, error: NodeJS.ErrnoException): TenureError {
  const options = { cause: error };
  switch (error.code) {
    case "EEXIST":
      return thereAlready(file);
    case "ENOSPC":
    case "EDQUOT":
      return new TenureError(
        "DISK_FULL",
        `${file} can't be written: the disk here is full. Free space, then again.`,
        options,
      );
    case "EIO":
      return new TenureError(
        "DISK_DAMAGED",
        `${file} can't be written: the disk here fails (${error.message}).`,
        options,
      );
    default: {
      const why = error.code === "ENOENT" ? `there is no directory ${dirname(file)}` : error.message;
      return new TenureError("BAD_REQUEST", `${file} can't be written here: ${why}. Give another name.`, options);
    }
  }
}

function thereAlready(file: string): TenureError {
  return new TenureError("CONFIG_INVALID", `${file} is there already; give another name, or --force to replace it.`);
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
