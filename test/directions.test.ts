// The import rules, each with a planted violation: a check that can't fail proves nothing.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { checkDirections } from "../scripts/directions.ts";
import { describe as text, readSources } from "../scripts/source.ts";

/** Each: what it is, where it stands, what it says, and what the refusal mentions. */
const REFUSED: readonly [what: string, path: string, code: string, mentions: string][] = [
  [
    "core using a value of ports",
    "src/core/raft/x.ts",
    `import { a } from "../../ports/clock.ts";`,
    "`import type` only",
  ],
  [
    "an inline type import, which still loads",
    "src/core/wal/x.ts",
    `import { type A } from "../../ports/a.ts";`,
    "`import type` only",
  ],
  [
    "one core room using another",
    "src/core/raft/x.ts",
    `import { a } from "../wal/frame.ts";`,
    "core/raft may not import core/wal",
  ],
  [
    "kit using another core room's types",
    "src/core/kit/x.ts",
    `import type { A } from "../raft/types.ts";`,
    "core/kit may not import",
  ],
  [
    "core using the engine",
    "src/core/raft/x.ts",
    `import { a } from "../../engine/a.ts";`,
    "core/raft may not import engine",
  ],
  [
    "core using the engine's types",
    "src/core/raft/x.ts",
    `import type { A } from "../../engine/a.ts";`,
    "may not import engine",
  ],
  [
    "the dashboard using a loop",
    "web/src/x.tsx",
    `import { a } from "../../src/controller/a.ts";`,
    "web may not import controller",
  ],
  ["the dashboard using Node", "web/src/x.ts", `import { a } from "node:fs";`, "web may not import node:fs"],
  ["jobs using a value of events", "src/core/jobs/x.ts", `import { a } from "../events/a.ts";`, "`import type` only"],
  ["ports using a value of core", "src/ports/x.ts", `import { a } from "../core/kit/assert.ts";`, "`import type` only"],
  [
    "ports using the engine",
    "src/ports/x.ts",
    `import type { A } from "../engine/a.ts";`,
    "ports may not import engine",
  ],
  [
    "a loop using another loop",
    "src/controller/x.ts",
    `import { a } from "../engine/a.ts";`,
    "controller may not import engine",
  ],
  [
    "a loop using a driver",
    "src/engine/x.ts",
    `import { a } from "../drivers/disk/a.ts";`,
    "engine may not import drivers/disk",
  ],
  ["a loop using the simulator", "src/engine/x.ts", `import { a } from "../sim/a.ts";`, "engine may not import sim"],
  [
    "one driver using another",
    "src/drivers/disk/x.ts",
    `import { a } from "../wire/a.ts";`,
    "drivers/disk may not import",
  ],
  [
    "a driver using the engine",
    "src/drivers/disk/x.ts",
    `import { a } from "../../engine/a.ts";`,
    "may not import engine",
  ],
  [
    "a driver using a decision of core",
    "src/drivers/disk/x.ts",
    `import { a } from "../../core/raft/a.ts";`,
    "`import type` only",
  ],
  [
    "api using the controller itself",
    "src/api/x.ts",
    `import { a } from "../controller/a.ts";`,
    "api may not import controller",
  ],
  ["client using a port", "src/client/x.ts", `import type { A } from "../ports/a.ts";`, "client may not import ports"],
  [
    "a plain command using a driver",
    "src/cli/completion/x.ts",
    `import { a } from "../../drivers/disk/a.ts";`,
    "cli may not import drivers/disk",
  ],
  ["a plain command using Node", "src/cli/job/x.ts", `import { a } from "node:fs";`, "cli may not import node:fs"],
  [
    "a folder whose name begins like a composition root's",
    "src/cli/server-x/x.ts",
    `import { a } from "node:fs";`,
    "cli may not import node:fs",
  ],
  [
    "the SDK using more of the core than its words",
    "src/client/x.ts",
    `import { a } from "../core/jobs/book.ts";`,
    "client may not import core/jobs",
  ],
  [
    "an API's route using the words past the contract",
    "src/api/x.ts",
    `import { a } from "../core/jobs/model.ts";`,
    "api may not import core/jobs",
  ],
  ["what commands share using Node", "src/cli/kit/x.ts", `import { a } from "node:fs";`, "cli may not import node:fs"],
  [
    "sim using a driver",
    "src/sim/x.ts",
    `import { a } from "../drivers/disk/a.ts";`,
    "sim may not import drivers/disk",
  ],
  ["sim using a composition root", "src/sim/x.ts", `import { a } from "../cli/sim/x.ts";`, "sim may not import cli"],
  [
    "a server's assembly using a driver: the simulator could not run it",
    "src/node/assembly/x.ts",
    `import { a } from "../../drivers/system/clock.ts";`,
    "node/assembly may not import drivers/system",
  ],
  [
    "a server's assembly using the worlds that call it",
    "src/node/assembly/x.ts",
    `import type { A } from "../worlds/embedded.ts";`,
    "node/assembly may not import node/worlds",
  ],
  [
    "a server's assembly using Node",
    "src/node/assembly/x.ts",
    `import { a } from "node:crypto";`,
    "node/assembly may not import node:crypto",
  ],
  [
    "a real server using a command",
    "src/node/worlds/x.ts",
    `import { a } from "../../cli/kit/flags.ts";`,
    "node/worlds may not import cli",
  ],
  [
    "sim using a real server's drivers",
    "src/sim/x.ts",
    `import { a } from "../node/worlds/x.ts";`,
    "sim may not import node/worlds",
  ],
  ["sim using Node", "src/sim/x.ts", `import { a } from "node:crypto";`, "sim may not import node:crypto"],
  [
    "production using the simulator",
    "src/cli/server/x.ts",
    `import { a } from "../../sim/a.ts";`,
    "may not import sim",
  ],
  [
    "core using Node",
    "src/core/kit/x.ts",
    `import { readFileSync } from "node:fs";`,
    "core/kit may not import node:fs",
  ],
  [
    "core using Node's types",
    "src/core/kit/x.ts",
    `import type { Stats } from "node:fs";`,
    "core/kit may not import node:fs",
  ],
  ["Node without its prefix", "src/drivers/disk/x.ts", `import { a } from "fs";`, "write node:fs"],
  [
    "core using an npm package",
    "src/core/kit/x.ts",
    `import { a } from "cborg";`,
    "may not import npm packages (cborg)",
  ],
  ["an npm package's subpath", "src/engine/x.ts", `import { a } from "@scope/pkg/deep";`, "npm packages (@scope/pkg)"],
  ["re-export", "src/engine/x.ts", `export { a } from "../drivers/disk/a.ts";`, "may not import drivers/disk"],
  [
    "re-export of everything",
    "src/engine/x.ts",
    `export * from "../drivers/disk/a.ts";`,
    "may not import drivers/disk",
  ],
  [
    "dynamic import",
    "src/engine/x.ts",
    `const a = await import("../drivers/disk/a.ts");`,
    "may not import drivers/disk",
  ],
  ["computed import", "src/engine/x.ts", "const a = await import(`../${name}.ts`);", "must be a literal"],
  ["import inside a type", "src/core/raft/x.ts", `type A = import("../../engine/a.ts").A;`, "may not import engine"],
  ["typeof import", "src/core/raft/x.ts", `let a: typeof import("../../engine/a.ts");`, "may not import engine"],
  ["require", "src/engine/x.ts", `const a = require("node:fs");`, "may not import node:fs"],
  ["import equals", "src/engine/x.ts", `import a = require("node:fs");`, "may not import node:fs"],
  ["side effect", "src/engine/x.ts", `import "../drivers/disk/a.ts";`, "may not import drivers/disk"],
  ["triple-slash reference", "src/core/kit/x.ts", `/// <reference types="node" />\nexport {};`, "triple-slash"],
  ["production using a test", "src/engine/x.ts", `import { a } from "./a.test.ts";`, "imports a test"],
  ["a file outside src", "src/engine/x.ts", `import a from "../../package.json";`, "no known room"],
  ["the project's own name", "src/cli/run/x.ts", `import { a } from "tenure/testing";`, "own name"],
  ["a subpath import", "src/engine/x.ts", `import { a } from "#secret";`, "can be checked"],
  ["a new room", "src/misc/x.ts", `import { a } from "./b.ts";`, "no known room"],
  ["a file that does not parse", "src/engine/x.ts", `import { from;`, "does not parse"],
];

