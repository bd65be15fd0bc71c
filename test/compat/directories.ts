// Data directories of a release, packed: every file of every node, compressed, in one file that is kept for ever.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

/** By node, by path: base64. */
type Packed = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** For `node` itself: where segments of history end must be the same in every life of a directory. */
export const SMALL_SEGMENTS = ["--import", new URL("../servers/small-segments.ts", import.meta.url).href] as const;

/** Who holds the directory: of the process that ran. */
const LEFT_OUT = new Set(["holder"]);

export function pack(directories: Readonly<Record<string, string>>): Uint8Array {
  const packed = Object.fromEntries(Object.entries(directories).map(([id, directory]) => [id, filesIn(directory)]));
  return gzipSync(JSON.stringify(packed), { level: 9 });
}

function filesIn(directory: string): Record<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !LEFT_OUT.has(entry.name));
  const paths = files.map((entry) => relative(directory, join(entry.parentPath, entry.name))).toSorted();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(directory, path)).toString("base64")]));
}

export function unpack(bytes: Uint8Array, directoryOf: (id: string) => string): void {
  const packed = JSON.parse(gunzipSync(bytes).toString()) as Packed;
  for (const [id, files] of Object.entries(packed)) {
    for (const [path, base64] of Object.entries(files)) {
      const target = join(directoryOf(id), path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, Buffer.from(base64, "base64"));
    }
  }
}
