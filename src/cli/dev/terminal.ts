// What both demonstrations of `tenure dev` share: how they are ended, and the keys of a terminal.

import { setTimeout as sleep } from "node:timers/promises";
import { PARENT_CHECK_MS } from "./limits.ts";

const EXIT_SIGINT = 130;
const EXIT_SIGTERM = 143;

export interface Flags {
  /** Undefined: until somebody ends it. */
  readonly forMs: number | undefined;
  readonly json: boolean;
}

export function onEnd(end: (code: number) => void): void {
  process.once("SIGINT", () => end(EXIT_SIGINT));
  process.once("SIGTERM", () => end(EXIT_SIGTERM));
  process.once("SIGHUP", () => end(EXIT_SIGTERM));
  // npm that is asked to end tells nobody: whoever has started this is gone then.
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || end(EXIT_SIGTERM), PARENT_CHECK_MS).unref();
}

/** A rejection means that it was aborted, which the loops look at. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** Single keys, where there is a keyboard. Returns the way to stop. */
export function readKeys(pressed: (name: string) => void, quit: () => void): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => undefined;
  stdin.setRawMode(true).setEncoding("utf8").resume();
  stdin.on("data", (text: string) => {
    for (const letter of text) {
      // In raw mode Ctrl-C is a letter, and raises no signal.
      if (letter === "\u0003") process.kill(process.pid, "SIGINT");
      else if (letter === "q") quit();
      else pressed(letter.toLowerCase());
    }
  });
  return () => {
    stdin.setRawMode(false).pause();
  };
}
