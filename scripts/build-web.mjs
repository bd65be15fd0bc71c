// Builds the dashboard (web/) where its sources have changed since the last time, and otherwise ends at once. It runs before
// `npm start`, on whatever Node the machine has.
//
//   node scripts/build-web.mjs               into web/dist; a build that fails is reported, and stops nobody from starting
//   node scripts/build-web.mjs --strict      the same, but a build that fails is an error
//   node scripts/build-web.mjs --out FOLDER  into a package; always, and strict

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** All that the page is made of. */
const SOURCES = [
  "web/src",
  "web/index.html",
  "web/vite.config.ts",
  "src/client",
  "src/contract",
  "src/core/kit",
  "src/core/jobs/model.ts",
];
const LOCK = "package-lock.json";

const outAt = process.argv.indexOf("--out");
const isStrict = outAt >= 0 || process.argv.includes("--strict");
const out = outAt >= 0 ? resolve(process.argv[outAt + 1] ?? "") : join(root, "web", "dist");
const stampPath = join(out, ".built");
const wanted = fingerprint();
if (outAt >= 0 || read(stampPath) !== wanted) build();

function build() {
  const startedAt = Date.now();
  // Next to its place first: whoever is stopped half-way leaves the old page as it was.
  const half = join(root, "node_modules", `.tenure-web-${process.pid}`);
  // Whoever builds it gets the page that is shipped: under a test's NODE_ENV it would be larger by a tenth.
  const env = {
    ...process.env,
    NODE_ENV: "production",
    PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH ?? ""}`,
  };
  const vite = join(root, "node_modules", "vite", "bin", "vite.js");
  const args = [vite, "build", join(root, "web"), "--outDir", half, "--logLevel", "warn"];
  try {
    const { status } = spawnSync("node", args, { cwd: root, env, stdio: ["ignore", 2, 2] });
    if (status !== 0 || !existsSync(join(half, "index.html"))) return failed();
    if (outAt < 0) writeFileSync(join(half, ".built"), wanted);
    rmSync(out, { recursive: true, force: true });
    mkdirSync(join(out, ".."), { recursive: true });
    move(half, out);
    console.error(`tenure: the dashboard was built in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
}

function failed() {
  console.error("tenure: the dashboard could not be built (see above).");
  if (isStrict) process.exitCode = 1;
  else console.error("tenure: the servers start without it; npm run build:web tries again.");
}

/** Another disk can't be moved to; another build that was quicker has made the same. */
function move(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (error.code === "ENOTEMPTY" || error.code === "EEXIST") return;
    if (error.code !== "EXDEV") throw error;
    cpSync(from, to, { recursive: true });
  }
}

function fingerprint() {
  const hash = createHash("sha256").update(readFileSync(join(root, LOCK)));
  for (const source of SOURCES)
    for (const file of filesOf(source)) hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  return `${hash.digest("hex")}\n`;
}

function filesOf(path) {
  if (!existsSync(join(root, path))) return [];
  if (/\.\w+$/.test(path)) return [path];
  return readdirSync(join(root, path), { withFileTypes: true })
    .map(({ name }) => `${path}/${name}`)
    .sort()
    .flatMap((one) => (/\.test\.tsx?$/.test(one) ? [] : filesOf(one)));
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
