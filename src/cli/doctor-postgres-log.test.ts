// What the doctor says of a log that servers keep in Postgres.

import { describe, expect, it } from "vitest";
import type { LogFacts } from "./doctor-postgres.ts";
import { HEALTHY_LOG, row } from "./test-doctor.ts";

function log(change: Partial<LogFacts>): { readonly log: { readonly value: LogFacts } } {
  return { log: { value: { ...HEALTHY_LOG, ...change } } };
}

describe("a log in Postgres", () => {
  it("that is well is told with its ends, its rights and its nodes", () => {
    expect(row("log", {})).toMatchObject({ level: "ok", seen: expect.stringContaining("records 1 to 900") });
    for (const name of ["log rights", "log triggers", "inbox", "nodes"]) expect(row(name, {}).level).toBe("ok");
  });

  it("is no complaint to those who keep none, or may not read it", () => {
    expect(row("log", log({ heads: [] })).level).toBe("ok");
    expect(row("log", log({ isReadable: false, denied: [{ what: "table tenure_log", grant: "g" }] })).level).toBe("ok");
  });

  it("that lost a record, or whose role lacks a right, is a problem", () => {
    expect(row("log", log({ heads: [{ ...HEALTHY_LOG.heads[0], isWhole: false }] })).level).toBe("problem");
    const denied = [{ what: "function tenure_log_open(text, bigint)", grant: "grant execute …;" }];
    expect(row("log rights", log({ denied }))).toMatchObject({ level: "problem", sql: ["grant execute …;"] });
  });

  it("trap 43: must be guarded by its triggers", () => {
    expect(row("log triggers", log({ triggersMissing: ["tenure_log_guard_row"] })).level).toBe("problem");
    const off = [{ name: "tenure_log_guard_record", table: "tenure_log" }];
    expect(row("log triggers", log({ triggersOff: off }))).toMatchObject({
      level: "problem",
      sql: ['alter table "public".tenure_log enable trigger tenure_log_guard_record;'],
    });
  });

  it("whose inbox nobody empties, or whose nodes are silent, is a warning", () => {
    expect(row("inbox", log({ inbox: { count: 3, oldestMs: 1_000 } })).level).toBe("ok");
    expect(row("inbox", log({ inbox: { count: 3, oldestMs: 31_000 } })).level).toBe("warning");
    expect(row("nodes", log({ nodes: [{ node: "n2", silentMs: 11_000 }] })).level).toBe("warning");
  });
});
