import { crc32 } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { crc32OfBoth } from "./crc32.ts";

test("the checksum of two pieces is that of the whole, wherever it is cut", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(), (bytes, cut) => {
      const at = cut % (bytes.length + 1);
      const [first, second] = [bytes.subarray(0, at), bytes.subarray(at)];
      expect(crc32OfBoth(crc32(first), crc32(second), second.length)).toBe(crc32(bytes));
    }),
  );
});

test("also of a large one", () => {
  const [first, second] = [new Uint8Array(40).fill(3), new Uint8Array(3 * 1024 * 1024 + 1).fill(9)];
  const whole = crc32(second, crc32(first));
  expect(crc32OfBoth(crc32(first), crc32(second), second.length)).toBe(whole);
});
