// The changes that are kept for those who watch are bounded by 8 MiB: a change does not keep the record that it came in.

import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord, isOfValue } from "../../core/state/index.ts";
import { header, job, NOW_MS } from "../../core/state/test-island.ts";
import { LastChanges } from "./last-changes.ts";
import { VALUE_CHANGES_BYTES_KEPT } from "./limits.ts";

describe("the last changes", () => {
  it("of a cursor that moves in one record with its job keep the cursors, not the jobs", () => {
    const last = new LastChanges(0);
    const submit = job({ payload: "x".repeat(200 * 1024) });
    if (submit.kind !== "job-submit") throw new Error("no job");
    for (let at = 1; at <= 500; at++) {
      const of = header("a", "a");
      const outbox = [{ operation: 1, jobId: `job-${at}`, spec: submit.spec }];
      const rest = { results: [], reason: null, fence: null, atMs: NOW_MS } as const;
      const bytes = encodeRecord([
        { kind: "txn-decided", header: of, outcome: "committed", outbox, ...rest },
        {
          kind: "value-put",
          name: "orders/cursor",
          data: new TextEncoder().encode(`{"at":${at}}`),
          fence: null,
          atMs: NOW_MS,
        },
      ]).slice();
      const record = decodeRecord(bytes);
      if (record.kind !== "changes") throw new Error("no record");
      for (const change of record.changes.filter(isOfValue)) last.push(change, at);
    }
    const { changes } = last.after("", 0, 1_000)!;
    const buffers = new Set(changes.map(({ event }) => (event.kind === "value-put" ? event.data.buffer : null)));
    const kept = [...buffers].reduce((sum, buffer) => sum + (buffer?.byteLength ?? 0), 0);
    expect(changes).toHaveLength(500);
    expect(kept).toBeLessThan(VALUE_CHANGES_BYTES_KEPT);
  });
});
