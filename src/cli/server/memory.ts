// A killed leader is replaced as soon as its connections close, and Linux closes them only when it has taken back all of the
// process's memory: at a million pending jobs, a gigabyte in small pages, that took longer than the election. Large pages are
// given back many times faster, and glibc asks for them only when it is told to, in the environment and before the process
// starts. The supervisor starts its controller with that; a controller without one (`tenure server controller`) starts itself once more in its own place: same process number, same files, nothing done yet.
//
// The same two ways bound V8's room for new objects. Unbounded it grows to 64 MiB in a server that has little to do, stays that large, and is never full before V8
// collects the whole heap instead.

import { isSea } from "node:sea";
import { SEMI_SPACE_MB_MAX } from "./limits.ts";

const VARIABLE = "GLIBC_TUNABLES";

/**
 * hugetlb: large pages for whatever malloc holds. The two others keep what was given back by the program for the program:
 * to return it and ask for it again means to clear a large page each time.
 */
export const TUNABLES = [
  "glibc.malloc.hugetlb=1",
  `glibc.malloc.mmap_threshold=${32 * 1024 * 1024}`,
  `glibc.malloc.trim_threshold=${1024 * 1024 * 1024}`,
].join(":");

const SEMI_SPACE = /--max[-_]semi[-_]space[-_]size/;

/** For a process that we start ourselves; what the operator has chosen goes before it. */
export const MEMORY_ENVIRONMENT = { [VARIABLE]: TUNABLES };

/**
 * Flags of node for a server, before those that it was started with; none where the operator has chosen. The single executable
 * (scripts/build-binary.ts) takes a flag of node for a command of its own.
 */
export function memoryFlags(
  { env, execArgv }: Pick<OwnProcess, "env" | "execArgv">,
  isSingleExecutable = isSea(),
): readonly string[] {
  const isChosen = [...execArgv, env["NODE_OPTIONS"] ?? ""].some((flag) => SEMI_SPACE.test(flag));
  return isChosen || isSingleExecutable ? [] : [`--max-semi-space-size=${SEMI_SPACE_MB_MAX}`];
}

export interface OwnProcess {
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execPath: string;
  readonly execArgv: readonly string[];
  readonly argv: readonly string[];
  /** Whether somebody holds a channel to it, which would be cut. */
  readonly connected?: boolean;
  readonly execve?: ((file: string, args: string[], env: Record<string, string | undefined>) => never) | undefined;
}

/** What it is to be started again with; null where it goes on as it is: the operator has chosen, or nothing is to be had. */
export function restartEnvironment(own: OwnProcess): Record<string, string | undefined> | null {
  if (own.platform !== "linux" || own.execve === undefined || own.connected === true) return null;
  return own.env[VARIABLE] === undefined ? { ...own.env, [VARIABLE]: TUNABLES } : null;
}

/** Does not return where it starts again. */
export function withLargePages(own: OwnProcess): void {
  const env = restartEnvironment(own);
  if (env === null) return;
  own.execve?.(own.execPath, [own.execPath, ...memoryFlags(own), ...own.execArgv, ...own.argv.slice(1)], env);
}
