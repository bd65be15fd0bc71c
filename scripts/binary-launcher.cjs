// The first lines of the single executable (scripts/build-binary.ts). Inside of it is the package tenure-server with its dependencies, as
// one compressed archive. Threads, the guard of `tenure run` and the supervisor's children are files of their own, started as
// `execPath FILE …`, and a file inside of an executable can't be started. So the archive is unpacked once into a directory of
// this user, named by its content, and the executable acts as `node` for the files in it, and for no other file.

"use strict";
const { chmodSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { homedir, tmpdir } = require("node:os");
const { dirname, join, resolve, sep } = require("node:path");
const { getAsset, getRawAsset } = require("node:sea");
const { pathToFileURL } = require("node:url");
const vm = require("node:vm");
const { gunzipSync } = require("node:zlib");

const PRIVATE = 0o700;
const OTHERS_MAY_WRITE = 0o022;
const uid = process.getuid?.() ?? -1;

/** Where programs keep what they can make again; where that can't be written (a service without a home), among temporary files. */
function places() {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return [join(cache, "tenure"), join(tmpdir(), `tenure-${uid}`)];
}

/** Code of somebody else must not be run: the directory is ours, and nobody else may write to it. */
function isOurs(path) {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (uid < 0 || (found.uid === uid && (found.mode & OTHERS_MAY_WRITE) === 0));
}

function unpacked() {
  const name = getAsset("digest", "utf8").trim();
  const failures = [];
  for (const place of places()) {
    const home = join(place, name);
    try {
      mkdirSync(place, { recursive: true, mode: PRIVATE });
      if (!isOurs(place)) throw new Error("it belongs to somebody else, or others may write to it");
      if (isOurs(home)) return home;
      unpack(place, home);
      return home;
    } catch (error) {
      failures.push(`${place}: ${error.message}`);
    }
  }
  process.stderr.write(
    `tenure: its files can't be unpacked. ${failures.join("; ")}. Set XDG_CACHE_HOME to a directory of yours.\n`,
  );
  return process.exit(78);
}

/** Whole or not at all: it gets its name when it is complete, and two that unpack at once do not disturb each other. */
function unpack(place, home) {
  const fresh = mkdtempSync(join(place, "new-"));
  try {
    const archive = gunzipSync(Buffer.from(getRawAsset("archive")));
    const indexBytes = archive.readUInt32BE(0);
    let at = 4 + indexBytes;
    for (const [path, bytes] of JSON.parse(archive.toString("utf8", 4, at))) {
      const file = join(fresh, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, archive.subarray(at, at + bytes));
      at += bytes;
    }
    chmodSync(fresh, PRIVATE);
    renameSync(fresh, home);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    if (!isOurs(home)) throw error;
  }
}

const home = unpacked();
const [, , first, ...others] = process.argv;
const isOwnFile = first !== undefined && resolve(first).startsWith(home + sep);
const file = isOwnFile ? resolve(first) : join(home, "dist/cli/main.js");
process.argv = [process.execPath, file, ...(isOwnFile ? others : process.argv.slice(2))];
// A plain import() in here knows only what is inside of the executable. That this way out is experimental is our concern, not that of
// whoever reads standard error.
const { emitWarning } = process;
process.emitWarning = () => undefined;
const load = new vm.Script("(url) => import(url)", {
  importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
}).runInThisContext();
void load(pathToFileURL(file).href);
process.emitWarning = emitWarning;
