// Checksums by the machine's own library.

import { crc32 } from "node:zlib";
import type { Digest } from "../../ports/digest.ts";

export const systemDigest: Digest = {
  crc32: (bytes, seed = 0) => crc32(bytes, seed),
};
