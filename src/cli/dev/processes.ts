// Servers as processes of `tenure dev`: how one is started, the ports and keys that they get.

import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes, randomInt } from "node:crypto";
import { closeSync, fstatSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { PORT_TRIES_MAX } from "./limits.ts";

const EXTENSION = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const MAIN_FILE = fileURLToPath(new URL(`../main${EXTENSION}`, import.meta.url));
const LEASH_FILE = new URL(`./leash${EXTENSION}`, import.meta.url).href;
/** Below the range from which the kernel takes ports for outgoing connections: a server must find its port again. */
const PORT_LOWEST = 15_000;
const PORT_HIGHEST = 32_000;
const KEY_BYTES = 24;

export interface ServerToStart {
  readonly configFile: string;
  readonly logFile: string;
  /** Removed by whichever server finds us gone. */
  readonly directory: string;
  readonly isFounder: boolean;
}

/** `logStartBytes`: where the words of this process begin in its log. */
export function spawnServer({ configFile, logFile, directory, isFounder }: ServerToStart): {
  readonly child: ChildProcess;
  readonly logStartBytes: number;
} {
  const log = openSync(logFile, "a");
  const logStartBytes = fstatSync(log).size;
  const args = ["--import", LEASH_FILE, MAIN_FILE, "server", "start", "--config", configFile];
  const child = spawn(process.execPath, [...args, ...(isFounder ? ["--bootstrap"] : [])], {
    stdio: ["ignore", log, log, "ipc"],
    // Ctrl-C in the terminal goes to the whole group; how the servers end is for us to say.
    detached: true,
    env: { ...cleanEnvironment(), TENURE_DEV_DIRECTORY: directory },
  });
  closeSync(log);
  return { child, logStartBytes };
}

export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

export function newKey(): string {
  return randomBytes(KEY_BYTES).toString("base64url");
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** What the user has set for other servers must not get into these. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TENURE_")));
}

export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  for (let tries = 0; tries < PORT_TRIES_MAX && found.size < count; tries++) {
    const port = randomInt(PORT_LOWEST, PORT_HIGHEST);
    if (await isFree(port)) found.add(port);
  }
  if (found.size < count) throw new Error(`no ${count} free ports between ${PORT_LOWEST} and ${PORT_HIGHEST}`);
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
