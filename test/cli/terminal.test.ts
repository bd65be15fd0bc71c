// `tenure` at a terminal, as real processes: colours there and nowhere else, and the user's own file. The terminal is that of
// `script` (util-linux); where there is none, those tests are skipped.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atTheEnd, start, tenure } from "./test-tenure.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-terminal-"));
atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));

const SCRIPT = "script";
const hasScript = spawnSync(SCRIPT, ["-qec", "true", "/dev/null"], { stdio: "ignore" }).status === 0;

/** All that a terminal would get, of both streams unless the command sends them elsewhere. */
function atTerminal(command: string, environment: Readonly<Record<string, string>> = {}): string {
  const { stdout } = spawnSync(SCRIPT, ["-qec", command, "/dev/null"], {
    encoding: "utf8",
    timeout: 60_000,
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], TERM: "xterm", XDG_CONFIG_HOME: directory, ...environment },
  });
  return stdout;
}

const MAIN = `'${process.execPath}' src/cli/main.ts`;
const RED = "\u001B[31mtenure config:\u001B[39m ";

describe.skipIf(!hasScript)("at a terminal", () => {
  it("a complaint is red, and plain with NO_COLOR or a dumb terminal", () => {
    expect(atTerminal(`${MAIN} config chekc`)).toContain(`${RED}there is no "chekc"`);
    for (const environment of [{ NO_COLOR: "1" }, { TERM: "dumb" }]) {
      const said = atTerminal(`${MAIN} config chekc`, environment);
      expect(said).toContain('tenure config: there is no "chekc"');
      expect(said).not.toContain("\u001B");
    }
  });

  it("each stream is judged by itself", () => {
    const out = join(directory, "out");
    expect(atTerminal(`${MAIN} config chekc 2>'${out}'; cat '${out}' | sed s/^/file:/`)).toContain(
      "file:tenure config:",
    );
    expect(atTerminal(`${MAIN} config chekc | cat`)).toContain(RED);
  });
});

describe("in a pipe", () => {
  it("nothing has colours, unless FORCE_COLOR asks for them; JSON never has", async () => {
    expect((await tenure("config", "chekc")).stderr).not.toContain("\u001B");
    const forced = await start(["config", "chekc"], { FORCE_COLOR: "1" }).ended;
    expect(forced.stderr).toContain(RED);
    const json = await start(["config", "show", "--client", "-o", "json"], { FORCE_COLOR: "1" }).ended;
    expect(json.code).toBe(0);
    expect(json.stdout).not.toContain("\u001B");
  });
});

describe("the user's file", () => {
  it("says where the servers are, and config show --client says that it does", async () => {
    const path = join(directory, "mine.toml");
    writeFileSync(path, 'url = "http://127.0.0.1:4"\nkey = "geheim"\n', { mode: 0o644 });
    const environment = { TENURE_CONFIG: path };
    const listed = await start(["queue", "list"], environment).ended;
    expect(listed.code).toBe(69);
    expect(listed.stderr).toMatch(/^tenure: warning: .*mine\.toml holds a key, and other users/);
    expect(listed.stderr).toContain("http://127.0.0.1:4");
    expect(listed.stderr).not.toContain("geheim");
    const shown = await start(["config", "show", "--client"], environment).ended;
    expect(shown.stdout).toMatch(/^url +file +http:\/\/127\.0\.0\.1:4$/m);
    expect(shown.stdout).not.toContain("geheim");
  });

  it("that is wrong ends a command before it asks anybody, each mistake on its line", async () => {
    const path = join(directory, "wrong.toml");
    writeFileSync(path, 'urll = "x"\noutput = 3\n');
    const { code, stdout, stderr } = await start(["job", "list"], { TENURE_CONFIG: path }).ended;
    expect({ code, stdout }).toEqual({ code: 78, stdout: "" });
    expect(stderr.split("\n")).toEqual([
      `tenure: ${path} is not valid:`,
      "  urll is not known; did you mean url?",
      "  output must be one of table, json, jsonl, found 3",
      "docs/reference/configuration.md lists every field.",
      "",
    ]);
  });
});
