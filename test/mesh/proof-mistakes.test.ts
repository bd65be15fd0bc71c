// Each planted mistake lets an attack succeed; without a mistake none does.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { PROOF_MISTAKES } from "./proof-mistakes.ts";

const THREAD = new URL("./proof-mistakes-thread.ts", import.meta.url);

async function successesOf(edits: readonly Edit[]): Promise<readonly string[]> {
  const worker = new Worker(THREAD, { workerData: { edits } });
  const [successes] = (await once(worker, "message")) as [readonly string[]];
  await worker.terminate();
  return successes;
}

describe("the proof of lines", () => {
  test("lets no attack succeed as it is", async () => {
    expect(await successesOf([])).toEqual([]);
  });

  test.each(PROOF_MISTAKES)("with $name is found out", async ({ edits }) => {
    expect(await successesOf(edits)).not.toEqual([]);
  });

  test("is tried with at least 12 mistakes, each under a name of its own", () => {
    const names = new Set(PROOF_MISTAKES.map(({ name }) => name));
    expect(names.size).toBe(PROOF_MISTAKES.length);
    expect(names.size).toBeGreaterThanOrEqual(12);
  });
});
