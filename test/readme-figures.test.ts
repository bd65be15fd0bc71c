// The figures on README's first screen are those of the stored bench result, rounded; nobody types them by hand.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Percentiles {
  readonly p50_ms: number;
  readonly p99_ms: number;
}

interface GateResult {
  readonly rounds: number;
  readonly check_ns: number;
  readonly costs_rounds: number;
  readonly fenced_ratio: { readonly clients_1: number; readonly clients_16: number };
  readonly fence_proof_ratio: { readonly clients_16: number };
  readonly fence_proof_cpu_ratio: { readonly clients_16: number };
  readonly kill: Percentiles;
  readonly term: Percentiles;
  readonly stop: Percentiles;
  readonly lost_updates: number;
  readonly failed: readonly string[];
}

interface ServersResult {
  readonly kill: { readonly tenure: Percentiles & { readonly runs: number }; readonly peer: Percentiles };
  readonly stop: { readonly tenure: Percentiles };
  readonly transfer: { readonly tenure: Percentiles & { readonly refused: number } };
  readonly forced: { readonly elections: number; readonly within_1s: number };
  readonly writes: { readonly rows: readonly { readonly clients: number; readonly ratio: number }[] };
}

const servers = JSON.parse(readFileSync("bench/results/servers.json", "utf8")) as ServersResult;
const result = JSON.parse(readFileSync("bench/results/gate.json", "utf8")) as GateResult;
const readme = readFileSync("README.md", "utf8");

const ms = ({ p50_ms, p99_ms }: Percentiles): string => `${Math.round(p50_ms)} / ${Math.round(p99_ms)} ms`;
const seconds = ({ p50_ms, p99_ms }: Percentiles): string =>
  `${(p50_ms / 1000).toFixed(1)} / ${(p99_ms / 1000).toFixed(1)} s`;

describe("README's first screen", () => {
  it.each([
    ["is killed", ms(result.kill)],
    ["is stopped", ms(result.term)],
    ["freezes", seconds(result.stop)],
  ])("has the row of a leader that %s: %s", (what, figures) => {
    const row = readme.split("\n").find((line) => line.startsWith(`| ${what}`));
    expect(row).toContain(`| ${figures}`);
  });

  const { check_ns, fenced_ratio: fenced, fence_proof_ratio: time, fence_proof_cpu_ratio: cpu } = result;
  const decision = "docs/decisions/0038-proof-of-the-fence.md";
  const whole = `${fenced.clients_1.toFixed(2)} × with one client and ${fenced.clients_16.toFixed(2)} × with 16`;

  /** After `npm run bench -- gate --costs --rounds 20 --save` these say what to write, and where. */
  it.each([
    ["README.md", /the gate costs \S+ ns/, `the gate costs ${check_ns} ns`],
    ["README.md", /\S+ × as long with one client and \S+ × with 16/, whole.replace("×", "× as long")],
    [
      decision,
      /\S+ in time and \S+ in CPU at 16 clients/,
      `${time.clients_16.toFixed(2)} in time and ${cpu.clients_16.toFixed(2)} in CPU at 16 clients`,
    ],
    [decision, /\S+ × with one client and \S+ × with 16/, whole],
  ])("%s has the stored cost of gate and fence: %s", (file, where, figures) => {
    const text = readFileSync(file, "utf8").replaceAll(/\s+/g, " ");
    expect(where.exec(text)?.[0]).toBe(figures);
  });

  it("comes from a run in which the proof of `term.fence` cost less than a tenth, in time and in CPU", () => {
    expect(time.clients_16).toBeLessThan(1.1);
    expect(cpu.clients_16).toBeLessThan(1.1);
  });

  it("comes from a whole run in which nothing was lost", () => {
    expect(result).toMatchObject({ lost_updates: 0, failed: [] });
    expect(Math.min(result.rounds, result.costs_rounds)).toBeGreaterThanOrEqual(20);
  });
});

describe("README's figures of the servers", () => {
  const text = readme.replaceAll(/\s+/g, " ");

  it("has failover, hand-over and writes beside etcd", () => {
    const { kill, stop, transfer, writes } = servers;
    expect(text).toContain(
      `a killed leader is replaced after ${ms(kill.tenure)} (${kill.tenure.runs} kills; etcd ${Math.round(kill.peer.p50_ms)} ms)`,
    );
    expect(text).toContain(`a frozen one after ${ms(stop.tenure)}`);
    expect(text).toContain(`a planned hand-over takes ${ms(transfer.tenure)}`);
    const [one, ...rest] = writes.rows.map(({ ratio }) => ratio.toFixed(1));
    expect(text).toContain(`durable writes are ${[one, ...rest.slice(0, -1)].join(", ")} and ${rest.at(-1)} × etcd's`);
    expect(writes.rows.map(({ clients }) => clients)).toEqual([1, 16, 64, 512]);
  });

  it("comes from whole runs, in which nobody was refused", () => {
    expect(servers.kill.tenure.runs).toBeGreaterThanOrEqual(300);
    expect(servers.transfer.tenure.refused).toBe(0);
    expect(servers.forced).toMatchObject({ elections: 1_000, within_1s: 1_000 });
  });
});
