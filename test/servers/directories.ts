// Temporary directories of servers, and copies of directories while a server writes to them.

import { chmod, chown, copyFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Account } from "./server-process.ts";

/** A fresh one that belongs to the account, if there is one. */
export async function temporaryDirectory(name: string, account: Account | undefined): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), `tenure-${name}-`));
  if (account !== undefined) await chown(directory, account.uid, account.gid);
  return directory;
}

export async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * Copies files and directories, not links, to a directory that is readable by the account only. What `skip` says
 * yes to (a path below `from`) is left out; what vanishes meanwhile is left out too, as a running server removes
 * files, and it is for its backup protocol to make that harmless.
 */
export async function copyDirectory(
  from: string,
  to: string,
  account: Account | undefined,
  skip: (path: string) => boolean = () => false,
): Promise<void> {
  async function copyFolder(path: string): Promise<void> {
    await mkdir(join(to, path), { recursive: true });
    await chmod(join(to, path), 0o700);
    await own(join(to, path));
    const entries = await unlessVanished(readdir(join(from, path), { withFileTypes: true }));
    await Promise.all(
      (entries ?? []).map(async (entry) => {
        const below = path === "" ? entry.name : `${path}/${entry.name}`;
        if (skip(below)) return;
        if (entry.isDirectory()) await copyFolder(below);
        if (entry.isFile()) await unlessVanished(copyOne(below));
      }),
    );
  }
  async function copyOne(path: string): Promise<void> {
    await copyFile(join(from, path), join(to, path));
    await own(join(to, path));
  }
  async function own(path: string): Promise<void> {
    if (account !== undefined) await chown(path, account.uid, account.gid);
  }
  await copyFolder("");
}

async function unlessVanished<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
