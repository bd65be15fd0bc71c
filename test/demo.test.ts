// `npm start` as a user runs it: a process of its own, its output and its exit code.

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

interface Ending {
  readonly failovers: readonly { readonly cause: string; readonly ms: number }[];
  readonly writes: number;
  readonly lost: number;
  readonly unknown: number;
  readonly stale: { readonly tried: number; readonly committed: number };
  readonly leader: string | null;
  readonly epoch: number;
}

function demo(...flags: string[]): { status: number | null; lines: string[]; errors: string } {
  const result = spawnSync(process.execPath, ["src/cli/dev.ts", ...flags], { encoding: "utf8" });
  return { status: result.status, lines: result.stdout.trimEnd().split("\n"), errors: result.stderr };
}

describe("the demonstration", () => {
  const { status, lines, errors } = demo("--fast", "--json", "--seed", "7");
  const ending = JSON.parse(lines.at(-1) ?? "") as Ending;

  it("ends well: one leader, nothing lost, nothing stale got in", () => {
    expect({ status, errors }).toEqual({ status: 0, errors: "" });
    expect(ending).toMatchObject({ lost: 0, stale: { tried: 3, committed: 0 } });
    expect(ending.writes).toBeGreaterThan(400);
    expect(ending.leader).toMatch(/^n[123]$/);
  });

  it("measures a killed leader, a frozen one and a transfer, each in an epoch of its own", () => {
    expect(ending.failovers.map(({ cause }) => cause)).toEqual(["killed", "frozen", "transferred"]);
    const [killed, frozen, transferred] = ending.failovers.map(({ ms }) => ms);
    expect(killed).toBeLessThan(50);
    expect(frozen).toBeGreaterThan(100);
    expect(transferred).toBeLessThan(50);
    expect(ending.epoch).toBeGreaterThanOrEqual(5);
  });

  it("tells it in about forty plain lines, both rows of the cost among them", () => {
    expect(lines.length).toBeLessThan(50);
    // oxlint-disable-next-line no-control-regex
    expect(lines.join("\n")).not.toMatch(/\u001B|\r|\bterm\b/);
    expect(lines.filter((line) => /^leader (killed|frozen) +\d+\.\d ms/.test(line))).toHaveLength(2);
    expect(lines.join("\n")).toContain("virtual time on the simulator");
  });

  it("is the same again with the same seed, and another with another", () => {
    expect(demo("--fast", "--json", "--seed", "7").lines).toEqual(lines);
    expect(demo("--fast", "--json", "--seed", "8").lines.at(-1)).not.toBe(lines.at(-1));
  });
});

describe("the flags of the demonstration", () => {
  it.each([
    [["--sed", "7"], "unknown flag --sed: did you mean --seed?"],
    [["--wibble"], "unknown flag --wibble (npm start -- --help lists them all)"],
    [["--for"], "--for needs a value"],
    [["--for", "soon"], "--for soon: give a time from 5s to 1h"],
    [["--seed", "-1"], "--seed -1: give a whole number"],
  ])("%j is refused with 64", (flags, message) => {
    const { status, errors } = demo(...flags);
    expect(errors).toContain(message);
    expect(status).toBe(64);
  });
});
