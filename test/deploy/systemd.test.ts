// deploy/systemd as systemd reads it: `systemd-analyze verify` finds nothing, and the exposure that it counts is the one that
// docs/deploy.md states. The units are not started here: that needs a machine with systemd as its first process.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readAgentStartFlags } from "../../src/cli/agent/start-flags.ts";
import { readRunFlags } from "../../src/cli/run/flags.ts";
import { ERRORS } from "../../src/core/kit/errors.ts";
import { start as startTenure } from "../cli/test-tenure.ts";

const UNITS = ["tenure-server.service", "tenure-agent.service", "tenure-run@.service"];
const BACKUP = ["tenure-backup.service", "tenure-backup.timer"];
/** Of the machine, not of npm. */
const ANALYZE = "systemd-analyze";
const isThere = spawnSync(ANALYZE, ["--version"]).status === 0;
if (!isThere) console.log("systemd-analyze is not here: the units are only read");

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "tenure-units-"));
  // It looks whether the program is there.
  for (const unit of [...UNITS, ...BACKUP])
    writeFileSync(join(directory, unit), source(unit).replaceAll("/usr/local/bin/tenure", process.execPath));
});
afterAll(() => rmSync(directory, { recursive: true }));

function source(unit: string): string {
  return readFileSync(join("deploy/systemd", unit), "utf8");
}

/** Every value of a key, in order. */
function values(unit: string, key: string): string[] {
  return [...source(unit).matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}

function analyze(...args: string[]): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(ANALYZE, args, { cwd: directory, encoding: "utf8" });
  return { status, text: `${stdout}${stderr}` };
}

describe.skipIf(!isThere)("systemd-analyze", () => {
  it.each([...UNITS, ...BACKUP])("verifies %s without a word", (unit) => {
    expect(analyze("verify", `./${unit}`)).toEqual({ status: 0, text: "" });
  });

  it.each([...UNITS, "tenure-backup.service"])(
    "counts the exposure of %s that the documentation states, at most",
    (unit) => {
      const [, stated = ""] = new RegExp(`\`${unit}\`: ([\\d.]+)`).exec(readFileSync("docs/deploy.md", "utf8")) ?? [];
      const [, counted = ""] =
        /exposure level for \S+: ([\d.]+)/.exec(analyze("security", "--offline=true", unit).text) ?? [];
      expect(counted).not.toBe("");
      expect(Number(counted)).toBeLessThanOrEqual(Number(stated));
    },
  );

  it("would complain of a mistake", () => {
    const unit = UNITS[0]!;
    writeFileSync(
      join(directory, unit),
      readFileSync(join(directory, unit), "utf8").replace("KillMode=mixed", "KillMode=mix"),
    );
    expect(analyze("verify", `./${unit}`).text).toContain("mix");
  });
});

describe.each(UNITS)("%s", (unit) => {
  it("is not started again where only a person can mend it", () => {
    const codes = values(unit, "RestartPreventExitStatus").join(" ").split(" ");
    expect(codes).toEqual(expect.arrayContaining(["64", String(ERRORS.CONFIG_INVALID.exit)]));
    expect(codes).not.toContain(String(ERRORS.BACKEND_UNAVAILABLE.exit));
  });

  it("lets V8 compile, lets the supervisor end its children, and leaves nobody behind", () => {
    expect(values(unit, "MemoryDenyWriteExecute")).toEqual(["no"]);
    expect(values(unit, "KillMode")).toEqual(["mixed"]);
    expect(values(unit, "OOMPolicy")).toEqual(["continue"]);
    // cli/server/run.ts gives itself 20 s to stop, an agent its jobs 30.
    expect(Number(values(unit, "TimeoutStopSec"))).toBeGreaterThan(35);
  });

  it("has a user of its own, which deploy/systemd/tenure.sysusers.conf makes", () => {
    const [user = ""] = values(unit, "User");
    expect(readFileSync("deploy/systemd/tenure.sysusers.conf", "utf8")).toMatch(new RegExp(`^u ${user} `, "m"));
  });
});

