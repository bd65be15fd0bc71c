// What is wrong on a command line or in a configuration file is answered with the key, what was found and what is expected. All of
// it in one process: the commands are called, and what they throw is what `tenure` prints. No command gets as far as a server.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agent } from "../../src/cli/agent/command.ts";
import { cert } from "../../src/cli/cert/command.ts";
import { cluster } from "../../src/cli/cluster/command.ts";
import { COMMANDS as DESCRIBED } from "../../src/cli/completion/table.ts";
import { verbsOf } from "../../src/cli/kit/description.ts";
import { completion } from "../../src/cli/completion/command.ts";
import { config } from "../../src/cli/config/command.ts";
import { dev } from "../../src/cli/dev/command.ts";
import { doctor } from "../../src/cli/doctor/command.ts";
import { event } from "../../src/cli/event/command.ts";
import { UsageError } from "../../src/cli/kit/flags.ts";
import { job } from "../../src/cli/job/command.ts";
import { key } from "../../src/cli/key/command.ts";
import { mesh } from "../../src/cli/mesh/command.ts";
import { member } from "../../src/cli/member/command.ts";
import { queue } from "../../src/cli/queue/command.ts";
import { run } from "../../src/cli/run/command.ts";
import { schedule } from "../../src/cli/schedule/command.ts";
import { schema } from "../../src/cli/schema/command.ts";
import { scope } from "../../src/cli/scope/command.ts";
import { nextFire } from "../../src/node/worlds/system.ts";
import { server } from "../../src/cli/server/command.ts";
import { tc } from "../../src/cli/tc/command.ts";
import { txn } from "../../src/cli/txn/command.ts";
import { value } from "../../src/cli/value/command.ts";
import { support } from "../../src/cli/support/command.ts";
import { ERRORS, TenureError } from "../../src/core/kit/errors.ts";

type Command = (args: readonly string[]) => Promise<number>;

const COMMANDS: Readonly<Record<string, Command>> = {
  run,
  scope,
  doctor,
  schema,
  server,
  cluster,
  member,
  key,
  job,
  agent,
  queue,
  schedule,
  value,
  event,
  mesh,
  tc,
  txn,
  cert,
  config,
  support,
  dev,
  completion,
};
const LINES = [...readFileSync("test/cli/wrong-input.txt", "utf8").matchAll(/^\$ tenure (.*)\n(\d+) (.*)$/gm)].map(
  ([, line = "", code, message = ""]) => ({ line, code: Number(code), message }),
);

let directory = "";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "tenure-wrong-"));
  writeFileSync(join(directory, "n1.toml"), 'node_id = "n1"\ndata_dir = "x"\n');
  writeFileSync(join(directory, "list.json"), "[]");
  writeFileSync(join(directory, "id.json"), '{"txn_id":7}');
  writeFileSync(join(directory, "named.json"), '{"txn_id":"mine"}');
  writeFileSync(join(directory, "owned.json"), '{"txn_id":"0198a1c2-0000-7000-8000-000000000001"}');
  for (const name of Object.keys(process.env)) if (name.startsWith("TENURE_")) vi.stubEnv(name, undefined);
  vi.stubEnv("XDG_CONFIG_HOME", join(directory, "none"));
});

afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true, force: true });
});

/** As `tenure` would end: its exit code, and what it says after its name. */
async function refused(name: string, args: readonly string[]): Promise<{ code: number; message: string }> {
  try {
    const code = await COMMANDS[name]!(args);
    throw new Error(`tenure ${name} ${args.join(" ")} was taken, with ${code}`);
  } catch (error) {
    if (error instanceof UsageError) return { code: error.exitCode, message: error.message };
    if (TenureError.is(error)) return { code: ERRORS[error.code].exit, message: error.message };
    throw error;
  }
}

function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain = ""]) => quoted ?? inDirectory(plain));
}

function inDirectory(text: string): string {
  return text.replaceAll("{dir}", directory);
}

