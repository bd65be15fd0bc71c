// `npm run build:binary [-- --out FILE]`: the package tenure-server, its dependencies and Node as one executable file, by Node's own
// `--build-sea`. The Node inside is the one that the project pins, which runs this script. What it does when it starts: binary-launcher.cjs.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const root = resolve(import.meta.dirname, "..");
const { values } = parseArgs({
  options: { out: { type: "string", default: join(root, "binary/tenure") } },
});
const out = resolve(values.out);
const work = mkdtempSync(join(tmpdir(), "tenure-binary-"));
try {
  const app = join(work, "app");
  mkdirSync(app);
  execFileSync(process.execPath, [join(root, "scripts/build-package.ts"), "tenure-server", "--out", app], {
    stdio: "inherit",
  });
  for (const folder of ["src", "docs", "deploy"]) rmSync(join(app, folder), { recursive: true });
  for (const name of closure(join(app, "package.json"))) copyPackage(name, app);
  const archive = gzipSync(pack(app), { level: 9 });
  writeFileSync(join(work, "archive"), archive);
  writeFileSync(join(work, "digest"), createHash("sha256").update(archive).digest("hex").slice(0, 32));
  writeFileSync(join(work, "sea.json"), JSON.stringify(seaOptions()));
  mkdirSync(dirname(out), { recursive: true });
  execFileSync(process.execPath, ["--build-sea", join(work, "sea.json")], { stdio: ["ignore", "ignore", "inherit"] });
  console.log(out);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function seaOptions(): object {
  return {
    main: join(root, "scripts/binary-launcher.cjs"),
    output: out,
    disableExperimentalSEAWarning: true,
    assets: { archive: join(work, "archive"), digest: join(work, "digest") },
  };
}

/** The names of all packages that it needs. npm has put each of them at the top, or next to whoever needs another version. */
function closure(manifest: string): Set<string> {
  const found = new Set<string>();
  const visit = (file: string): void => {
    const { dependencies = {} } = JSON.parse(readFileSync(file, "utf8")) as Manifest;
    for (const name of Object.keys(dependencies)) {
      if (found.has(name)) continue;
      found.add(name);
      visit(join(root, "node_modules", name, "package.json"));
    }
  };
  visit(manifest);
  return found;
}

function copyPackage(name: string, app: string): void {
  cpSync(join(root, "node_modules", name), join(app, "node_modules", name), {
    recursive: true,
    filter: (path) => !/\.(?:d\.[cm]?ts|ts|map|md|markdown|yml)$|\/(?:test|tests|docs|benchmarks|examples)$/.test(path),
  });
}

/** The length of the index, the index (path and size of each file), then the files one after the other. */
function pack(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(?:d\.ts|map)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  const bytes = files.map((file) => readFileSync(file));
  const index = Buffer.from(
    JSON.stringify(files.map((file, at) => [file.slice(folder.length + 1), bytes[at]!.length])),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32BE(index.length);
  return Buffer.concat([length, index, ...bytes]);
}
