// A runbook as a script: the commands of its ```sh blocks, one on a line, taken from the document itself, so that what people
// are advised to do is what a test does.

import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMPILE_CACHE } from "./compile-cache.ts";
import { TENURE_MAIN } from "./tenure-node.ts";

const COMMAND_MS_MAX = 60_000;

export interface RunbookStep {
  /** The last heading above it. */
  readonly heading: string;
  readonly command: string;
}

export function runbookSteps(file: string): readonly RunbookStep[] {
  const steps: RunbookStep[] = [];
  let heading = "";
  let isShell = false;
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (line.startsWith("```")) isShell = line === "```sh";
    else if (isShell && line.trim() !== "") steps.push({ heading, command: line.trim() });
    else if (/^#+ /.test(line)) heading = line.replace(/^#+ /, "");
  }
  return steps;
}

/** What a command printed and how it ended; `tenure` in it is that of the sources. */
export function runCommand(
  command: string,
  { directory, environment }: { readonly directory: string; readonly environment: Readonly<Record<string, string>> },
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const bin = join(directory, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "tenure"), `#!/bin/sh\nexec "${process.execPath}" --no-warnings "${TENURE_MAIN}" "$@"\n`);
  chmodSync(join(bin, "tenure"), 0o755);
  const own = { PATH: `${bin}:${process.env["PATH"] ?? ""}`, HOME: directory, NODE_COMPILE_CACHE: COMPILE_CACHE };
  const options = { cwd: directory, env: { ...own, ...environment }, timeout: COMMAND_MS_MAX };
  return new Promise((resolve) => {
    execFile("sh", ["-c", command], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}
