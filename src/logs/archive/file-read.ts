// What a read of a file says about the file.
//
//   bytes      what is on the disk; whether they are the right ones is for the reader to say
//   damaged    the file is gone, or the device could not read it, twice
//   (throws)   BACKEND_UNAVAILABLE: this process can't read it now (no descriptors, no memory, a busy device …)
//
// Invariant: an error that may pass says nothing about the file. Whoever meets one changes nothing: a healthy segment that
// is set aside because descriptors ran out for a moment is lost where nobody else has it.

import { TenureError } from "../../core/kit/errors.ts";
import type { Disk } from "../../ports/disk.ts";

/** A device that fails once may have been interrupted; one that fails twice in a row has lost the block. */
const DEVICE_ATTEMPTS = 2;

export type FileRead =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "damaged"; readonly why: string };

export async function readFile(disk: Disk, name: string): Promise<FileRead> {
  for (let attempt = 1; ; attempt++) {
    try {
      return { kind: "bytes", bytes: await disk.read(name, "archive-read") };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      switch (codeOf(error)) {
        case "ENOENT":
          return { kind: "damaged", why };
        case "EIO":
          if (attempt === DEVICE_ATTEMPTS) return { kind: "damaged", why };
          break;
        default:
          throw unavailable(name, why, error);
      }
    }
  }
}

/** For one who can do without. */
export function notNow(error: unknown): null {
  if (TenureError.is(error) && error.code === "BACKEND_UNAVAILABLE") return null;
  throw error;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : null;
}

function unavailable(name: string, why: string, cause: unknown): TenureError {
  const next = "The file stays as it is: ask another node, or this one again later";
  return new TenureError("BACKEND_UNAVAILABLE", `${name} can't be read now: ${why}. ${next}.`, { cause });
}
