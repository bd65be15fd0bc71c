// The dashboard's files, read once when a server starts. From the sources they lie in web/dist, where `npm start` builds them;
// in the package next to the code. Where there are none, `/` says how to build them, and everything else works.

import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { WebFile } from "../../api/index.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** In the package, and from the sources. */
const FOLDERS = ["../../web/", "../../../web/dist/"].map((path) => fileURLToPath(new URL(path, import.meta.url)));

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tenure: no dashboard</title>
<h1>The dashboard is not built</h1>
<p>This server runs from its sources, and the page was not built. Build it with <code>npm run build:web</code>, then start the
server again. The API is served all the same: docs/reference/api.md.</p></html>
`;

export function readWeb(folders: readonly string[] = FOLDERS): readonly WebFile[] {
  for (const folder of folders) {
    const page = read(join(folder, "index.html"));
    if (page === undefined) continue;
    const assets = list(join(folder, "assets")).flatMap((name) => {
      const bytes = read(join(folder, "assets", name));
      const contentType = TYPES[extname(name)];
      return bytes === undefined || contentType === undefined ? [] : [fileOf(`/assets/${name}`, contentType, bytes)];
    });
    return [fileOf("/", TYPES[".html"]!, page), ...assets];
  }
  return [fileOf("/", TYPES[".html"]!, Buffer.from(NOT_BUILT))];
}

function fileOf(path: string, contentType: string, bytes: Uint8Array): WebFile {
  const etag = `"${hash("sha256", bytes).slice(0, 32)}"`;
  return { path, contentType, bytes, gzip: gzipSync(bytes), etag, isImmutable: path !== "/" };
}

function read(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

function list(folder: string): string[] {
  try {
    // Names that are plain: nothing in them means something to the router.
    return readdirSync(folder).filter((name) => /^[\w.-]+$/.test(name));
  } catch {
    return [];
  }
}
