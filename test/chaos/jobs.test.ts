// `npm run chaos -- jobs`, short: every part of it on real processes, the planted mistakes that it must report, and the race.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { STOP_MUTANTS } from "../../src/sim/mutants/stop-list.ts";
import { waitFor } from "../servers/index.ts";
import { UsageError } from "./flags.ts";
import { readJobsFlags } from "./jobs-flags.ts";
import { type JobsPlant, type JobsPlantName, JOBS_PLANTS } from "./jobs-plants.ts";
import { runRace } from "./jobs-race.ts";
import { type JobsRunOptions, runJobs } from "./jobs-run.ts";
import { runStops } from "./jobs-stops.ts";

/** Above the bounds of all phases of a run that fails (jobs-phases.ts). */
const RUN_MS_MAX = 10 * 60_000;
const STOPS_MS_MAX = 6 * 60_000;
const QUIET = { signal: new AbortController().signal, log: () => undefined };
const SHORT: JobsRunOptions = {
  backend: "embedded",
  jobs: 100,
  perSecond: 40,
  minutes: 2,
  seed: 1,
  slowShare: 0.4,
  ...QUIET,
};

const MANY = { jobs: 800, perSecond: 200, slowShare: 0.1 };

/** Several at once, where each leaves its own mark. */
function planted(...names: readonly JobsPlantName[]): JobsPlant {
  const plants = names.map((name) => JOBS_PLANTS[name]);
  return {
    server: plants.flatMap(({ server }) => server),
    agent: plants.flatMap(({ agent }) => agent),
    faults: plants.flatMap(({ faults }) => faults),
    isSeen: (ghosts) => plants.every(({ isSeen }) => isSeen?.(ghosts) ?? true),
  };
}

function chaos(...args: readonly string[]) {
  const child = spawn(process.execPath, ["--no-warnings", "test/chaos/main.ts", "jobs", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.err += text));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const summary = (): Summary => JSON.parse(said.out.trimEnd().split("\n").at(-1) ?? "") as Summary;
  return { child, said, ended, summary };
}

interface Summary {
  readonly jobs: number;
  readonly completed: number;
  readonly failovers: number;
  readonly stale_rejected: number;
  readonly failed: readonly string[];
}

