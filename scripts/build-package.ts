// `npm run build` and `npm run build:server`: what a package ships, and nothing else, in packages/NAME, ready for `npm pack ./packages/NAME`.
// Nothing is left out by name: a file is there because something that is named leads to it (decision 21).
//
//   node scripts/build-package.ts tenure|tenure-server [--out FOLDER] [--noCheck]
//
// - code: what the compiler reaches by imports from the manifest's `exports` and `bin`, and from the files below that are started by path;
// - the sources of that code, to which the maps point;
// - documents and files for systemd and the like: what the README, the packed code or such a file names by its path;
// - with the library the examples that these documents name;
// - the servers' dashboard.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";

interface Manifest {
  readonly [field: string]: unknown;
  readonly name: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

/** Threads and processes: no import leads to them. */
const STARTED_BY_PATH: Readonly<Record<string, readonly string[]>> = {
  tenure: ["src/cli/run/guard.ts"],
  "tenure-server": [
    "src/cli/run/guard.ts",
    "src/cli/dev/leash.ts",
    "src/cli/server/supervisor.ts",
    "src/drivers/sqlite/writer-thread.ts",
    "src/drivers/sqlite/reader-thread.ts",
    "src/drivers/sqlite/mesh/writer-thread.ts",
    "src/drivers/sqlite/mesh/reader-thread.ts",
  ],
};
/** Of the library's manifest, which is the repository's too. */
const PUBLISHED = [
  "name",
  "version",
  "description",
  "keywords",
  "license",
  "bin",
  "files",
  "type",
  "sideEffects",
  "exports",
  "peerDependencies",
  "peerDependenciesMeta",
  "engines",
];
const NAMED_PATH = /(?<![\w./-])(?:docs|examples|deploy)\/[\w./-]*/g;

const root = resolve(import.meta.dirname, "..");
const { values, positionals } = parseArgs({
  options: { out: { type: "string" }, noCheck: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [name = ""] = positionals;
const startedByPath = STARTED_BY_PATH[name];
if (startedByPath === undefined) throw new Error(`give the package: ${Object.keys(STARTED_BY_PATH).join(" or ")}`);
const isLibrary = name === "tenure";
const home = isLibrary ? root : join(root, "packages", name);
const out = resolve(values.out ?? join(root, "packages", name));

for (const folder of ["dist", "src", "docs", "examples", "deploy"])
  rmSync(join(out, folder), { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as Manifest;
if (out !== home) {
  const text = JSON.stringify(isLibrary ? published(manifest) : manifest, undefined, 2);
  writeFileSync(join(out, "package.json"), `${text}\n`);
  cpSync(join(home, "README.md"), join(out, "README.md"));
}
cpSync(join(root, "LICENSE"), join(out, "LICENSE"));
compile([...entries(manifest), ...startedByPath]);
takeSources();
takeNamed();
if (!isLibrary)
  execFileSync(process.execPath, [join(root, "scripts/build-web.mjs"), "--out", join(out, "dist/web")], {
    stdio: "inherit",
  });

function published(from: Manifest): object {
  const { "./package.json": self, ...subpaths } = from.exports as Readonly<Record<string, Record<string, string>>>;
  const exports = Object.entries(subpaths).map(([path, { "tenure-source": _source, ...built }]) => [path, built]);
  const files = ["dist", "src", "docs", "examples"];
  const whole: Manifest = { ...from, files, exports: { ...Object.fromEntries(exports), "./package.json": self } };
  return Object.fromEntries(PUBLISHED.map((field) => [field, whole[field]]));
}

/** The sources of what the manifest gives to others. */
function entries({ bin, exports = {} }: Manifest): string[] {
  const built = Object.values(exports).flatMap((target) => (typeof target === "string" ? [] : [target["default"]!]));
  return [...built, ...Object.values(bin)].map((file) => file.replace(/^(?:\.\/)?dist\/(.*)\.js$/, "src/$1.ts"));
}

function compile(files: readonly string[]): void {
  // Next to the packages, for the compiler to find the types that are installed here.
  const config = join(root, "packages", `tsconfig.${name}-${process.pid}.json`);
  const listed = files.map((file) => join(root, file));
  writeFileSync(config, JSON.stringify({ extends: "../tsconfig.build.json", include: [], files: listed }));
  try {
    const args = ["-p", config, "--rootDir", join(root, "src"), "--outDir", join(out, "dist")];
    if (values.noCheck) args.push("--noCheck");
    execFileSync(join(root, "node_modules/.bin/tsc"), args, { stdio: "inherit" });
  } finally {
    rmSync(config);
  }
}

/** Each map names its source where the repository has it; here it gets a copy in the package. */
function takeSources(): void {
  for (const path of filesBelow(join(out, "dist")).filter((file) => file.endsWith(".map"))) {
    const map = JSON.parse(readFileSync(path, "utf8")) as { sources: [string] };
    const source = resolve(dirname(path), map.sources[0]);
    const copy = join(out, relative(root, source));
    if (path.endsWith(".js.map")) cpSync(source, copy);
    writeFileSync(path, JSON.stringify({ ...map, sources: [relative(dirname(path), copy)] }));
  }
}

/** Until a round finds nothing new. Documents name the whole repository, so they are asked for examples only. */
function takeNamed(): void {
  const taken = new Set<string>();
  for (let asked = [join(out, "README.md"), ...filesBelow(join(out, "dist"))]; asked.length > 0;) {
    const named = asked.filter((file) => !file.endsWith(".map")).flatMap(namedIn);
    const fresh = named.filter((file) => !taken.has(file));
    for (const file of fresh) {
      taken.add(file);
      cpSync(join(root, file), join(out, file));
    }
    asked = fresh.map((file) => join(root, file));
  }
}

/** Files of the repository; a folder is all that is in it. */
function namedIn(file: string): string[] {
  const isDocument = file.startsWith(join(root, "docs"));
  const named = new Set(readFileSync(file, "utf8").replaceAll("../", "").match(NAMED_PATH));
  const paths = [...named].filter((path) => !isDocument || (isLibrary && path.startsWith("examples/")));
  const files = paths.map((path) => join(root, path.replace(/\.$/, ""))).filter((path) => existsSync(path));
  return files
    .flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path]))
    .map((path) => relative(root, path));
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
