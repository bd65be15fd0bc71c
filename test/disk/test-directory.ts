// Data directories that a test fills and leaves behind, and a record of the calls that a driver makes below.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { openDataDirectory, systemIo, type DataDirectory, type DiskIo } from "../../src/drivers/disk/index.ts";

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

export async function newPath(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "tenure-disk-"));
  cleanups.push(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Closed after the test. */
export async function openAt(path: string, options?: Parameters<typeof openDataDirectory>[1]): Promise<DataDirectory> {
  const directory = await openDataDirectory(path, options);
  cleanups.push(() => directory.close());
  return directory;
}

/** Calls that write or sync, as "name bytes@position". */
export function recording(base: DiskIo = systemIo): { readonly io: DiskIo; readonly calls: string[] } {
  const calls: string[] = [];
  const write =
    (name: "write" | "writeSynced"): DiskIo["write"] =>
    async (fd, bytes, positionBytes, label) => {
      calls.push(`${name} ${bytes.length}@${positionBytes}`);
      return base[name](fd, bytes, positionBytes, label);
    };
  const io: DiskIo = {
    ...base,
    write: write("write"),
    writeSynced: write("writeSynced"),
    truncate: async (fd, sizeBytes) => {
      calls.push(`truncate ${sizeBytes}`);
      await base.truncate(fd, sizeBytes);
    },
    fdatasync: async (fd, label) => {
      calls.push("fdatasync");
      await base.fdatasync(fd, label);
    },
  };
  return { io, calls };
}

/** Bytes that differ from place to place, so that a piece in the wrong place shows. */
export function pattern(lengthBytes: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(lengthBytes);
  for (let i = 0; i < lengthBytes; i++) bytes[i] = (i * 31 + (i >>> 8) * 7 + seed) & 0xff;
  return bytes;
}