const ALLOWED: readonly [path: string, code: string][] = [
  ["src/core/raft/x.ts", `import { assert } from "../kit/assert.ts"; import { b } from "./log.ts";`],
  ["src/core/wal/x.ts", `import { a } from "../raft/codec.ts"; import type { Digest } from "../../ports/digest.ts";`],
  ["src/ports/x.ts", `import type { A } from "../core/kit/ids.ts"; import type { B } from "./disk.ts";`],
  ["src/engine/x.ts", `import { a } from "../core/raft/raft.ts"; import type { Disk } from "../ports/disk.ts";`],
  [
    "src/drivers/disk/x.ts",
    `import { a } from "node:fs"; import { b } from "npm-a"; import { c } from "../../core/kit/assert.ts";`,
  ],
  [
    "src/node/worlds/x.ts",
    `import { a } from "../../drivers/disk/x.ts"; import { b } from "node:path"; import { c } from "../../engine/x.ts";`,
  ],
  ["src/cli/main.ts", `import { a } from "node:fs"; import { b } from "../drivers/disk/x.ts";`],
  ["src/cli/sim/x.ts", `import { a } from "../../sim/x.ts";`],
  ["src/cli/job/x.ts", `import { a } from "../../core/kit/limits.ts"; import { b } from "../../core/jobs/model.ts";`],
  ["src/contract/x.ts", `import { a } from "../core/jobs/model.ts";`],
  ["web/src/x.ts", `import { a } from "../../src/core/jobs/model.ts";`],
  ["src/sim/x.ts", `import { a } from "../engine/x.ts"; import { b } from "../core/raft/raft.ts";`],
  ["src/sim/x.ts", `import { a } from "../node/assembly/x.ts";`],
  [
    "src/node/assembly/x.ts",
    `import { a } from "../../engine/x.ts"; import { b } from "../../logs/x.ts"; import { c } from "../../controller/x.ts";`,
  ],
  [
    "src/engine/x.test.ts",
    `import { it } from "vitest"; import { a } from "../sim/x.ts"; import { b } from "node:fs";`,
  ],
];

