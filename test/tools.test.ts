// The tools that guard the rooms, each run on a planted violation with the repository's own configuration:
// a compiler, a linter or a dead-code finder that looks at nothing also reports nothing.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let copy: string;

beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), "tenure-tools-"));
  for (const file of [
    "package.json",
    "tsconfig.base.json",
    "tsconfig.json",
    "tsconfig.pure.json",
    ".oxlintrc.json",
    "knip.ts",
  ]) {
    cpSync(file, join(copy, file));
  }
  symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
});

afterEach(() => rmSync(copy, { recursive: true }));

function plant(path: string, text: string): void {
  mkdirSync(dirname(join(copy, path)), { recursive: true });
  writeFileSync(join(copy, path), text);
}

function run(tool: string, ...args: string[]): { status: number | null; output: string } {
  const result = spawnSync(resolve("node_modules/.bin", tool), args, { cwd: copy, encoding: "utf8" });
  return { status: result.status, output: result.stdout + result.stderr };
}

describe("the compiler, in core/ and ports/", () => {
  beforeEach(() => {
    for (const room of ["src/core", "src/ports"]) cpSync(room, join(copy, room), { recursive: true });
  });

  it("accepts what is there, and what ambient.d.ts names", () => {
    plant("src/core/raft/fine.ts", "export const bytes = new TextEncoder().encode('a');\n");
    const { status, output } = run("tsc", "-p", "tsconfig.pure.json", "--listFiles");
    expect(output).toContain("src/core/raft/fine.ts");
    expect(output).not.toContain("error TS");
    expect(status).toBe(0);
  });

  it("refuses timers, Node's modules and Node's globals", () => {
    plant("src/core/raft/timer.ts", "setTimeout(() => undefined, 1);\nexport {};\n");
    plant("src/core/raft/files.ts", 'import { readFileSync } from "node:fs";\nexport const a = readFileSync;\n');
    plant("src/core/raft/types.ts", 'import type { Stats } from "node:fs";\nexport type A = Stats;\n');
    plant("src/core/raft/exit.ts", "process.exit(1);\nexport {};\n");
    plant("src/core/raft/log.ts", "console.log(1);\nexport {};\n");
    plant("src/core/raft/buffer.ts", "export const a = Buffer.alloc(1);\n");
    plant("src/core/raft/measure.ts", "export const a = performance.now();\n");
    plant("src/ports/timer.ts", "export const a = setImmediate;\n");
    const { status, output } = run("tsc", "-p", "tsconfig.pure.json", "--pretty", "false");
    expect(status).not.toBe(0);
    const refused = output.split("\n").flatMap((line) => /^src\/([\w/]+)\.ts\(1,\d+\): error TS/.exec(line)?.[1] ?? []);
    expect(refused.sort()).toEqual(
      ["buffer", "exit", "files", "log", "measure", "timer", "types"]
        .map((name) => `core/raft/${name}`)
        .concat("ports/timer"),
    );
  });

  it("refuses syntax that Node can't strip, unchecked indexes and inexact optionals everywhere", () => {
    plant("src/engine/enum.ts", "export enum A { B }\n");
    plant("src/engine/index-access.ts", "export const a = (list: number[]): number => list[0];\n");
    plant("src/engine/optional.ts", "export const a: { b?: number } = { b: undefined };\n");
    plant("src/engine/type-import.ts", 'import { PeerKey } from "../core/kit/ids.ts";\nexport type A = PeerKey;\n');
    const { output } = run("tsc", "-p", "tsconfig.json", "--pretty", "false");
    const codes = output
      .split("\n")
      .flatMap((line) => /^src\/engine\/([\w-]+)\.ts.*error (TS\d+)/.exec(line)?.slice(1).join(" ") ?? []);
    expect(codes.sort()).toEqual(["enum TS1294", "index-access TS2322", "optional TS2375", "type-import TS1484"]);
  });
});

describe("the linter", () => {
  it("fires every rule that we rely on, the type-aware ones included", () => {
    plant(
      "src/engine/planted.ts",
      `import { basename, type ParsedPath } from "node:path";
import { Stats } from "node:fs";
export async function work(path: ParsedPath | Stats): Promise<string> {
  return basename(String(path));
}
export function floating(path: ParsedPath): void {
  work(path);
}
export function misused(path: ParsedPath): void {
  if (work(path)) throw new Error("always");
  [1].forEach(async () => { await work(path); });
}
export async function awaited(value: number): Promise<number> {
  return await value;
}
export function missing(kind: "a" | "b"): number {
  switch (kind) {
    case "a":
      return 1;
  }
  return 2;
}
export function loose(value: any): boolean {
  console.log(value);
  return value == 1;
}
`,
    );
    plant("src/cli/dev/talks.ts", 'console.log("fine here");\n');
    const { status, output } = run("oxlint", "--type-aware", "--deny-warnings", "--format", "unix");
    expect(status).not.toBe(0);
    for (const rule of [
      "no-floating-promises",
      "no-misused-promises",
      "await-thenable",
      "switch-exhaustiveness-check",
      "no-explicit-any",
      "consistent-type-imports",
      "no-console",
      "eqeqeq",
    ]) {
      expect(output).toContain(rule);
    }
    expect(output).not.toContain("talks.ts");
  });
});

describe("the dead-code finder", () => {
  const FIND = ["--no-progress", "--no-config-hints", "--include", "files,exports"];

  beforeEach(() => {
    plant("src/cli/main.ts", 'import { used } from "../engine/index.ts";\nused();\n');
    plant("src/engine/index.ts", 'export { used, passedOn, tested } from "./loop.ts";\n');
    plant(
      "src/engine/loop.ts",
      ["used", "forgotten", "passedOn", "tested"].map((name) => `export function ${name}(): void {}\n`).join(""),
    );
    plant("src/engine/loop.test.ts", 'import { tested } from "./index.ts";\ntested();\n');
    plant("src/engine/orphan.ts", "export const a = 1;\n");
    plant("src/core/empty/index.ts", "export const b = 1;\n");
    plant("src/cli/command.ts", "export const c = 1;\n");
  });

  it("names unused files, rooms and exports, also those that only a door passes on, and nothing that is used", () => {
    const { status, output } = run("knip", ...FIND);
    expect(status).not.toBe(0);
    for (const file of ["src/engine/orphan.ts", "src/core/empty/index.ts", "src/cli/command.ts"])
      expect(output).toContain(file);
    expect(output).toMatch(/forgotten\s.*src\/engine\/loop\.ts/);
    expect(output).toMatch(/passedOn\s.*src\/engine\/loop\.ts/);
    expect(output).not.toMatch(/\b(used|tested)\s/);
  });

  it("names in its second run what only tests use", () => {
    const { status, output } = run("knip", "--production", ...FIND);
    expect(status).not.toBe(0);
    expect(output).toMatch(/tested\s.*src\/engine\/loop\.ts/);
    expect(output).not.toMatch(/\bused\s/);
  });
});
