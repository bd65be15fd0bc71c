// Puts the documents that messages of the servers name, and the files for systemd, containers and monitoring that these documents
// use, into the package of the servers; npm packs only what lies below a package's own folder.
//
//   node scripts/copy-docs.mjs FOLDER

import { cpSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = resolve(process.argv[2] ?? "");
if (process.argv[2] === undefined) throw new Error("give the folder of the package");
for (const folder of ["docs", "deploy"]) {
  rmSync(join(out, folder), { recursive: true, force: true });
  cpSync(join(root, folder), join(out, folder), { recursive: true });
}