describe("on the command line", () => {
  it("every command has wrong lines here", () => {
    const named = new Set(LINES.map(({ line }) => line.split(" ", 1)[0]));
    const known = DESCRIBED.map(({ name }) => name).filter((name) => name !== "version");
    expect(known.filter((name) => !named.has(name))).toEqual([]);
    expect(LINES.length).toBeGreaterThan(120);
  });

  it.each(LINES)("tenure $line", async ({ line, code, message }) => {
    const [name = "", ...args] = wordsOf(line);
    expect(await refused(name, args)).toEqual({ code, message: inDirectory(message) });
  });

  it.each(DESCRIBED.filter((command) => verbsOf(command).length > 0))(
    "tenure $name, without a verb or with a wrong one, names them all",
    async (command) => {
      const { name } = command;
      for (const args of [[], ["frobnicate"]]) {
        const { code, message } = await refused(name, args);
        const [, listed = ""] = /(?:say what to do: |; give )(.*)$/.exec(message) ?? [];
        expect(code).toBe(64);
        const words = listed.split(", ").map((word) => word.split(" ", 1)[0] ?? "");
        expect([...new Set(words)].toSorted(), message).toEqual(verbsOf(command).toSorted());
      }
    },
  );

  it.each(Object.keys(COMMANDS))("tenure %s names a flag that is not there, and those that are", async (name) => {
    const [verb] = verbsOf(DESCRIBED.find((one) => one.name === name)!);
    const { code, message } = await refused(name, [...(verb === undefined ? [] : [verb]), "--frobnicate"]);
    expect(code).toBe(64);
    expect(message).toMatch(/^there is no --frobnicate; give (--[a-z-]+, )*--help/);
  });

  it.each([
    ["* * * *", "UTC", '"* * * *" has not five fields'],
    ["61 * * * *", "UTC", 'field 1 (minute) has "61": it takes 0 to 59'],
    ["0 0 30 2 *", "UTC", '"0 0 30 2 *" never fires'],
    ["0 0 * * *", "Mars/Base", '"Mars/Base"'],
  ])("a server says of the schedule %j in %s what is wrong", (cron, zone, said) => {
    expect(() => nextFire(cron, zone, 0)).toThrow(said);
  });
});

/** What `tenure config check` says, without the file's name in front and the advice after. */
async function saidOf(name: string, text: string, environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const path = join(directory, name);
  writeFileSync(path, text);
  for (const [variable, value] of Object.entries(environment)) vi.stubEnv(variable, value);
  const { code, message } = await refused("config", ["check", path]);
  for (const variable of Object.keys(environment)) vi.stubEnv(variable, undefined);
  expect(code).toBe(78);
  return message
    .replaceAll(path, "FILE")
    .replace("The server's configuration (FILE) is not valid:", "")
    .replace("docs/reference/configuration.md lists every field.", "")
    .trim();
}

const NODE = 'node_id = "n1"\ndata_dir = "d"\n';

