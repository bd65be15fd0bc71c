// The simulator as a command: fixed seeds, the same trace in two processes, and planted mistakes that it notices.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { kindOfViolation, runPool } from "../src/cli/sim/pool.ts";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import { LEAKS } from "../src/sim/mutants/leaks.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";
import type { RunResult } from "../src/sim/raft/index.ts";
import { hashesOf } from "./test-sim-hashes.ts";

const SIM = new URL("../src/cli/sim/command.ts", import.meta.url).pathname;
const MINUTES = 60_000;

interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function sim(...args: string[]): Promise<Finished> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SIM, ...args], { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

async function refused(args: readonly string[], message: RegExp, expected = 64): Promise<void> {
  const { code, stdout, stderr } = await sim(...args);
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
}

function lastLine(text: string): Record<string, unknown> {
  return JSON.parse(text.trimEnd().split("\n").at(-1)!) as Record<string, unknown>;
}

async function hashOf(seed: number, mutant: Mutant | null, reversed: boolean): Promise<string> {
  const hashes: string[] = [];
  const jobs = [{ seed, limits: { voters: 3 }, reversed }];
  await runPool(
    1,
    mutant,
    () => jobs.shift(),
    (result) => hashes.push(`${result.hash} ${result.violation}`) > 0,
  );
  return hashes[0]!;
}

describe("npm run sim", () => {
  it("runs 40 fixed seeds under all faults without a violation", { timeout: 2 * MINUTES }, async () => {
    const { code, stdout } = await sim("--seeds", "40", "--from", "1", "--json");
    const summary = lastLine(stdout);
    expect(summary, stdout.slice(-4_000)).toMatchObject({ seeds: 40, violations: 0 });
    expect(code).toBe(0);
    expect(Object.keys(summary)).toEqual(
      expect.arrayContaining(["simulated_hours", "steps", "elections", "faults", "probes", "wall_s", "speedup"]),
    );
    expect(summary["acknowledged"]).toBeGreaterThan(2_000);
  });

  it.each(["commit-on-one-replica", "leader-counts-itself-before-its-sync", "append-acknowledged-before-durable"])(
    "finds in the first seeds, by a look at the disks: %s",
    { timeout: MINUTES },
    async (name) => {
      const { code, stdout } = await sim("--mutants", "--only", name, "--from", "1", "--seeds", "10", "--json");
      expect(lastLine(stdout), stdout).toMatchObject({ caught: 1, missed: [], unsound: 0 });
      expect(stdout).toMatch(/before durable: entry \d+/);
      expect(code).toBe(0);
    },
  );

  it("gives the same trace hash for the same seed in two processes", { timeout: MINUTES }, async () => {
    const [one, two] = await Promise.all([sim("--seed", "7", "--json"), sim("--seed", "7", "--json")]);
    expect(lastLine(one.stdout)["hash"]).toMatch(/^[0-9a-f]{16}$/);
    expect(lastLine(two.stdout)["hash"]).toBe(lastLine(one.stdout)["hash"]);
    const other = await sim("--seed", "8", "--json");
    expect(lastLine(other.stdout)["hash"]).not.toBe(lastLine(one.stdout)["hash"]);
  });

  it("replays a seed as a readable trace", { timeout: MINUTES }, async () => {
    const { code, stdout } = await sim("--seed", "7");
    expect(code).toBe(0);
    expect(stdout).toMatch(/n\d +is n\d@a1 \(fresh\)/);
    expect(stdout).toMatch(/"kind":"established"/);
    expect(stdout).toMatch(/hash [0-9a-f]{16}, no violation\n$/);
  });

  it("writes etcd's state trace, one JSON object a line", { timeout: MINUTES }, async () => {
    const directory = await mkdtemp(join(tmpdir(), "tenure-sim-"));
    try {
      const file = join(directory, "trace.ndjson");
      expect((await sim("--seed", "1", "--plain", "--trace-etcd", file, "--json")).code).toBe(0);
      const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
      expect(lines.length).toBeGreaterThan(100);
      expect(lines.map((line) => (JSON.parse(line) as { tag: string }).tag).every((tag) => tag === "trace")).toBe(true);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it("refuses a flag that it does not know, and a number that is none", async () => {
    expect(await sim("--sed", "7")).toMatchObject({ code: 64, stderr: expect.stringContaining("--sed") });
    expect(await sim("--seeds", "many")).toMatchObject({ code: 64, stderr: expect.stringContaining("whole number") });
  });
});

describe("a failing seed", () => {
  it("is shrunk to the same kind of violation, whoever met it and when", () => {
    const kind = kindOfViolation("n3 at 1234.500 ms: Error: two leaders in term 7: n1@a1 and n3@b2\n    at x.ts:1:2");
    expect(kind).toBe("NODE at # ms: Error: two leaders in term #: NODE and NODE");
    expect(kindOfViolation("n1 at 9.000 ms: Error: two leaders in term 12: n2@a1 and n1@a1\n    at y.ts:3")).toBe(kind);
    expect(kindOfViolation("n3 at 1234.500 ms: Error: term fell from 7 to 6")).not.toBe(kind);
    expect(kindOfViolation("no traffic: not one write was acknowledged")).toBeNull();
    expect(kindOfViolation("no faults: of 5 that were scheduled, none had an effect")).toBeNull();
    expect(kindOfViolation(null)).toBeNull();
  });

  it("is replayed from a plan in a file, and the seed's own plan gives the seed's own run", async () => {
    const directory = await mkdtemp(join(tmpdir(), "tenure-sim-"));
    try {
      const own: RunResult[] = [];
      const jobs = [{ seed: 7, limits: {} }];
      await runPool(
        1,
        null,
        () => jobs.shift(),
        (result) => own.push(result) > 0,
      );
      const file = join(directory, "plan.json");
      await writeFile(file, JSON.stringify(own[0]!.plan));
      expect(lastLine((await sim("--seed", "7", "--plan", file, "--json")).stdout)["hash"]).toBe(own[0]!.hash);

      await writeFile(file, JSON.stringify(own[0]!.plan.slice(0, 1)));
      const short = lastLine((await sim("--seed", "7", "--plan", file, "--json")).stdout);
      expect(short["hash"]).not.toBe(own[0]!.hash);
      expect(Object.keys(short["faults"] as object)).toEqual([own[0]!.plan[0]!.kind]);

      await writeFile(file, `[{"kind":"crash"}]`);
      await refused(["--seed", "7", "--plan", file], /is no plan/);
      await writeFile(file, `[{"atMs":700,"kind":"nope"}]`);
      await refused(["--seed", "7", "--plan", file, "--json"], /there is no such fault/);
      await refused(["--seed", "7", "--plan", join(directory, "none.json")], /cannot read the plan/, 66);
      await refused(["--seed", "7", "--trace-etcd", join(directory, "no", "t")], /cannot write the trace/, 73);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe("wrong use", () => {
  const known = { membersMax: 32, mutants: ["second-vote-in-a-term", "vote-told-before-durable"] };
  const cases: readonly (readonly [string, RegExp])[] = [
    ["--sed 7", /there is no --sed; did you mean --seed\?/],
    ["--frobnicate", /there is no --frobnicate$/],
    ["--seeds 0", /--seeds takes a whole number above 0, not 0/],
    ["--seeds -1", /--seeds takes a whole number above 0, not -1/],
    ["--seeds --json", /--seeds takes a value/],
    ["--json=yes", /--json takes no value/],
    ["--threads 65", /--threads takes at most 64, not 65/],
    ["--nodes 30", /--nodes takes at most 29, not 30/],
    ["--mutants --only second-vote-in-a-tern", /did you mean second-vote-in-a-term\?/],
    ["--mutants --only nonsense", /no mutant "nonsense", only .*second-vote-in-a-term/],
    ["--only second-vote-in-a-term", /--only goes only with --mutants/],
    ["--trace-etcd x", /--trace-etcd goes only with --seed/],
    ["--plan x", /--plan goes only with --seed/],
    ["--seed 7 --seeds 5", /does not go with --seeds/],
    ["--seed 7 --from 5", /does not go with --from/],
    ["--seed 7 --hours 5", /does not go with --hours/],
    ["--seed 7 --mutants", /does not go with --mutants/],
  ];

  it.each(cases)("%s is refused as a UsageError", (line, message) => {
    expect(() => readFlags(line.split(" "), known)).toThrow(UsageError);
    expect(() => readFlags(line.split(" "), known)).toThrow(message);
  });

  it("ends with 64 and one line", async () => {
    await refused(["--seeds", "-1"], /not -1 \(see npm run sim -- --help\)$/m);
    await refused(["--mutants", "--only", "nonsense"], /no mutant/);
  });
});

describe("an end from outside", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s ends a campaign with its summary", async (signal, expected) => {
    const child = spawn(process.execPath, [SIM, "--seeds", "1000000", "--json"], { stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => {
      // The first line says that the seeds begin; one signal is enough, however many lines follow.
      if (stdout === "") child.kill(signal);
      stdout += chunk.toString();
    });
    const [code] = (await once(child, "close")) as [number | null];
    expect(code).toBe(expected);
    expect(lastLine(stdout)).toMatchObject({ violations: 0, failed_seeds: [] });
  });

  it("ends a hunt for mutants with its summary", async () => {
    const child = spawn(process.execPath, [SIM, "--mutants", "--json"], { stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => {
      if (stdout === "") child.kill("SIGINT");
      stdout += chunk.toString();
    });
    const [code] = (await once(child, "close")) as [number | null];
    expect(code).toBe(130);
    expect(lastLine(stdout)["unfinished"]).toBeGreaterThan(0);
  });

  it("a reader that goes away is no error to speak of", async () => {
    const child = spawn(process.execPath, [SIM, "--seed", "7"], { stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout.once("data", () => child.stdout.destroy());
    await once(child, "close");
    expect(stderr).toBe("");
  });
});

describe("a leak of determinism", () => {
  it(
    "is not there: neither a second run nor another order of nodes changes the hash",
    { timeout: 5 * MINUTES },
    async () => {
      const hashes = await hashesOf(6, false);
      expect(new Set(hashes.values()).size).toBe(6);
      expect(await hashesOf(6, false)).toEqual(hashes);
      expect(await hashesOf(6, true)).toEqual(hashes);
    },
  );

  for (const leak of LEAKS) {
    it(`is noticed by the hash: ${leak.name}`, { timeout: MINUTES }, async () => {
      const hashes = [await hashOf(11, leak, false), await hashOf(11, leak, true)];
      expect(hashes[0]).not.toBe(hashes[1]);
    });
  }
});
