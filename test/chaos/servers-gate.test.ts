// A short chaos run on three real servers of Tenure, as `npm run chaos -- gate --backend servers` runs it for long; and proof that
// it finds a store that does not compare epochs.

import { describe, expect, test } from "vitest";
import type { FaultKind } from "./faults.ts";
import { runGate } from "./gate-run.ts";
import { serversStage } from "./servers-stage.ts";

const TIMING = { serverTimeoutMs: 1_500, heartbeatMs: 200, marginMs: 375 };

async function gate(deck: readonly FaultKind[], isFenced: boolean) {
  const stage = await serversStage({ lanes: 8, thinkMsMax: 12, timing: TIMING }, isFenced);
  const { signal } = new AbortController();
  try {
    return await runGate(stage, { deck, minutes: 2, seed: 1, workers: 3, signal, log: () => undefined });
  } finally {
    await stage.end();
  }
}

describe("chaos gate on Tenure's own servers", () => {
  test("loses nothing while leaders, and the leader of the cluster, are killed, stopped and cut off", async () => {
    const deck: FaultKind[] = ["server-kill", "stop", "server-stop", "kill-both", "cut", "revoke"];
    const result = await gate(deck, true);
    expect(result).toMatchObject({ failed: [], iterations: deck.length, lostUpdates: 0, overlappingTerms: 0 });
    expect(result.staleRejected).toBe(result.staleAttempts);
    expect(result.staleAttempts).toBeGreaterThanOrEqual(10 * deck.length);
  });

  test("finds out a store that keeps the epoch and does not compare it", async () => {
    const result = await gate(["stop", "kill-stale"], false);
    expect(result.failed.join("\n")).toContain("a stale write was accepted");
    expect(result.staleRejected).toBeLessThan(result.staleAttempts);
  });
});
