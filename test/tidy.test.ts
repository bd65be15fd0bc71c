// House style as a test. Every rule is also run on a planted violation, so that none of them can go blind.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describe as text, readSources } from "../scripts/source.ts";
import { checkRooms, checkTidy } from "../scripts/tidy.ts";

const HEADER = "// What it is.\n";

function messages(path: string, code: string): string[] {
  return checkTidy([{ path, text: code }]).violations.map(text);
}

function functionOf(lines: number): string {
  return `export function long(): void {\n${"  void 0;\n".repeat(lines - 2)}}\n`;
}

describe("this repository", () => {
  const sources = readSources(process.cwd(), ["src", "test", "scripts"]);

  it("keeps the house style, and something was checked", () => {
    const report = checkTidy(sources);
    for (const warning of report.warnings) console.warn(text(warning));
    expect(report.violations.map(text)).toEqual([]);
    expect(report.files).toBeGreaterThan(30);
    expect(report.functions).toBeGreaterThan(100);
  });

  it("names every room in ARCHITECTURE.md", () => {
    expect(checkRooms(sources, readFileSync("ARCHITECTURE.md", "utf8")).map(text)).toEqual([]);
  });
});

describe("length", () => {
  it("of a function is at most 70 lines, whatever its form", () => {
    expect(messages("src/engine/x.ts", HEADER + functionOf(70))).toEqual([]);
    expect(messages("src/engine/x.ts", HEADER + functionOf(71))).toEqual([
      "src/engine/x.ts:2: long has 71 lines; at most 70: a function fits on a screen",
    ]);
    const body = "\n".repeat(80);
    expect(messages("src/engine/x.ts", `${HEADER}const arrow = () => {${body}};`)[0]).toContain("arrow has 81 lines");
    expect(messages("src/engine/x.ts", `${HEADER}class A { #step() {${body}} }`)[0]).toContain("step has 81 lines");
  });

  it("of a folder is at most 25 files, without the tests", () => {
    const folder = (count: number): string[] => {
      const files = Array.from({ length: count }, (_, n) => ({ path: `src/engine/x${n}.ts`, text: HEADER }));
      return checkTidy([...files, { path: "src/engine/x.test.ts", text: "" }]).violations.map(text);
    };
    expect(folder(25)).toEqual([]);
    expect(folder(26)).toEqual(["src/engine:1: has 26 files; at most 25: nobody finds one in a longer list"]);
  });

  it("of a test's functions is free", () => {
    expect(messages("src/engine/x.test.ts", functionOf(300))).toEqual([]);
  });

  it("of a file is at most 700 lines, with a warning above 400, and 820 for the Raft step file", () => {
    const lines = (count: number): string => HEADER + "export {};\n".repeat(count - 1);
    const warnings = (path: string, count: number): string[] =>
      checkTidy([{ path, text: lines(count) }]).warnings.map(text);
    expect(warnings("src/engine/x.ts", 400)).toEqual([]);
    expect(warnings("src/engine/x.ts", 401)).toEqual([
      "src/engine/x.ts:1: has 401 lines; does it hold more than one concept?",
    ]);
    expect(messages("src/engine/x.ts", lines(700))).toEqual([]);
    expect(messages("src/engine/x.ts", lines(701))[0]).toContain("has 701 lines; at most 700");
    expect(warnings("src/core/raft/raft.ts", 820)).toEqual([]);
    expect(messages("src/core/raft/raft.ts", lines(820))).toEqual([]);
    expect(messages("src/core/raft/raft.ts", lines(821))[0]).toContain("has 821 lines; at most 820");
  });
});

describe("names", () => {
  it.each(["src/engine/readyLoop.ts", "src/engine/Loop.ts", "src/engine/ready_loop.ts", "src/theEngine/x.ts"])(
    "%s is refused",
    (path) => {
      expect(messages(path, HEADER).join()).toContain("not named in kebab-case");
    },
  );

  it.each(["src/engine/ready-loop.ts", "src/engine/ready-loop.test.ts", "src/core/kit/ambient.d.ts"])(
    "%s is fine",
    (path) => {
      expect(messages(path, HEADER)).toEqual([]);
    },
  );
});