it("a service asks no program to be there but the shell and Tenure: /bin/kill is in a package of its own", () => {
  for (const unit of [...UNITS, "tenure-backup.service"]) {
    const commands = [...source(unit).matchAll(/^Exec\w+=-?(\S+)/gm)].map(([, program]) => program);
    expect(commands.length, unit).toBeGreaterThan(0);
    for (const program of commands) expect(["/usr/local/bin/tenure", "/bin/sh"], unit).toContain(program);
  }
});

it("a backup has a user of its own too", () => {
  const [user = ""] = values("tenure-backup.service", "User");
  expect(readFileSync("deploy/systemd/tenure.sysusers.conf", "utf8")).toMatch(new RegExp(`^u ${user} `, "m"));
});

/** What a person must correct, each as a line that is added to a configuration that works. */
const BAD: Readonly<Record<string, string>> = {
  "a line that is no TOML": "node_id =",
  "a field that does not exist": 'node = "n1"',
  "a certificate that is not there": '[api]\ntls = { cert_file = "none.crt", key_file = "none.key" }',
  "an address that is none": '[api]\nlisten = "7401"',
};

describe("a server's configuration that is wrong stops the service, and does not start it again and again", () => {
  it("by no step before the main process: systemd restarts after those, whatever RestartPreventExitStatus says", () => {
    for (const key of ["ExecCondition", "ExecStartPre", "ExecStartPost"]) {
      for (const command of values("tenure-server.service", key)) expect(command, key).toMatch(/^-/);
    }
  });

  it.each(Object.entries(BAD))("by the main process: %s", async (_what, line) => {
    const home = mkdtempSync(join(directory, "bad-"));
    writeFileSync(join(home, "tenure.toml"), `data_dir = "data"\nnode_id = "n1"\n${line}\n`);
    const [command = ""] = values("tenure-server.service", "ExecStart");
    const [program, ...args] = command.replace(" $START_FLAGS", "").replace("/etc/tenure", home).split(" ");
    expect(program).toBe("/usr/local/bin/tenure");
    const { code, stderr, stdout } = await startTenure(args).ended;
    const prevented = values("tenure-server.service", "RestartPreventExitStatus").join(" ").split(" ").map(Number);
    expect(prevented, `${code}: ${stdout}${stderr}`).toContain(code);
  });
});

it("the agent's unit gives flags that the command knows, whatever the machine is called", () => {
  const [line = ""] = values("tenure-agent.service", "ExecStart");
  const [command, verb, start, ...args] = line
    .replace(" $AGENT_FLAGS", "")
    .replace("%H", "Build-7.example.net")
    .split(" ");
  expect([command, verb, start]).toEqual(["/usr/local/bin/tenure", "agent", "start"]);
  expect(readAgentStartFlags(args, {})).toMatchObject({ name: "Build-7.example.net" });
});

describe("the unit of `tenure run`", () => {
  const UNIT = "tenure-run@.service";

  it("gives flags that the command knows, and the command after them", () => {
    const [line = ""] = values(UNIT, "ExecStart");
    const [command, verb, ...args] = line
      .replace("%i", "reports")
      .replace("$RUN_FLAGS", "--forever --drain 30s")
      .replace("$RUN_COMMAND", "/usr/local/bin/make-reports --all")
      .split(" ");
    expect([command, verb]).toEqual(["/usr/local/bin/tenure", "run"]);
    expect(readRunFlags(args, { TENURE_BACKEND: "postgres://db.example.net/app" })).toMatchObject({
      scope: "reports",
      mode: "forever",
      command: "/usr/local/bin/make-reports",
      args: ["--all"],
    });
  });

  it("takes the exit code of a stop for a success, and restarts after a backend that is away", () => {
    // 128 + SIGTERM, which test/run sees; docs/run.md has the codes.
    expect(values(UNIT, "SuccessExitStatus")).toEqual(["143"]);
    const never = values(UNIT, "RestartPreventExitStatus").join(" ").split(" ");
    for (const code of ["70", "75", "76"]) expect(never).not.toContain(code);
    for (const code of ["77", "126", "127"]) expect(never).toContain(code);
  });
});
