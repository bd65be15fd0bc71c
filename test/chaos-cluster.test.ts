// Every kind of fault once on a cluster of real processes and disks, as `npm run chaos -- cluster` does a thousand times and
// `.ci/run` thirty times; and proof that the same harness reports known mistakes.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parsePeerKey } from "../src/core/kit/ids.ts";
import { seededRandom } from "../src/core/kit/random.ts";
import { CLUSTER_FAULTS, CLUSTER_WEIGHTS } from "./chaos/cluster-faults.ts";
import { readClusterFlags } from "./chaos/cluster-flags.ts";
import { type PlantName, PLANTS } from "./chaos/cluster-plants.ts";
import { type ClusterRunOptions, dualLeaders, runCluster } from "./chaos/cluster-run.ts";
import { deckOf } from "./chaos/faults.ts";
import { UsageError } from "./chaos/flags.ts";
import type { EventLine } from "./kv/messages.ts";
import { waitFor } from "./servers/index.ts";

const ITERATIONS = CLUSTER_FAULTS.length;
const RUN_MS_MAX = 8 * 60_000;
const PLANTED_MS_MAX = 3 * 60_000;

interface Summary {
  readonly iterations: number;
  readonly failovers: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly acked: number;
  readonly reads: number;
  readonly failed: readonly string[];
}

function chaos(...args: readonly string[]) {
  const child = spawn(process.execPath, ["--no-warnings", "test/chaos/main.ts", "cluster", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.err += text));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const summary = (): Summary => JSON.parse(said.out.trimEnd().split("\n").at(-1) ?? "") as Summary;
  return { child, said, ended, summary };
}

function planted(name: PlantName, iterations: number): ClusterRunOptions {
  const { node, faults, linkDelayMs } = PLANTS[name];
  const deck = deckOf(CLUSTER_WEIGHTS, iterations, seededRandom(1), faults);
  const { signal } = new AbortController();
  return { deck, minutes: 2, seed: 1, voters: 3, signal, log: () => undefined, node, linkDelayMs };
}

describe("npm run chaos -- cluster", () => {
  test(
    "every kind of fault: nothing is lost, no term has two leaders, all that clients saw is linearizable",
    async () => {
      const run = chaos("--iterations", String(ITERATIONS), "--minutes", "7", "--seed", "2026", "--json");
      expect(await run.ended, run.said.err.slice(-4_000) + run.said.out).toBe(0);
      const summary = run.summary();
      expect(summary).toMatchObject({
        failed: [],
        iterations: ITERATIONS,
        lost: 0,
        dual_leader: 0,
        linearizable: true,
        unknown: expect.any(Number) as number,
        keys_refused: 0,
      });
      expect(Object.keys(summary.faults).toSorted()).toEqual(CLUSTER_FAULTS.toSorted());
      expect(summary.acked).toBeGreaterThanOrEqual(50 * ITERATIONS);
      expect(summary.reads).toBeGreaterThan(5 * ITERATIONS);
      expect(summary.failovers).toBeGreaterThanOrEqual(ITERATIONS / 4);
    },
    RUN_MS_MAX,
  );

  test(
    "reports a disk that acknowledges before the fsync: writes are lost, and the history is not linearizable",
    async () => {
      const result = await runCluster(planted("ack-before-fsync", 4));
      expect(result.failed).not.toEqual([]);
      expect(result.lost, result.failed.join("\n")).toBeGreaterThan(0);
    },
    PLANTED_MS_MAX,
  );

  test(
    "reports a vote that skips the term check: two leaders of one term",
    async () => {
      const result = await runCluster(planted("skip-term-check", 5));
      expect(result.dualLeader, result.failed.join("\n")).toBeGreaterThan(0);
    },
    PLANTED_MS_MAX,
  );

  test(
    "finds nothing under the same timing and delays when the mistake is not planted",
    async () => {
      const options = planted("skip-term-check", 5);
      const result = await runCluster({ ...options, node: { ...options.node, edits: [] } });
      expect(result).toMatchObject({ failed: [], dualLeader: 0, lost: 0, linearizable: true });
    },
    PLANTED_MS_MAX,
  );

  test(
    "reports a node that refuses a key which it has not heard of yet",
    async () => {
      const result = await runCluster(planted("unknown-key-refused", 4));
      expect(result.keysRefused, result.failed.join("\n")).toBeGreaterThan(0);
      expect(result.failed.join("\n")).toContain("a valid key was refused");
    },
    PLANTED_MS_MAX,
  );

  test("trap 22: two leaders at one moment are normal, two of one term are not", () => {
    const [a, b] = ["n1@a1", "n2@a1"].map((text) => parsePeerKey(text)!);
    const line = (peer: typeof a, event: EventLine["event"], term: number): EventLine => ({
      peer: peer!,
      event,
      term,
      atMs: 1,
    });
    const normal = [line(a, "leader", 1), line(a, "established", 1), line(b, "leader", 2), line(a, "follower", 2)];
    expect(dualLeaders(normal)).toEqual([]);
    expect(dualLeaders([...normal, line(a, "leader", 2)])).toEqual(["term 2 had 2 leaders: n2@a1, n1@a1"]);
  });

  test("says in one line what is wrong with its command line", async () => {
    const wrong = (args: string): string => {
      try {
        readClusterFlags(args.split(" "), () => 1);
        return "";
      } catch (error) {
        return error instanceof UsageError ? error.message : String(error);
      }
    };
    expect(wrong("--faults kill,plague")).toContain("there is no plague, only kill,");
    expect(wrong("--voters 4")).toContain("--voters is 3 or 5");
    expect(wrong("--plant roses")).toContain("there is no roses, only ack-before-fsync");
    expect(wrong("gate")).toContain("options only");
    expect(wrong("--iterations 0")).toContain("--iterations takes a whole number from 1");
    expect(wrong("--seed 7 --faults kill,stop --plant skip-term-check")).toBe("");
    const run = chaos("--loud");
    expect(await run.ended).toBe(64);
    expect(run.said).toMatchObject({ out: "", err: expect.stringContaining("--loud") as string });
  });

  test.skipIf(process.platform !== "linux")(
    "leaves no process behind when it is interrupted, not even a stopped one (Linux: needs /proc)",
    async () => {
      const run = chaos("--faults", "stop", "--voters", "3", "--iterations", "500", "--json");
      try {
        await waitFor("the first fault", () => run.said.err.includes("1/500"), PLANTED_MS_MAX / 2);
        const nodes = childrenOf(run.child.pid!);
        expect(nodes.length).toBeGreaterThanOrEqual(3);
        run.child.kill("SIGINT");
        expect(await run.ended, run.said.err).toBe(130);
        expect(run.summary().failed).toContain("interrupted");
        await waitFor("every process to be gone", () => nodes.every((pid) => !isAlive(pid)));
      } finally {
        run.child.kill("SIGKILL");
      }
    },
    PLANTED_MS_MAX,
  );
});

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}
