// The table of commands against the commands themselves, and the scripts that are made of it, in the shells that are here.

import { execFileSync, spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { COMMANDS, valueFlags } from "../../src/cli/completion/table.ts";
import { flagsOf, verbsOf } from "../../src/cli/kit/description.ts";
import { tenure } from "./test-tenure.ts";

describe("the table of commands", () => {
  it.each(COMMANDS.filter(({ help }) => help !== "").map((entry) => [entry.name, entry] as const))(
    "has the flags and verbs that the help of %s names, and no others",
    async (name, entry) => {
      const [flags, verbs] = [flagsOf(entry), verbsOf(entry)];
      const { stdout, code } = await tenure(name, "--help");
      expect(code).toBe(0);
      const named = [...stdout.matchAll(/^ {2}(--?[a-z-]+)/gm)].map(([, flag = ""]) => flag);
      // Every command has --help, and not every help says so.
      expect(flags.map((flag) => flag.name).toSorted()).toEqual([...new Set([...named, "--help"])].toSorted());
      for (const verb of verbs) expect(stdout).toMatch(new RegExp(`(^  |[ |])${verb}\\b`, "m"));
      for (const [, verb = ""] of stdout.matchAll(/^ {2}(?!tenure)([a-z]+)\b/gm)) expect(verbs).toContain(verb);
    },
  );

  it("is the first help page, and every command in it can be run", async () => {
    const { stdout } = await tenure("--help");
    const named = [...stdout.matchAll(/^ {2}tenure ([a-z]+) /gm)].map(([, name]) => name);
    expect(named).toEqual(COMMANDS.map(({ name }) => name));
    for (const name of named)
      expect((await tenure(name ?? "", "--nonsense")).stderr).not.toContain("there is no command");
  });

  it("gives a flag a value in every command or in none: a shell skips it without knowing which command it is", () => {
    const without = COMMANDS.flatMap((command) =>
      flagsOf(command)
        .filter(({ offer }) => offer === "none")
        .map(({ name }) => name),
    );
    expect(without.filter((name) => valueFlags().includes(name))).toEqual([]);
  });
});

describe("tenure completion bash", () => {
  const script = execFileSync(process.execPath, ["src/cli/main.ts", "completion", "bash"], { encoding: "utf8" });

  function offered(line: string): string[] {
    const asked = `${script}\nCOMP_LINE=$1 COMP_POINT=\${#1}; _tenure; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr, status } = spawnSync("bash", ["-c", asked, "bash", line], { encoding: "utf8" });
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    return stdout.trim() === "" ? [] : stdout.trim().split("\n");
  }

  it.each([
    ["tenure clu", ["cluster"]],
    ["tenure cluster ", ["status", "elections", "transfer", "drain", "resume", "snapshot"]],
    ["tenure cluster snapshot v", ["verify"]],
    ["tenure tc rm ", ["list", "register", "unregister"]],
    ["tenure cluster --url http://127.0.0.1:7100 tr", ["transfer"]],
    ["tenure cluster transfer --f", ["--force"]],
    ["tenure cluster status -o ", ["table", "json"]],
    ["tenure cluster snapshot verify package.j", ["package.json"]],
    ["tenure cluster --ca package.j", ["package.json"]],
    ["tenure member add n4 --v", ["--voter"]],
    ["tenure event tail --entity-type cert", ["certificate"]],
    ["tenure schedule put nightly --cwd package.j", []],
    ["tenure scope show ", []],
    ["tenure frobnicate ", []],
  ])("%j", (line, names) => {
    expect(offered(line)).toEqual(names);
  });
});

describe.each(["zsh", "fish"])("tenure completion %s", (shell) => {
  const script = execFileSync(process.execPath, ["src/cli/main.ts", "completion", shell], { encoding: "utf8" });

  it("offers every command and every flag", () => {
    const option = (name: string): string =>
      shell === "zsh" ? name : name.replace(/^--/, "-l ").replace(/^-([a-z])$/, "-s $1");
    for (const command of COMMANDS) {
      expect(script).toContain(command.name);
      for (const flag of flagsOf(command)) expect(script).toContain(option(flag.name));
    }
  });

  it.skipIf(spawnSync(shell, ["--version"]).error !== undefined)("is a script that the shell can read", () => {
    expect(spawnSync(shell, ["-n", "-c", script], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
  });
});

it("an unknown shell is refused, with those that there are", async () => {
  expect(await tenure("completion", "powershell")).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("give bash, zsh, fish") as string,
  });
});
