// Runs before `npm start`, `npm test` and the other scripts: installs the locked dependencies where they are
// missing or older than the lock file, and otherwise ends at once. It has no dependencies and runs on whatever
// Node the machine has, because the Node that the project pins is one of the things it installs.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stampPath = join(root, "node_modules", ".tenure-installed");
const wanted = `${process.platform}-${process.arch} ${createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex")}\n`;

if (readStamp() !== wanted) install();

function readStamp() {
  try {
    return readFileSync(stampPath, "utf8");
  } catch {
    return undefined;
  }
}

function install() {
  console.error("tenure: installing the locked dependencies (npm ci), once");
  const startedAt = Date.now();
  // npm runs on the machine's Node: `npm ci` deletes the one in node_modules.
  const path = (process.env.PATH ?? "").split(delimiter).filter((entry) => !entry.includes("node_modules"));
  const env = { ...process.env, PATH: path.join(delimiter) };
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const { npm_node_execpath: node, npm_execpath: npm } = process.env;
  const result =
    node && npm && !node.includes("node_modules")
      ? spawnSync(node, [npm, ...args], { cwd: root, env, stdio: ["ignore", "ignore", "inherit"] })
      : spawnSync("npm", args, {
          cwd: root,
          env,
          stdio: ["ignore", "ignore", "inherit"],
          shell: process.platform === "win32",
        });
  if (result.status !== 0) {
    console.error("tenure: npm ci failed (see above). Is the npm registry reachable? Then run the same command again.");
    process.exit(1);
  }
  writeFileSync(stampPath, wanted);
  console.error(`tenure: installed in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}
