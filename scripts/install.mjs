// Runs before `npm start`, `npm test` and the other scripts: installs the locked dependencies where they are
// missing or older than the lock file, and otherwise ends at once. It has no dependencies and runs on whatever
// Node the machine has, because the Node that the project pins is one of the things it installs.
//
//   node scripts/install.mjs        the project's own tools
//   node scripts/install.mjs test   also test/: the real servers and clients that only whole tests use
//   node scripts/install.mjs bench  also bench/: what the benchmarks measure next to us
//
// Each is a download of its own so that `npm start` and the unit tests do not wait for a PostgreSQL.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

installWhereOld(root, "the locked dependencies", []);
// No package of test/ needs its install script (test/servers/postgres-binaries.ts does that work itself).
if (process.argv.includes("test")) {
  installWhereOld(join(root, "test"), "the servers and clients for tests", ["--ignore-scripts"]);
  link(join("..", "test", "node_modules"), join(root, "examples", "node_modules"));
}
if (process.argv.includes("bench"))
  installWhereOld(join(root, "bench"), "the peers of the benchmarks", ["--ignore-scripts"]);

/** Examples import the same clients by name; this is how they find them. */
function link(target, path) {
  try {
    symlinkSync(target, path, "junction");
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
}

function installWhereOld(folder, what, flags) {
  const stampPath = join(folder, "node_modules", ".tenure-installed");
  const wanted = `${process.platform}-${process.arch} ${createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex")}\n`;
  if (readStamp(stampPath) === wanted) return;
  console.error(`tenure: installing ${what} (npm ci), once`);
  const startedAt = Date.now();
  install(folder, flags);
  writeFileSync(stampPath, wanted);
  console.error(`tenure: installed in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}

function readStamp(stampPath) {
  try {
    return readFileSync(stampPath, "utf8");
  } catch {
    return undefined;
  }
}

function install(folder, flags) {
  // npm runs on the machine's Node: `npm ci` deletes the one in node_modules.
  const path = (process.env.PATH ?? "").split(delimiter).filter((entry) => !entry.includes("node_modules"));
  const env = { ...process.env, PATH: path.join(delimiter) };
  const args = ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error", ...flags];
  const { npm_node_execpath: node, npm_execpath: npm } = process.env;
  const result =
    node && npm && !node.includes("node_modules")
      ? spawnSync(node, [npm, ...args], { cwd: folder, env, stdio: ["ignore", "ignore", "inherit"] })
      : spawnSync("npm", args, {
          cwd: folder,
          env,
          stdio: ["ignore", "ignore", "inherit"],
          shell: process.platform === "win32",
        });
  if (result.status !== 0) {
    console.error("tenure: npm ci failed (see above). Is the npm registry reachable? Then run the same command again.");
    process.exit(1);
  }
}
