// The lock of a data directory: held by one open directory at a time, for as long as its process lives.
//
// It must be the kernel's, so that it goes with its holder whatever becomes of that one (kill -9, a power loss): a file
// that merely says who is here would have to be judged, and pids come again. Node has no call for it; SQLite, which
// comes with Node, takes one (fcntl) on an empty database file for an exclusive transaction that never ends.
//
// Such a lock is lost when its process closes any descriptor of that file, so nothing else here ever opens the file;
// the holder's pid, which only serves the message, is in a file of its own.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { TenureError } from "../../core/kit/errors.ts";

/** Two, because a supervisor and its controller hold one each: who holds the first may still wait for the second. */
const NAMES = {
  controller: { lock: "lock", holder: "holder" },
  supervisor: { lock: "supervisor-lock", holder: "supervisor-holder" },
} as const;
/** No part of what the directory holds for the node. */
export const LOCK_NAMES: readonly string[] = Object.values(NAMES).flatMap(({ lock, holder }) => [lock, holder]);

const SQLITE_BUSY = 5;

export interface DirectoryLock {
  release(): void;
}

/** Throws DATA_DIRECTORY_IN_USE where somebody has it, in this process or another one. */
export function lockDirectory(path: string, whose: keyof typeof NAMES = "controller"): DirectoryLock {
  const { lock, holder } = NAMES[whose];
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(path, lock), { timeout: 0 });
    // A journal in memory: the file stays the only one, and it stays empty, because nothing is ever written to it.
    database.exec("PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    if (database?.isOpen === true) database.close();
    throw refusal(path, lock, holder, error);
  }
  const held = database;
  tellHolder(join(path, holder));
  return {
    release: () => {
      if (held.isOpen) held.close();
    },
  };
}

function refusal(path: string, lock: string, holder: string, error: unknown): TenureError {
  const { errcode, message } = error as { errcode?: unknown; message?: unknown };
  if (errcode !== SQLITE_BUSY && !existsSync(join(path, lock))) {
    const text = `${path} can't be used as a data directory: no file can be made in it (${String(message)}). Choose another one.`;
    return new TenureError("CONFIG_INVALID", text, { cause: error });
  }
  if (errcode !== SQLITE_BUSY) {
    const what = `${join(path, lock)} can't be locked: ${String(message)}.`;
    return new TenureError("CONFIG_INVALID", `${what} Remove that file if no server runs here, then start again.`, {
      cause: error,
    });
  }
  const pid = holderOf(join(path, holder));
  const who = pid === null ? "another server" : pid === process.pid ? "this process" : `process ${pid}`;
  return new TenureError(
    "DATA_DIRECTORY_IN_USE",
    `${path} is in use by ${who}. Stop that one first, or give this server a directory of its own.`,
  );
}

/** On a full disk it can't be told, and a server whose disk is full has to start: it answers, and waits for room. */
function tellHolder(file: string): void {
  try {
    writeFileSync(file, `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // The lock is held all the same; whoever is refused reads of "another server".
  }
}

/** Null where it is not known: the holder may not have got so far as to write it. */
function holderOf(file: string): number | null {
  try {
    const pid = Number(readFileSync(file, "utf8"));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}