describe("in a configuration file", () => {
  it.each([
    ["a wrong name", "a.toml", `${NODE}nodeid = "n1"`, "nodeid is not known; did you mean node_id?"],
    [
      "a name that is like no other",
      "a.toml",
      `${NODE}[disk]\nfrobnicate = 1`,
      "disk.frobnicate is not known: expected min_free_bytes.",
    ],
    ["a wrong type", "a.toml", `${NODE}[log]\nlevel = 3`, /^log\.level must be one of trace, .*, found 3\.$/],
    ["a wrong word", "a.json", '{"node_id":"n1","data_dir":"d","log":{"level":"loud"}}', /, found "loud"\.$/],
    ["a number out of range", "a.toml", `${NODE}[election]\nnode_priority = 256`, /must be at most 255, found 256\.$/],
    [
      "an infinite number",
      "a.toml",
      `${NODE}[history]\nkeep_days = inf`,
      /must be a positive number of days, found inf/,
    ],
    ["a date", "a.toml", `${NODE}peers = 1979-05-27`, /^peers must be an object, found a date or time \(a text stands/],
    ["a text for a section", "a.toml", `${NODE}api = "x"`, 'api must be an object, found "x".'],
    ["no section", "a.json", "[]", "the file must be an object, found a list."],
    [
      "an empty file",
      "a.toml",
      "",
      /^node_id is missing: expected a node id.*\n {2}data_dir is missing: expected a text$/,
    ],
    [
      "numbers that do not fit together",
      "a.toml",
      `${NODE}[election]\nheartbeat_interval_ms = 100`,
      "election.heartbeat_interval_ms must be at most half of election.election_timeout_min_ms (150), or one lost heartbeat starts an election, found 100.",
    ],
    [
      "a secret in the wrong place",
      "a.toml",
      `${NODE}backend = "mysql://u:geheim@h"`,
      /found a text of 18 characters\.$/,
    ],
  ])("%s", async (_name, file, text, said) => {
    const found = await saidOf(file, text);
    if (typeof said === "string") expect(found).toBe(said);
    else expect(found).toMatch(said);
    expect(found).not.toContain("geheim");
  });

  it("all of them at once: names, types, variables and what does not fit together, each on its line", async () => {
    const text = `node_id = "N 1"
data_dri = "d"
[api]
listen = "0.0.0.0:7401"
[election]
node_priority = 256
heartbeat_interval_ms = 100
[history]
quota_bytes = "much"
`;
    const lines = (await saidOf("many.toml", text, { TENURE_LOG_LEVEL: "loud" }))
      .split("\n")
      .map((line) => line.trim());
    expect(lines.map((line) => line.replace(/ .*, found/, " … found").replace(/: .*/, ""))).toEqual([
      "data_dri is not known; did you mean data_dir?",
      "data_dir is missing",
      'node_id … found "N 1"',
      "election.node_priority … found 256",
      'history.quota_bytes … found "much"',
      'TENURE_LOG_LEVEL … found "loud"',
      "api.tls is missing",
      "keys is missing",
      "api.advertise is missing",
      "election.heartbeat_interval_ms … found 100",
    ]);
  });

  it("what does not fit together is not told where one of the two is wrong by itself", async () => {
    const text = `${NODE}[api]\nlisten = "0.0.0.0:x"\n[election]\nelection_timeout_min_ms = "5000"\nheartbeat_interval_ms = 1000\n`;
    expect((await saidOf("half.toml", text)).split("\n").map((line) => line.trim().split(" ", 1)[0])).toEqual([
      "api.listen",
      "election.election_timeout_min_ms",
    ]);
  });

  it("more mistakes than anybody makes are all told", async () => {
    const names = Array.from({ length: 40 }, (_, at) => `frobnicate${at}`);
    const said = await saidOf("long.toml", `${NODE}${names.map((name) => `${name} = 1\n`).join("")}`);
    expect(names.filter((name) => !said.includes(`${name} is not known`))).toEqual([]);
  });

  it.each([
    [
      "TOML that is none",
      "a.toml",
      'node_id = "n1"\ndata_dir = d\n',
      "FILE is not TOML: line 2, column 12: found no value, expected a text in quotes, a number, true, false, a list or a table:\n  2: data_dir = d\n                ^",
    ],
    [
      "a name twice",
      "a.toml",
      "a = 1\na = 2\n",
      "FILE is not TOML: line 2, column 1: found a name or section again, expected each once:\n  2: a = 2\n     ^",
    ],
    [
      "a number that no double holds",
      "a.toml",
      "a = 9007199254740993",
      "FILE is not TOML: line 1, column 5: found too large a number, expected at most 9007199254740991:\n  1: a = 9007199254740993\n         ^",
    ],
    [
      "a line with a secret is not shown",
      "a.toml",
      "backend = postgres://u:geheim@h",
      "FILE is not TOML: line 1, column 11: found no value, expected a text in quotes, a number, true, false, a list or a table.",
    ],
    [
      "JSON that is none",
      "a.json",
      '{\n  "a": 1\n  "b": 2\n}',
      'FILE is not JSON: line 3, column 3: expected a comma or }, found "\\"":\n  3:   "b": 2\n       ^',
    ],
    ["no JSON at all", "a.json", "", "FILE is not JSON: line 1, column 1: expected a value, found the end."],
    [
      "a brace under another name is JSON",
      "a.conf",
      "{",
      "FILE is not JSON: line 1, column 2: expected a name in double quotes or }, found the end:\n  1: {\n      ^",
    ],
    ["all else under another name is TOML", "a.conf", "x", /^FILE is not TOML: line 1, column/],
  ])("%s", async (_name, file, text, said) => {
    const found = await saidOf(file, text);
    if (typeof said === "string") expect(found).toBe(said);
    else expect(found).toMatch(said);
  });

  it("bytes that are no text, and a file without end, are refused", async () => {
    const path = join(directory, "bytes.toml");
    writeFileSync(path, new Uint8Array([0x61, 0xff]));
    expect(await refused("config", ["check", path])).toEqual({
      code: 78,
      message: `${path} is not text: expected UTF-8, found other bytes.`,
    });
    expect(await refused("config", ["check", "/dev/zero"])).toEqual({
      code: 78,
      message: "/dev/zero is too large: a configuration has at most 1048576 bytes.",
    });
  });
});
