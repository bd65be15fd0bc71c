// What the doctor says of a log that servers keep in Postgres.

import { describe, expect, it } from "vitest";
import type { LogFacts } from "./postgres.ts";
import { HEALTHY_LOG, row } from "./test-doctor.ts";

function log(change: Partial<LogFacts>): { readonly log: { readonly value: LogFacts } } {
  return { log: { value: { ...HEALTHY_LOG, ...change } } };
}

describe("a log in Postgres", () => {
  it("that is well is told with its ends, its rights and its nodes", () => {
    expect(row("log", {})).toMatchObject({ level: "ok", seen: expect.stringContaining("records 1 to 900") });
    for (const name of ["log rights", "log triggers", "inbox", "lost submissions", "nodes"])
      expect(row(name, {}).level).toBe("ok");
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

  it("to which nothing was submitted by name, but to one that is not there, is a problem with the SQL that mends it", () => {
    const strays = [{ log: "build's", count: 2 }];
    const lost = row("lost submissions", log({ strays }));
    expect(lost).toMatchObject({
      level: "problem",
      seen: "2 submissions to 'build''s', which no server keeps",
      sql: ["update \"public\".tenure_inbox set log = 'jobs' where log = 'build''s';"],
    });
    expect(lost.means).toContain("there is 'jobs'");
    expect(row("lost submissions", log({ strays, heads: [] }))).toMatchObject({ level: "warning" });
  });

  it("whose nodes have one URL is a problem, but not where one of them is long gone", () => {
    const nodes = ["n1", "n2"].map((node) => ({ node, url: "http://n1", silentMs: 400 }));
    expect(row("nodes", log({ nodes }))).toMatchObject({
      level: "problem",
      seen: "n1, n2; with one URL: n1 http://n1, n2 http://n1",
      advice: expect.stringContaining("api.advertise") as string,
    });
    expect(row("nodes", log({ nodes: [nodes[0]!, { ...nodes[1]!, silentMs: 60_000 }] })).level).toBe("warning");
  });

  it("whose inbox nobody empties, or whose nodes are silent, is a warning", () => {
    expect(row("inbox", log({ inbox: { count: 3, oldestMs: 1_000 } })).level).toBe("ok");
    expect(row("inbox", log({ inbox: { count: 3, oldestMs: 31_000 } })).level).toBe("warning");
    expect(row("nodes", log({ nodes: [{ node: "n2", url: "http://n2", silentMs: 11_000 }] })).level).toBe("warning");
  });
});
