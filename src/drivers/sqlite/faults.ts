// What an error of SQLite means to whoever asked.

import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";
import { ROOM_BYTES_MIN } from "./limits.ts";

const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOT_A_DATABASE = 26;
const IO_ERROR = 10;
const READ_ONLY = 8;
/** The low byte is the kind, the rest says more. */
const KIND = 0xff;

export type Fault =
  /** Move the file aside. */
  | { readonly kind: "damaged"; readonly error: TenureError }
  /** Nothing was changed; it may work later. */
  | { readonly kind: "refused"; readonly error: TenureError };

/** Null: no error of SQLite's, or a mistake of ours. */
export function faultOf(error: unknown, path: string): Fault | null {
  if (TenureError.is(error)) {
    return { kind: error.code === "DISK_DAMAGED" ? "damaged" : "refused", error };
  }
  const { errcode, message } = error as { errcode?: unknown; message?: unknown };
  if (typeof errcode !== "number") return null;
  const why = `${String(message)} (SQLite ${errcode})`;
  const cause = { cause: error };
  switch (errcode & KIND) {
    case CORRUPT:
    case NOT_A_DATABASE:
      return {
        kind: "damaged",
        error: new TenureError(
          "DISK_DAMAGED",
          `${path} is damaged: ${why}. It is moved aside and built anew: ask for the position and feed from there.`,
          cause,
        ),
      };
    case FULL:
      return { kind: "refused", error: noRoom(path, why, error) };
    case IO_ERROR:
      // A quota that is used up, and a shared memory file that can't grow, come as plain errors of input and output.
      if (freeBytes(path) < ROOM_BYTES_MIN) return { kind: "refused", error: noRoom(path, why, error) };
      return { kind: "refused", error: unavailable(path, why, error) };
    case CANTOPEN:
    case READ_ONLY:
      if (freeBytes(path) < ROOM_BYTES_MIN) return { kind: "refused", error: noRoom(path, why, error) };
      return { kind: "refused", error: unavailable(path, why, error) };
    default:
      return null;
  }
}

function noRoom(path: string, why: string, cause: unknown): TenureError {
  const text = `${path} can't grow, there is no room on its disk: ${why}. Nothing of it was stored; free some room, then it goes on.`;
  return new TenureError("DISK_FULL", text, { cause });
}

function unavailable(path: string, why: string, cause: unknown): TenureError {
  const text = `${path} can't be used: ${why}. Look at the disk and at who owns the file; jobs go on without it, lists and searches wait.`;
  return new TenureError("BACKEND_UNAVAILABLE", text, { cause });
}

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize;
  } catch {
    return Number.MAX_SAFE_INTEGER;
  }
}