describe("import directions", () => {
  it("hold in this repository, and something was looked at", () => {
    const report = checkDirections(readSources(process.cwd(), ["src", "web/src"]));
    expect(report.violations.map(text)).toEqual([]);
    expect(report.files).toBeGreaterThan(20);
    expect(report.imports).toBeGreaterThan(20);
  });

  it.each(REFUSED)("refuse %s", (_what, path, code, mentions) => {
    const messages = checkDirections([{ path, text: code }]).violations.map(text);
    expect(messages.join("\n")).toContain(mentions);
    expect(messages[0]).toContain(`${path}:1: `);
  });

  it.each(ALLOWED)("allow %s", (path, code) => {
    expect(checkDirections([{ path, text: code }]).violations.map(text)).toEqual([]);
  });

  it("refuse an npm package that two rooms import, and name both", () => {
    const report = checkDirections([
      { path: "src/drivers/disk/x.ts", text: `import { a } from "pkg/sub";` },
      { path: "src/drivers/wire/y.ts", text: `import { a } from "pkg";` },
      { path: "src/drivers/wire/z.test.ts", text: `import { a } from "other"; import { b } from "pkg";` },
    ]);
    expect(report.violations.map(text)).toEqual([
      "src/drivers/disk/x.ts:1: pkg is imported from drivers/disk and drivers/wire; an npm package belongs to one room",
      "src/drivers/wire/y.ts:1: pkg is imported from drivers/disk and drivers/wire; an npm package belongs to one room",
    ]);
  });

  it("count every import", () => {
    const code = `import "./a.ts"; export * from "./b.ts"; import type { C } from "./c.ts"; void import("./d.ts");`;
    expect(checkDirections([{ path: "src/engine/x.ts", text: code }])).toMatchObject({
      files: 1,
      imports: 4,
      violations: [],
    });
  });

  it("fail as a command where there is nothing to look at", () => {
    const empty = mkdtempSync(join(tmpdir(), "tenure-directions-"));
    try {
      const result = spawnSync(process.execPath, [resolve("scripts/directions.ts")], { cwd: empty, encoding: "utf8" });
      expect(result.stdout).toContain("0 files, 0 imports checked");
      expect(result.status).toBe(1);
    } finally {
      rmSync(empty, { recursive: true });
    }
  });
});
