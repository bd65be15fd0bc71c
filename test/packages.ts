// The two packages as npm packs them, in a folder of a test's own.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

export type PackageName = "tenure" | "tenure-server";

export interface Packed {
  readonly tarball: string;
  readonly bytes: number;
  /** Sorted. */
  readonly files: readonly string[];
}

interface Report {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/** Built from the repository, or from a copy of it. Types are checked by `npm run check`, and are most of the time. */
export function packed(name: PackageName, directory: string, repository = "."): Packed {
  const source = join(directory, `${name}-source`);
  const script = join(resolve(repository), "scripts/build-package.ts");
  execFileSync(process.execPath, [script, name, "--out", source, "--noCheck"], { stdio: "ignore" });
  const report = execFileSync("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", directory], {
    cwd: source,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [one] = Object.values(JSON.parse(report) as Readonly<Record<string, Report>>);
  const { filename, size, files } = one!;
  console.log(`${name}: ${files.length} files, ${size} bytes packed`);
  return { tarball: join(directory, filename), bytes: size, files: files.map(({ path }) => path).toSorted() };
}

/** Where npm would put it, without what it depends on. */
export function unpack({ tarball }: Packed, folder: string): string {
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"]);
  return folder;
}
