// Lists of hashes as proofs carry them, from outside.

import { isHash } from "../../events/hex.ts";
import { PATH_HASHES_MAX } from "./limits.ts";

/** Each 64 hexadecimal digits, and no more than the proof of any tree has. */
export function areHashes(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= PATH_HASHES_MAX && value.every(isHash);
}