describe("globals", () => {
  it.each([
    ["Math.random()", "Math.random"],
    ['Math["random"]()', "Math.random"],
    ["const { random } = Math", "Math"],
    ["Date.now()", "Date.now"],
    ["new Date()", "Date"],
    ["const now = Date.now", "Date.now"],
    ["Temporal.Now.instant()", "Temporal.Now"],
    ["performance.now()", "performance.now"],
    ["setTimeout(() => 1, 1)", "setTimeout"],
    ["setInterval(() => 1, 1)", "setInterval"],
    ["setImmediate(() => 1)", "setImmediate"],
    ["queueMicrotask(() => 1)", "queueMicrotask"],
    ["const later = setTimeout", "setTimeout"],
    ["const timers = { setTimeout }", "setTimeout"],
    ["globalThis.setTimeout(() => 1)", "globalThis.setTimeout"],
    ["(globalThis as never)[name]()", "globalThis"],
    ["process.exit(1)", "process.exit"],
    ["console.log(1)", "console.log"],
    ["crypto.randomUUID()", "crypto.randomUUID"],
    ["AbortSignal.timeout(5)", "AbortSignal.timeout"],
    ["function f(a = Date.now()) { return a; }", "Date.now"],
    ["{ const process = 1; void process; } process.exit(1)", "process.exit"],
  ])("`%s` is refused where decisions and loops live", (code, name) => {
    for (const path of ["src/core/raft/x.ts", "src/engine/x.ts", "src/sim/x.ts"]) {
      expect(messages(path, `${HEADER}${code};`)).toEqual([
        `${path}:2: uses ${name}; time, randomness, timers and the process come in through ports`,
      ]);
    }
    for (const path of ["src/drivers/system/x.ts", "src/cli/run/command.ts", "src/engine/x.test.ts"]) {
      expect(messages(path, `${HEADER}${code};`)).toEqual([]);
    }
  });

  it.each([
    "for (const process of processes) process.start()",
    "const stop = (process: Process) => process.stop()",
    "const { console, now: performance } = given; console.log(performance)",
    "clock.setTimeout(1); const port = { process: 1, Date: 2 }; port.Date",
    "class A { performance = 1; process() { return this.process; } }",
    "let at: Date; interface B { process: NodeJS.Process }",
    "try { f(); } catch (process) { throw process; }",
    "switch (a) { case 1: { const fetch = 1; f(fetch); } }",
    'import { performance } from "./mine.ts"; performance.now()',
    "Math.floor(1.5)",
  ])("`%s` refers to no global", (code) => {
    expect(messages("src/engine/x.ts", `${HEADER}${code};`)).toEqual([]);
  });

  it("setImmediate is the simulation kernel's alone", () => {
    const code = `${HEADER}setImmediate(() => 1);`;
    expect(messages("src/sim/kernel/scheduler.ts", code)).toEqual([]);
    expect(messages("src/sim/raft/cluster.ts", code)).toHaveLength(1);
  });
});

describe("leftovers", () => {
  it.each(["TODO", "FIXME", "XXX", "HACK"])("%s in a comment is refused, also in tests", (word) => {
    expect(messages("src/engine/x.ts", `${HEADER}/* ${word}: later */`)).toEqual([
      `src/engine/x.ts:2: leaves a ${word}; do it, or open an issue`,
    ]);
    expect(messages("test/x.test.ts", `const a = "${word}"; // ${word}`)).toHaveLength(1);
  });

  it.each(["it.only('a', f)", "describe.only('a', f)", "test.concurrent.only('a', f)", "it.only.each([1])('a', f)"])(
    "`%s` is refused",
    (code) => {
      expect(messages("src/engine/x.test.ts", code)).toEqual([
        "src/engine/x.test.ts:1: uses .only, which silences every other test",
      ]);
    },
  );
});

describe("headers", () => {
  it("open every source file, but no door and no test", () => {
    const code = "export const a = 1;\n\n\n// too late";
    expect(messages("src/engine/x.ts", code)).toEqual([
      "src/engine/x.ts:1: does not open with a comment that says what it is",
    ]);
    expect(messages("src/engine/index.ts", code)).toEqual([]);
    expect(messages("src/engine/x.test.ts", code)).toEqual([]);
  });
});

describe("rooms", () => {
  const sources = ["src/engine/a.ts", "src/core/raft/b.ts"].map((path) => ({ path, text: "" }));

  it("are missed when the word merely occurs", () => {
    expect(checkRooms(sources, "The engine of raft sits at the core.").map((one) => one.message)).toEqual([
      expect.stringContaining("the room engine/"),
      expect.stringContaining("the room core/:"),
      expect.stringContaining("the room core/raft/"),
    ]);
  });

  it("are found in a tree or in a sentence", () => {
    expect(checkRooms(sources, "core/   decides\n  raft/  consensus\nengine/ loops")).toEqual([]);
    expect(checkRooms(sources, "`core/raft` decides, `engine/` loops")).toEqual([]);
  });
});

it("a file that does not parse is refused", () => {
  expect(messages("src/engine/x.ts", `${HEADER}const = 1`).join()).toContain("does not parse");
});
