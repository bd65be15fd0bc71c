// What stands around Tenure in its image, for tests without a container runtime: a `tenure` on the PATH that runs this source tree,
// a `tini` that only passes on, and the paths of an image replaced by those of a directory.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** A folder for the PATH. */
export function imagePath(directory: string, tenure: string = `exec "${process.execPath}" "${main()}" "$@"`): string {
  const folder = join(directory, "bin");
  mkdirSync(folder, { recursive: true });
  for (const [name, line] of [
    ["tenure", tenure],
    ["tini", `shift; exec "$@"`],
  ] as const) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return `${folder}:${process.env["PATH"] ?? ""}`;
}

function main(): string {
  return resolve("src/cli/main.ts");
}

/** Nothing of the caller's own settings. */
export function cleanEnvironment(path: string): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("TENURE_"));
  return { ...(Object.fromEntries(kept) as Record<string, string>), PATH: path };
}
