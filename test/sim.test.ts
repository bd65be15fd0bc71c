// The simulator as a command: fixed seeds, the same trace in two processes, and planted mistakes that it notices.

import { execFile } from "node:child_process";
import { readFile, rm, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runPool } from "../src/cli/sim-pool.ts";
import { LEAKS } from "../src/sim/mutants/leaks.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";

const SIM = new URL("../src/cli/sim.ts", import.meta.url).pathname;
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
  it("runs 200 fixed seeds under all faults without a violation", { timeout: 4 * MINUTES }, async () => {
    const { code, stdout } = await sim("--seeds", "200", "--from", "1", "--json");
    const summary = lastLine(stdout);
    expect(summary, stdout.slice(-4_000)).toMatchObject({ seeds: 200, violations: 0 });
    expect(code).toBe(0);
    expect(Object.keys(summary)).toEqual(
      expect.arrayContaining(["simulated_hours", "steps", "elections", "faults", "probes", "wall_s", "speedup"]),
    );
    expect(summary["acknowledged"]).toBeGreaterThan(10_000);
    expect(
      Object.values(summary["faults"] as Record<string, number>).every((fired) => fired > 0),
      stdout,
    ).toBe(true);
  });

  it("runs seven nodes with two learners under all faults", { timeout: 4 * MINUTES }, async () => {
    const { code, stdout } = await sim("--seeds", "20", "--from", "1", "--nodes", "7", "--learners", "2", "--json");
    expect(lastLine(stdout), stdout.slice(-4_000)).toMatchObject({ seeds: 20, violations: 0 });
    expect(code).toBe(0);
  });

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

describe("a leak of determinism", () => {
  it(
    "is not there: neither a second run nor another order of nodes changes the hash",
    { timeout: MINUTES },
    async () => {
      const hash = await hashOf(11, null, false);
      expect(await hashOf(11, null, false)).toBe(hash);
      expect(await hashOf(11, null, true)).toBe(hash);
    },
  );

  for (const leak of LEAKS) {
    it(`is noticed by the hash: ${leak.name}`, { timeout: MINUTES }, async () => {
      const hashes = [await hashOf(11, leak, false), await hashOf(11, leak, true)];
      expect(hashes[0]).not.toBe(hashes[1]);
    });
  }
});
