// What every log refuses in the same words. Nothing was written, and the epoch may go on.

import { TenureError } from "../core/kit/errors.ts";
import { ENTRY_BYTES_MAX } from "../core/kit/limits.ts";

export function notOpened(epoch: number): TenureError {
  return new TenureError("NOT_LEADER", `epoch ${epoch} was not opened here; open it first. Nothing was written.`);
}

export function misplaced(after: number, end: number): TenureError {
  return new TenureError(
    "BAD_REQUEST",
    `an append behind record ${after} was refused: the log ends at ${end}. Nothing was written; decide again from there.`,
  );
}

export function tooLarge(bytes: number): TenureError {
  return new TenureError(
    "ENTRY_TOO_LARGE",
    `a batch of ${bytes} bytes was refused: ${ENTRY_BYTES_MAX} are allowed. Nothing was written; send less at once.`,
  );
}

export function tooMuchWaits(appends: number, bytes: number): TenureError {
  return new TenureError(
    "UNCOMMITTED_LIMIT",
    `an append was refused: ${appends} appends with ${bytes} bytes wait for Postgres already. Nothing was written; wait for answers, then go on.`,
  );
}