describe("npm run chaos -- jobs", () => {
  test.each(["embedded", "postgres"])(
    "%s: 200 jobs while leaders and agents are killed and stopped: none is lost, none is committed twice",
    async (backend) => {
      const size = ["--jobs", "200", "--per-second", "50", "--minutes", "2"];
      const run = chaos("--backend", backend, ...size, "--seed", "2026", "--json");
      expect(await run.ended, run.said.err.slice(-4_000) + run.said.out).toBe(0);
      const summary = run.summary();
      expect(summary).toMatchObject({ failed: [], lost: 0, double_committed: 0 });
      expect(summary.jobs).toBeGreaterThanOrEqual(200);
      expect(summary.completed).toBeGreaterThanOrEqual(summary.jobs);
      expect(summary.failovers).toBeGreaterThan(0);
      expect(summary.stale_rejected).toBeGreaterThan(0);
    },
    RUN_MS_MAX,
  );

  test(
    "reports answers before the commit, results without job_epoch, and agents that run a handler twice",
    async () => {
      const plant = planted("answer-before-commit", "result-without-job-epoch", "agent-runs-twice");
      // Slow jobs: another must still have the job when its stale result comes.
      const { failed, lost, doubleCommitted } = await runJobs({ ...SHORT, slowShare: 0.9, plant });
      const said = failed.join("\n");
      expect(lost, said).toBeGreaterThan(0);
      expect(said).toContain("lost: job");
      expect(doubleCommitted, said).toBeGreaterThan(0);
      expect(said).toContain("a stale result was taken");
      expect(said).toContain("a handler ran more than once for one lease");
    },
    RUN_MS_MAX,
  );

  // Alone: where answers come before the commit, hardly any of them gets lost, and nobody asks again. And many of them: where
  // connections are cut, some are always on their way (51 to 135 were submitted twice in five runs).
  test(
    "reports forgotten keys",
    async () => {
      const { failed, doubleSubmitted } = await runJobs({ ...SHORT, ...MANY, plant: planted("keys-forgotten") });
      expect(doubleSubmitted, failed.join("\n")).toBeGreaterThan(0);
    },
    RUN_MS_MAX,
  );

  test(
    "reports a server that refuses a key which it has not heard of yet",
    async () => {
      const { failed, keys } = await runJobs({ ...SHORT, plant: planted("unknown-key-refused") });
      expect(keys.refused, failed.join("\n")).toBeGreaterThan(0);
      expect(failed.join("\n")).toContain("a valid key was refused");
    },
    RUN_MS_MAX,
  );

  test(
    "postgres: reports servers that let readers pass over a rewritten history",
    async () => {
      const plant = planted("rewrite-unnoticed");
      const { failed, readers } = await runJobs({ ...SHORT, backend: "postgres", plant });
      expect(readers.rewritten, failed.join("\n")).toBeLessThan(readers.readers);
      expect(failed.join("\n")).toContain("not told that the history was rewritten");
    },
    RUN_MS_MAX,
  );

  test(
    "a client with a valid key is not refused while servers are wiped, join and lag",
    async () => {
      const { faults } = JOBS_PLANTS["unknown-key-refused"];
      const { failed, keys } = await runJobs({ ...SHORT, plant: { server: [], agent: [], faults } });
      expect(failed).toEqual([]);
      expect(keys).toMatchObject({ refused: 0 });
    },
    RUN_MS_MAX,
  );

  test(
    "20 agents and 10 jobs: exactly 10 assignments, 20 times, with failovers",
    async () => {
      const result = await runRace({ backend: "embedded", rounds: 20, minutes: 2, seed: 1, ...QUIET });
      expect(result).toMatchObject({ failed: [], rounds: 20, exact: 20, kills: 2 });
      expect(result.assignments).toBe(200 + result.undelivered);
      expect(result.failovers).toBeGreaterThanOrEqual(2);
    },
    RUN_MS_MAX,
  );

  test.each([
    ["embedded", 10],
    ["postgres", 5],
  ] as const)(
    "%s: agents and servers are stopped in order over links of 400 ms, with answers in flight: no attempt is lost",
    async (backend, stops) => {
      const result = await runStops({ backend, stops, minutes: 4, seed: 1, ...QUIET });
      expect(result).toMatchObject({ failed: [], agentStops: stops * 0.8, nodeStops: stops * 0.2, losses: 0 });
      expect(result.completed).toBe(result.jobs);
      // 25 answers were in flight at 16 stops of agents.
      if (stops >= 10) expect(result.undelivered, "answers in flight").toBeGreaterThan(0);
    },
    STOPS_MS_MAX,
  );

  test(
    "reports agents that stop without a last poll: the jobs of answers in flight are lost",
    async () => {
      const { edits } = STOP_MUTANTS.find(({ name }) => name === "an-agent-that-stops-has-no-last-poll")!;
      const { failed, losses } = await runStops({
        backend: "embedded",
        stops: 10,
        minutes: 4,
        seed: 1,
        edits,
        ...QUIET,
      });
      expect(losses, failed.join("\n")).toBeGreaterThan(0);
      expect(failed.join("\n")).toContain("a stop cost an attempt of job");
    },
    STOPS_MS_MAX,
  );

  test.skipIf(process.platform !== "linux")(
    "SIGTERM ends it with its summary and leaves no process behind (Linux: needs /proc)",
    async () => {
      const run = chaos("--jobs", "20000", "--json");
      try {
        await waitFor("the first fault", () => run.said.err.includes("acknowledged  "), RUN_MS_MAX / 2);
        const children = childrenOf(run.child.pid!);
        expect(children.length).toBeGreaterThanOrEqual(6);
        run.child.kill("SIGTERM");
        expect(await run.ended, run.said.err).toBe(143);
        expect(run.summary().failed.join()).toContain("interrupted");
        await waitFor("every process to be gone", () => children.every((pid) => !isAlive(pid)));
      } finally {
        run.child.kill("SIGKILL");
      }
    },
    RUN_MS_MAX,
  );

  test("says in one line what is wrong with its command line", () => {
    const wrong = (args: string): string => {
      try {
        readJobsFlags(args.split(" "), () => 1);
        return "";
      } catch (error) {
        return error instanceof UsageError ? error.message : String(error);
      }
    };
    expect(wrong("--plant roses")).toContain("there is no roses, only answer-before-commit");
    expect(wrong("--backend mysql")).toContain("--backend is embedded, postgres or both, not mysql");
    expect(wrong("gate")).toContain("options only");
    expect(wrong("--jobs 0")).toContain("--jobs takes a whole number from 1");
    expect(wrong("--stops no")).toContain("--stops takes a whole number from 1");
    expect(wrong("--loud")).toContain("--loud");
    expect(wrong("--jobs 7 --backend both --race 3 --plant keys-forgotten --seed 1")).toBe("");
  });
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
