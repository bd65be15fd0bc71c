// What the library runs in: Node, or another runtime, or a browser. Only globals, each of which may be missing: the library's
// root and `tenure/client` run wherever JavaScript does.

import { TenureError } from "../../core/kit/errors.ts";

interface Host {
  readonly versions?: Readonly<Record<string, string | undefined>> | undefined;
  emitWarning?(message: string, options: { readonly type: string; readonly code?: string }): void;
}

/** `engines` of the library's package.json, which a browser can't read; a test compares. */
const NODE_MIN = "22.18";

const host = (globalThis as { readonly process?: Host }).process;

/**
 * Called when a subpath is loaded: an older Node would fail later, with a word that helps nobody (Promise.withResolvers is
 * not a function). Other runtimes name a version of Node too, the one that they imitate; they are not asked for it.
 */
export function requireNode(least: string = NODE_MIN, versions = host?.versions): void {
  const { node, bun, deno } = versions ?? {};
  if (node === undefined || bun !== undefined || deno !== undefined || isAtLeast(node, least)) return;
  throw new TenureError(
    "RUNTIME_UNSUPPORTED",
    `Tenure needs Node ≥ ${least}, and this is Node ${node}. Install a newer one; nothing was done.`,
  );
}

function isAtLeast(version: string, least: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [leastMajor = 0, leastMinor = 0] = least.split(".").map(Number);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}

/** For who gave no logger. A browser has no such channel. */
export function warnHost(message: string, code: string | undefined): void {
  host?.emitWarning?.(message, { type: "TenureWarning", ...(code === undefined ? {} : { code }) });
}
