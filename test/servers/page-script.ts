// The blocks of a page as a stranger runs them: one script in an empty directory, with what each block has printed.

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { COMPILE_CACHE } from "./compile-cache.ts";
import { removeDirectory, temporaryDirectory } from "./directories.ts";
import { findProgram } from "./server-process.ts";
import { TENURE_MAIN } from "./tenure-node.ts";

const MARK = "== block ";

export interface Step {
  readonly script: string;
  /** What is printed, as the page has it; "" where it has nothing. */
  readonly printed: string;
}

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  /** stderr, and the ends of the logs in the directory. */
  readonly rest: string;
}

/** Of one section: each `sh` block, and the block without a language that follows it. */
export function stepsOf(page: string, heading: string): readonly Step[] {
  const [, section = ""] = new RegExp(`## ${heading}\\n([\\s\\S]*?)\\n## `).exec(readFileSync(page, "utf8")) ?? [];
  return [...section.matchAll(/```sh\n([\s\S]*?)```(?:\n\n```\n([\s\S]*?)```)?/g)].map(
    ([, script = "", printed = ""]) => ({ script, printed }),
  );
}

export function hasPageTools(): boolean {
  return findProgram("jq") !== undefined && findProgram("bash") !== undefined;
}

/** `parts`: what each step has printed. */
export async function runSteps(
  steps: readonly Step[],
  limitMs: number,
): Promise<{ readonly code: number | null; readonly parts: readonly string[]; readonly rest: string }> {
  const script = steps.map((step, at) => `echo "${MARK}${at}"\n${step.script}`).join("\n");
  const { code, stdout, rest } = await run(script, limitMs);
  return { code, parts: stdout.split(/^== block \d+\n/m).slice(1), rest };
}

async function run(script: string, limitMs: number): Promise<Ran> {
  const directory = await temporaryDirectory("page", undefined);
  onTestFinished(async () => await removeDirectory(directory));
  const bin = join(directory, "bin");
  const work = join(directory, "work");
  mkdirSync(bin);
  mkdirSync(work);
  writeFileSync(join(bin, "tenure"), `#!/bin/sh\nexec "${process.execPath}" --no-warnings "${TENURE_MAIN}" "$@"\n`);
  chmodSync(join(bin, "tenure"), 0o755);
  const env = { PATH: `${bin}:${process.env["PATH"] ?? ""}`, HOME: directory, NODE_COMPILE_CACHE: COMPILE_CACHE };
  // In a group of its own, so that no server outlives the test.
  const child = spawn("bash", ["-c", script], { cwd: work, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const end = (): void => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // Nobody is left.
    }
  };
  onTestFinished(end);
  const timer = setTimeout(end, limitMs);
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  const logs = readdirSync(work).filter((name) => name.endsWith(".log"));
  const tails = logs.map((name) => `${name}:\n${readFileSync(join(work, name), "utf8").slice(-2_000)}`);
  return { code, stdout: said.stdout, rest: [said.stderr, ...tails].join("\n") };
}
