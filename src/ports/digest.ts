/** Checksums and hashes come into the pure rooms as an argument: native in production, table-driven in tests. */
export interface Digest {
  /** CRC-32 (ISO-HDLC, as in zlib) of `bytes`, continuing from `seed` (default 0), as an unsigned integer. */
  crc32(bytes: Uint8Array, seed?: number): number;
  /** SHA-256 (FIPS 180-4): 32 bytes, which the caller owns. */
  sha256(bytes: Uint8Array): Uint8Array;
  /** The same in 64 lower-case hexadecimal digits, of bytes or of a text's UTF-8. */
  sha256Hex(data: Uint8Array | string): string;
}
