// The two advisory locks of a scope in Postgres, both 64-bit keys of one database.
//
// - The *lock key* is held in exclusive mode by the session of the leader, for as long as it leads. It is the first
//   eight bytes of SHA-256("tenure:scope:v1:" + scope) as a signed integer, or what the user gave as `lockKey`.
// - The *fence key* is held in shared mode by each fenced transaction and in exclusive mode by the bump of the epoch.
//   It is the lock key XOR FENCE_KEY_MASK, so that one of the two is known from the other in any language.
//
// Keys are BigInt here and text on the wire: a JavaScript number can't hold 64 bits.

import { TenureError } from "../core/kit/errors.ts";

/** The letters "TENUREFC" as a big-endian integer; `tenure_fence_key` in the database has the same. */
export const FENCE_KEY_MASK = 0x54454e5552454643n;

const SCOPE_TAG = "tenure:scope:v1:";
const KEY_MIN = -(2n ** 63n);
const KEY_MAX = 2n ** 63n - 1n;

/** `sha256` comes from the driver: this room has no cryptography of its own. */
export function lockKeyOf(scope: string, sha256: (bytes: Uint8Array) => Uint8Array): bigint {
  const hash = sha256(new TextEncoder().encode(SCOPE_TAG + scope));
  return new DataView(hash.buffer, hash.byteOffset, hash.byteLength).getBigInt64(0);
}

export function fenceKeyOf(lockKey: bigint): bigint {
  return BigInt.asIntN(64, lockKey ^ FENCE_KEY_MASK);
}

/** A key that a user gave: an integer in decimal, as text where it may pass 2^53. */
export function parseLockKey(given: bigint | number | string): bigint {
  if (typeof given === "number" && !Number.isSafeInteger(given)) throw invalidKey(given);
  if (typeof given === "string" && !/^-?\d{1,19}$/.test(given)) throw invalidKey(given);
  const key = BigInt(given);
  if (key < KEY_MIN || key > KEY_MAX) throw invalidKey(given);
  return key;
}

function invalidKey(given: unknown): TenureError {
  return new TenureError(
    "CONFIG_INVALID",
    `lockKey is ${JSON.stringify(String(given))}; an advisory lock of Postgres takes an integer from ${KEY_MIN} to ${KEY_MAX}. Give one, as text or BigInt beyond 2^53, or leave it out: then it comes from the scope.`,
  );
}
