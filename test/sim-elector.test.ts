// The simulation of electors as a command: fixed seeds, the same trace twice, and planted mistakes that it notices.

import { execFile } from "node:child_process";
import { describe, expect, it } from "vitest";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";
import type { ElectorRunResult } from "../src/sim/elector/index.ts";
import { ELECTOR_MUTANTS } from "../src/sim/mutants/elector-list.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";

const SIM = new URL("../src/cli/sim/command.ts", import.meta.url).pathname;
/** Rare states that this many seeds have certainly met; a whole campaign must meet them all (sim/elector/campaign.ts). */
const SEEDS = 70;
const CERTAIN = [
  "suspended",
  "resumed",
  "expired",
  "last-chance-saved-a-term",
  "late-grant-dropped",
  "wall-jump-closed-a-gate",
  "sleep-closed-a-gate",
  "pause-closed-a-gate",
  "stale-write-refused",
  "forced-out-and-still-acting",
  "freed-by-the-server-timeout",
  "asked-to-resign",
  "work-was-retried",
];

function sim(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SIM, "--elector", ...args], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

async function resultsOf(
  seeds: readonly number[],
  mutant: Mutant | null,
  reversed = false,
): Promise<ElectorRunResult[]> {
  const results: ElectorRunResult[] = [];
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: mutant?.limits ?? {}, reversed }));
  await runPool(
    1,
    mutant,
    () => jobs.shift(),
    (result) => results.push(result) > 0,
    "elector",
  );
  return results;
}

describe("npm run sim -- --elector", () => {
  it(`runs ${SEEDS} fixed seeds under all faults without a violation`, async () => {
    const { code, stdout } = await sim("--seeds", String(SEEDS), "--from", "1", "--json");
    const summary = JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as Record<string, number> & {
      faults: Record<string, number>;
      probes: Record<string, number>;
    };
    expect(summary, stdout.slice(-4_000)).toMatchObject({ seeds: SEEDS, violations: 0 });
    expect(code).toBe(0);
    expect(summary["checks"]).toBeGreaterThan(100_000);
    expect(summary["writes"]).toBeGreaterThan(10_000);
    for (const [fault, fired] of Object.entries(summary.faults)) expect(fired, fault).toBeGreaterThan(0);
    for (const probe of CERTAIN) expect(summary.probes[probe], probe).toBeGreaterThan(0);
  });

  it("gives the same trace for the same seed, also with its nodes in another order", async () => {
    const seeds = [1, 2, 3, 4, 5, 6];
    const hashes = (await resultsOf(seeds, null)).map(({ hash }) => hash);
    expect(new Set(hashes).size).toBe(seeds.length);
    expect((await resultsOf(seeds, null, true)).map(({ hash }) => hash)).toEqual(hashes);
  });

  it("replays a seed as a readable trace", async () => {
    const { code, stdout } = await sim("--seed", "7");
    expect(code).toBe(0);
    expect(stdout).toMatch(/server +grants epoch 1 to n\d/);
    expect(stdout).toMatch(/n\d +leading 1/);
    expect(stdout).toMatch(/hash [0-9a-f]{16}, no violation\n$/);
  });

  it.each(["gate-trusts-a-flag", "suspended-is-not-told", "released-before-the-work-settled"])(
    "finds a planted mistake: %s",
    async (name) => {
      const mutant = ELECTOR_MUTANTS.find((one) => one.name === name)!;
      const violations = (await resultsOf([1, 2, 3, 4, 5, 6], mutant)).map(({ violation }) => violation);
      expect(violations.some((violation) => violation !== null)).toBe(true);
    },
  );

  it("refuses what only a Raft cluster has", () => {
    const known = { membersMax: 32, mutants: [] };
    for (const flags of [["--learners", "1"], ["--plain"], ["--seed", "7", "--trace-etcd", "x"]]) {
      expect(() => readFlags(["--elector", ...flags], known)).toThrow(UsageError);
    }
    expect(readFlags(["--elector", "--nodes", "4"], known).limits).toEqual({ instances: 4 });
  });
});
