// Checksums and hashes by the machine's own library.

import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Digest } from "../../ports/digest.ts";

const SHA256_BYTES = 32;

export const systemDigest: Digest = {
  crc32: (bytes, seed = 0) => crc32(bytes, seed),
  sha256: (bytes) => {
    // Through a string, because a buffer of Node's own for each hash takes twice as long as the hash.
    const text = hash("sha256", bytes, "latin1");
    const sum = new Uint8Array(SHA256_BYTES);
    for (let at = 0; at < SHA256_BYTES; at++) sum[at] = text.charCodeAt(at);
    return sum;
  },
  sha256Hex: (data) => hash("sha256", data, "hex"),
};
