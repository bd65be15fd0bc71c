import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FENCE_KEY_MASK, fenceKeyOf, lockKeyOf, parseLockKey } from "./lock-key.ts";

const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

// From sha256sum, not from the code: other languages and older releases must come to the same keys for ever.
test.each([
  ["payer", 582311283554132177n],
  ["it's 🦊", 1546520827647681484n],
])("the key of scope %j never changes", (scope, key) => {
  expect(lockKeyOf(scope, sha256)).toBe(key);
});

test("a key is a signed 64-bit integer, and its fence key is another one that leads back to it", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (scope) => {
      const key = lockKeyOf(scope, sha256);
      expect(BigInt.asIntN(64, key)).toBe(key);
      expect(fenceKeyOf(key)).not.toBe(key);
      expect(fenceKeyOf(fenceKeyOf(key))).toBe(key);
    }),
  );
});

test("the mask spells TENUREFC", () => {
  expect(FENCE_KEY_MASK).toBe(new DataView(new TextEncoder().encode("TENUREFC").buffer).getBigInt64(0));
});

test.each([0, -1, 42n, "0", "-9223372036854775808", "9223372036854775807", 2n ** 63n - 1n])(
  "%s is a lock key",
  (given) => {
    expect(parseLockKey(given)).toBe(BigInt(given));
  },
);

test.each([0.5, 2 ** 53, Number.NaN, 2n ** 63n, "9223372036854775808", "", " 1", "0x10", "1e3", "abc"])(
  "%s is no lock key",
  (given) => {
    expect(() => parseLockKey(given)).toThrow(/lockKey is /);
  },
);
