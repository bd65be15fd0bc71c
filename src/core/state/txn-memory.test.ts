// The bounds of values (10,000, and 32 MiB together) and of transactions that are not done (16 MiB together) bound memory: a value, or a job, that came in a
// record with others does not keep that record.

import { describe, expect, it } from "vitest";
import { VALUE_BYTES_MAX } from "../kit/limits.ts";
import { specBytes } from "../txn/codec/spec.ts";
import { encodeRecord, StateFold } from "./index.ts";
import { header, job, NOW_MS } from "./test-island.ts";

/** Memory that the contents of all values keep alive. */
function keptBytes(fold: StateFold): number {
  const buffers = new Set([...fold.values.from("", null)].map(({ data }) => data.buffer));
  return [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

describe("values that transactions have written", () => {
  it("take about as much memory as they have bytes, whatever else was in their records", () => {
    const fold = new StateFold();
    const large = new TextEncoder().encode(JSON.stringify("x".repeat(VALUE_BYTES_MAX - 2)));
    for (let at = 1; at <= 200; at++) {
      const small = {
        kind: "value-put",
        name: `done/${at}`,
        data: new Uint8Array([0x31]),
        fence: null,
        atMs: NOW_MS,
      } as const;
      // A workload's state in seven parts, which each step overwrites, and a mark of the step.
      const state = Array.from({ length: 7 }, (_, part) => ({ ...small, name: `state/${part}`, data: large }));
      const decided = {
        kind: "txn-decided",
        header: header("a", "a"),
        outcome: "committed",
        results: [],
        outbox: [],
        reason: null,
        fence: null,
        atMs: NOW_MS,
      } as const;
      fold.apply({ position: at, epoch: 1, data: encodeRecord([decided, small, ...state]).slice() });
    }
    expect(fold.counts).toEqual({ malformed: 0, unfit: 0 });
    expect(fold.values.bytes).toBeLessThan(500_000);
    expect(keptBytes(fold)).toBeLessThan(4 * fold.values.bytes);
  });
});

it("jobs that are to be delivered for hours take about as much memory as they have bytes, whatever else was in their records", () => {
  const fold = new StateFold();
  const data = new TextEncoder().encode(JSON.stringify("x".repeat(VALUE_BYTES_MAX - 2)));
  const submit = job();
  if (submit.kind !== "job-submit") throw new Error("no job");
  for (let at = 1; at <= 100; at++) {
    const outbox = [{ operation: 1, jobId: `job-${at}`, spec: submit.spec }];
    const rest = { results: [], reason: null, fence: null, atMs: NOW_MS } as const;
    const record = encodeRecord([
      { kind: "txn-decided", header: header("a", "a"), outcome: "committed", outbox, ...rest },
      { kind: "value-put", name: "state", data, fence: null, atMs: NOW_MS },
    ]).slice();
    fold.apply({ position: at, epoch: 1, data: record });
  }
  expect([fold.counts, fold.txns.undeliveredJobs]).toEqual([{ malformed: 0, unfit: 0 }, 100]);
  const buffers = new Set(
    [...fold.txns.undelivered()].flatMap((one) => one.outbox.map(({ spec }) => specBytes(spec).buffer)),
  );
  const kept = [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(kept).toBeLessThan(4 * fold.txns.bytes);
});
