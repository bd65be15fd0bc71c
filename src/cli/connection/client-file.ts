// The client's configuration file: found, read and checked. $TENURE_CONFIG names it; otherwise it is tenure/config.toml in
// $XDG_CONFIG_HOME or ~/.config, where there is one. What it says comes behind flags and variables.

import { existsSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { ClientConfigFile } from "../../contract/index.ts";
import { readConfigFile } from "../files/config.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ClientFile {
  readonly path: string;
  readonly says: ClientConfigFile;
  /** Relative paths begin where the file lies. */
  readonly pathOf: (file: string) => string;
  readonly warnings: readonly string[];
}

/** Null where there is none. */
export async function readClientFile(environment: Environment): Promise<ClientFile | null> {
  const named = nonEmpty(environment["TENURE_CONFIG"]);
  const path = named ?? usualPath(environment);
  if (path === undefined) return null;
  const says = await checked(readConfigFile(path, named === undefined ? undefined : "TENURE_CONFIG"), path);
  return {
    path,
    says,
    pathOf: (file) => (isAbsolute(file) ? file : join(dirname(path), file)),
    warnings: says.key !== undefined && isOpenToOthers(path) ? [openText(path)] : [],
  };
}

/** The schemas are some seven hundred files: who has nothing to check does not load them. */
async function checked(raw: unknown, path: string): Promise<ClientConfigFile> {
  if (typeof raw === "object" && raw !== null && Object.keys(raw).length === 0) return {};
  const { parseClientConfig } = await import("../../contract/index.ts");
  return parseClientConfig(raw, path);
}

/** The environment's home alone, so that whoever empties the environment gets no file. */
function usualPath(environment: Environment): string | undefined {
  const home = nonEmpty(environment["HOME"]);
  const folder = nonEmpty(environment["XDG_CONFIG_HOME"]) ?? (home === undefined ? undefined : join(home, ".config"));
  if (folder === undefined || !isAbsolute(folder)) return undefined;
  const path = join(folder, "tenure", "config.toml");
  return existsSync(path) ? path : undefined;
}

const OTHERS_MODE = 0o077;

function isOpenToOthers(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && stat.isFile() && (stat.mode & OTHERS_MODE) !== 0;
}

function openText(path: string): string {
  return `${path} holds a key, and other users of this machine may read it: chmod 600 ${path}, or name a file with key_file.`;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text;
}
