// The binary: what it answers to a command line that is wrong, unbuilt and built.

import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startPostgres } from "../servers/index.ts";
import { exits, scratch } from "./test-commands.ts";
import { Instance, Tenure } from "./test-run.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

async function answer(...args: string[]): Promise<{ code: number; stderr: string; stdout: string }> {
  const tenure = new Tenure(args);
  const code = await tenure.exitCode();
  return { code, stderr: tenure.stderr, stdout: tenure.stdout };
}

describe("wrong use", () => {
  it("of a command: one line with what was meant, and 64", async () => {
    const { code, stderr } = await answer("rnu");
    expect(code).toBe(64);
    expect(stderr).toBe('tenure: there is no command "rnu"; did you mean run?\n');
    expect((await answer("frobnicate")).stderr).toMatch(/the commands are run, scope, .*, version\n$/);
    expect((await answer()).code).toBe(64);
  });

  it("of a flag of `run`: one line that names it, and 64", async () => {
    const { code, stderr } = await answer(
      "run",
      "--scope",
      "s",
      "--backend",
      "postgres://h/d",
      "--grace",
      "x",
      "--",
      "y",
    );
    expect(code).toBe(64);
    expect(stderr).toMatch(/^tenure run: --grace takes a duration .* \(tenure run --help\)\n$/);
    const tooLong = await answer("run", "--scope", "s", "--backend", "postgres://h/d", "--grace", "5s", "--", "y");
    expect(tooLong.code).toBe(64);
    expect(tooLong.stderr).toMatch(/^tenure run: --grace 5000ms does not fit: .* Give at most 2500ms/);
  });
});

it("says its version and its help", async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  expect(await answer("--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  expect((await answer("help")).stdout).toMatch(/tenure run .*\n/);
  const help = await answer("run", "--help");
  expect(help.code).toBe(0);
  // What no guard can do belongs where people look.
  expect(help.stdout).toMatch(/What no guard can do: stop a process that left the group \(setsid/);
});

it("works built, guard included", async () => {
  const directory = scratch();
  const binary = join(directory, "dist", "cli", "main.js");
  const tsc = join(ROOT, "node_modules", ".bin", "tsc");
  // Types are checked by `npm run check`, and are four fifths of the time.
  const quick = ["--noCheck", "--declaration", "false", "--declarationMap", "false"];
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", ...quick, "--outDir", join(directory, "dist")], {
    cwd: ROOT,
  });
  cpSync(join(ROOT, "package.json"), join(directory, "package.json"));
  symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
  const server = await startPostgres({ settings: { fsync: "off" } });
  try {
    const leader = new Instance(["--scope", "built", "--backend", server.url()], () => exits(3), {}, binary);
    expect(await leader.tenure.exitCode()).toBe(3);
    expect(leader.tenure.stderr).toMatch(/leading: "built" in epoch 1/);
    expect(readFileSync(binary, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  } finally {
    await server.end();
  }
});
