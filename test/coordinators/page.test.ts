// docs/coordinators.md as a stranger follows it: its blocks as one script in an empty directory, each compared with what the page says it prints.

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { COMPILE_CACHE } from "../servers/compile-cache.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { findProgram } from "../servers/server-process.ts";
import { TENURE_MAIN } from "../servers/tenure-node.ts";

/** About 45 s; on a busy machine much more. */
const LIMIT_MS = 600_000;
const MARK = "== block ";

interface Step {
  readonly script: string;
  /** What is printed, as the page has it; "" where it has nothing. */
  readonly printed: string;
}

const [, SECTION = ""] =
  /## Three islands in five minutes\n([\s\S]*?)\n## /.exec(readFileSync("docs/coordinators.md", "utf8")) ?? [];
const STEPS: readonly Step[] = [...SECTION.matchAll(/```sh\n([\s\S]*?)```(?:\n\n```\n([\s\S]*?)```)?/g)].map(
  ([, script = "", printed = ""]) => ({ script, printed }),
);

/** What differs from one run to the next: disks, hashes and their order, times, counts of changes; and who is elected. */
function inAnyRun(text: string): string {
  const words = text
    .replaceAll(/\b[0-9a-f]{64}\b +https:.*$/gm, "<island>")
    .replaceAll(/\b[0-9a-f]{64}\b/g, "<hash>")
    .replaceAll(/@[0-9a-f]{16}\b/g, "@<disk>")
    .replaceAll(/\bc-[0-9a-f]{16}\b/g, "<cluster>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/(term|version)( +)\d+/g, "$1 <n>")
    .replaceAll(/\b(leads|answers|unknown)\b/g, "<state>")
    .replaceAll(/^leader .*$/gm, "leader <whoever>")
    // Of a node that does not lead.
    .replaceAll(/^STATE .*\n/gm, "");
  return words.replaceAll(/ +/g, " ").replaceAll(/ $/gm, "").trim();
}

async function run(
  script: string,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly rest: string }> {
  const directory = await temporaryDirectory("islands", undefined);
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
  const timer = setTimeout(end, LIMIT_MS - 20_000);
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  const logs = readdirSync(work).filter((name) => name.endsWith(".log"));
  const tails = logs.map((name) => `${name}:\n${readFileSync(join(work, name), "utf8").slice(-2_000)}`);
  return { code, stdout: said.stdout, rest: [said.stderr, ...tails].join("\n") };
}

describe.skipIf(findProgram("jq") === undefined || findProgram("bash") === undefined)("the page", () => {
  it("docs/coordinators.md: three islands in five minutes, as they are written", { timeout: LIMIT_MS }, async () => {
    expect(STEPS).toHaveLength(8);
    const script = STEPS.map((step, at) => `echo "${MARK}${at}"\n${step.script}`).join("\n");
    const { code, stdout, rest } = await run(script);
    const parts = stdout.split(/^== block \d+\n/m).slice(1);
    const printed = parts.map((text) => inAnyRun(text));
    expect(printed, `${stdout}\n${rest}`).toEqual(STEPS.map((step) => inAnyRun(step.printed)));
    expect(code, rest).toBe(0);
  });
});
