// A short chaos run on real processes and servers, as `npm run chaos -- gate` runs it for long; and proof that it finds
// a fence that does not hold.

import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { schemaSql } from "../src/postgres/schema/schema.ts";
import { etcdStage } from "./chaos/etcd-stage.ts";
import type { FaultKind } from "./chaos/faults.ts";
import { readFlags, UsageError } from "./chaos/flags.ts";
import { runGate } from "./chaos/gate-run.ts";
import { postgresStage } from "./chaos/postgres-stage.ts";
import { etcdPath, waitFor } from "./servers/index.ts";

interface Summary {
  readonly iterations: number;
  readonly increments: number;
  readonly lost_updates: number;
  readonly overlapping_terms: number;
  readonly stale_attempts: number;
  readonly stale_rejected: number;
  readonly failover: Readonly<Record<string, { readonly p50_ms: number; readonly p99_ms: number }>>;
  readonly control: {
    readonly bare_lock: { readonly lost_updates: number };
    readonly etcdctl_lock: { readonly lost_updates: number } | null;
  };
  readonly faults: Readonly<Record<string, number>>;
  readonly failed: readonly string[];
}

function chaos(...args: string[]) {
  const child = spawn(process.execPath, ["--no-warnings", "test/chaos/main.ts", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.err += text));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const summary = (): Summary => JSON.parse(said.out.trimEnd().split("\n").at(-1) ?? "") as Summary;
  return { child, said, ended, summary };
}

const TIMING = { serverTimeoutMs: 1_000, heartbeatMs: 150, marginMs: 250 };

function runOptions(deck: readonly FaultKind[]) {
  const { signal } = new AbortController();
  return { deck, minutes: 2, seed: 1, workers: 2, signal, log: () => undefined };
}

describe.concurrent("npm run chaos -- gate", () => {
  test("loses nothing on Postgres while leaders are killed, stopped, cut off and it restarts; the controls do", async () => {
    const kinds = ["half-open", "kill", "restart-immediate", "stop"];
    const run = chaos("gate", "--iterations", "4", "--faults", kinds.join(","), "--workers", "3", "--json");
    expect(await run.ended, run.said.err + run.said.out).toBe(0);
    const summary = run.summary();
    expect(summary).toMatchObject({ failed: [], iterations: kinds.length, lost_updates: 0, overlapping_terms: 0 });
    expect(Object.keys(summary.faults).toSorted()).toEqual(kinds);
    expect(summary.increments).toBeGreaterThan(0);
    expect(summary.stale_rejected).toBe(summary.stale_attempts);
    expect(summary.stale_attempts).toBeGreaterThanOrEqual(10 * kinds.length);
    expect(Object.keys(summary.failover).toSorted()).toEqual(["half-open", "kill", "restart", "stop"]);
    expect(summary.failover["stop"]?.p50_ms).toBeGreaterThan(summary.failover["kill"]!.p99_ms);
    expect(summary.control.bare_lock.lost_updates).toBeGreaterThan(0);
    if (etcdPath() !== undefined) expect(summary.control.etcdctl_lock?.lost_updates).toBeGreaterThan(0);
  });

  test.skipIf(etcdPath() === undefined)("loses nothing on etcd (skipped where it is not installed)", async () => {
    const stage = await etcdStage({ lanes: 8, thinkMsMax: 12, timing: TIMING });
    try {
      const result = await runGate(stage, runOptions(["stop", "revoke"]));
      expect(result).toMatchObject({ failed: [], iterations: 2, lostUpdates: 0, overlappingTerms: 0 });
      expect(result.staleRejected).toBeGreaterThanOrEqual(24);
    } finally {
      await stage.end();
    }
  });

  test("trap 36: finds out a fence that looks at the epoch and does not hold it until the commit", async () => {
    const stage = await postgresStage({ lanes: 8, thinkMsMax: 400, timing: TIMING });
    try {
      await stage.database.query(schemaSql("public"));
      await stage.database.query(LOOKING_FENCE);
      const run = await runGate(stage, runOptions(["kill-stale", "kill-stale", "kill-stale"]));
      expect(run.failed).not.toEqual([]);
      expect(run.overlappingTerms + run.lostUpdates, run.failed.join("\n")).toBeGreaterThan(0);
    } finally {
      await stage.end();
    }
  });

  test("says in one line what is wrong with its command line", async () => {
    const wrong = (args: string): string => {
      try {
        readFlags(args.split(" "), () => 1);
        return "";
      } catch (error) {
        return error instanceof UsageError ? error.message : String(error);
      }
    };
    expect(wrong("gate --backend redis")).toBe("--backend is postgres, etcd or servers, not redis");
    expect(wrong("gate --faults kill,plague")).toContain("there is no plague on postgres, only");
    expect(wrong("gate --faults terminate --backend etcd")).toContain("there is no terminate on etcd");
    expect(wrong("gate --iterations 0")).toContain("--iterations takes a whole number from 1");
    expect(wrong("gate --workers 6")).toContain("--workers takes a whole number from 2 to 5");
    expect(wrong("gate --loud")).toContain("--loud");
    expect(wrong("gate --seed 7 --faults kill,stop")).toBe("");
    const run = chaos();
    expect(await run.ended).toBe(64);
    expect(run.said).toMatchObject({ out: "", err: expect.stringContaining("say what to run: gate") as string });
  });

  test.skipIf(process.platform !== "linux")(
    "leaves no process behind when it is interrupted, not even a stopped one (Linux: needs /proc)",
    async () => {
      const run = chaos("gate", "--faults", "stop", "--workers", "2", "--json");
      const below = (): number[] => descendantsOf(run.child.pid!);
      await waitFor("a stopped worker", () => below().some((pid) => statOf(pid)?.state === "T"));
      const children = below();
      run.child.kill("SIGINT");
      expect(await run.ended, run.said.err).toBe(130);
      expect(run.summary().failed).toContain("interrupted");
      await waitFor("every process to be gone", () => children.every((pid) => !isAlive(pid)));
    },
  );
});

/** The plain read of trap 36: right when it looks, and no more. */
const LOOKING_FENCE = `
create or replace function tenure_require_epoch(p_scope text, p_epoch bigint) returns void language plpgsql as $$
begin
  if not exists (select from tenure_leader_state where scope = p_scope and epoch = p_epoch) then
    raise exception using errcode = 'TN001', message = 'stale';
  end if;
end $$`;

function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    const parent = statOf(Number(name))?.parent;
    if (parent !== undefined) parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
  }
  const below = (of: number): number[] => (parents.get(of) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid);
}

function isAlive(pid: number): boolean {
  const state = statOf(pid)?.state;
  return state !== undefined && state !== "Z" && state !== "X";
}

function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
