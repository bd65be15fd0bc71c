// A tar archive (POSIX ustar) of a few small files, for `tenure support bundle`: every tar and every desktop can open it.

import { TAR_NAME_BYTES_MAX } from "../limits.ts";

const BLOCK = 512;
const MODE = 0o600;

export interface TarFile {
  /** ASCII, at most 100 characters. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

export function tarOf(files: readonly TarFile[], mtimeS: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const { name, bytes } of files) {
    parts.push(header(name, bytes.length, mtimeS), bytes, new Uint8Array((BLOCK - (bytes.length % BLOCK)) % BLOCK));
  }
  // Two empty blocks are its end.
  return Buffer.concat([...parts, new Uint8Array(2 * BLOCK)]);
}

function header(name: string, sizeBytes: number, mtimeS: number): Uint8Array {
  if (!/^[\x21-\x7e]+$/.test(name) || name.length > TAR_NAME_BYTES_MAX)
    throw new RangeError(`no name for a file: ${name}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number): void =>
    void block.write(`${Math.floor(value).toString(8).padStart(digits, "0")}\0`, at, "ascii");
  block.write(name, 0, "ascii");
  octal(MODE, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(sizeBytes, 124, 11);
  octal(mtimeS, 136, 11);
  // The checksum counts itself as blanks.
  block.write("        ", 148, "ascii");
  block.write("0", 156, "ascii");
  block.write("ustar\x0000", 257, "ascii");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return block;
}
