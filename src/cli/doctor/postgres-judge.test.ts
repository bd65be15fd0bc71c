import { describe, expect, it } from "vitest";
import { settingsOf } from "../../electors/postgres/index.ts";
import { judgePostgres } from "./postgres-judge.ts";
import { undo } from "./postgres-settings.ts";
import { configured, factsOf, HEALTHY_SCHEMA, HELD, row, SETTINGS } from "./test-doctor.ts";

const off = (checks: ReturnType<typeof judgePostgres>) => checks.filter((check) => check.level !== "ok");

it("the settings of these tests are the defaults", () => {
  expect(SETTINGS).toEqual(settingsOf({ url: "postgres://db/shop" }));
});

describe("a server", () => {
  it("that is healthy has no row that is not ok", () => {
    expect(off(judgePostgres(factsOf({ scopes: { value: [HELD] } })))).toEqual([]);
  });

  it("must be 14 or newer", () => {
    expect(row("version", { version: 140_000 }).level).toBe("ok");
    expect(row("version", { version: 139_999, versionText: "13.99" })).toMatchObject({ level: "problem" });
  });

  it("trap 37: must be no standby", () => {
    expect(row("primary", { isStandby: true, primary: "10.0.0.1:5432" })).toMatchObject({
      level: "problem",
      seen: "a standby; it follows 10.0.0.1:5432",
    });
  });

  it("trap 41: must have no pooler in front of it that shares sessions", () => {
    for (const kind of ["transaction", "statement"] as const) {
      const { level, seen } = row("pooler", { pooler: { value: { kind, evidence: "two share one" } } });
      expect([level, seen]).toEqual(["problem", `one in ${kind} mode: two share one`]);
    }
  });

  it("whose answer to a question is not known is told so, and judged no further", () => {
    expect(row("clock rate", { clock: { unknown: "cut" } })).toMatchObject({ level: "unknown", seen: "cut" });
  });

  it("that ended before it was asked is told so", () => {
    const checks = judgePostgres({ ...factsOf({}), server: undefined });
    expect(checks.map((check) => check.level)).toEqual(["ok", "unknown"]);
  });
});

describe("settings", () => {
  const setting = (name: string, value: string, source = "user") =>
    ({ configured: configured({ [name]: { value, source } }) }) as const;

  it("that make transactions read-only are a problem", () => {
    expect(row("writable", setting("default_transaction_read_only", "on"))).toMatchObject({
      level: "problem",
      sql: ['alter role "app" reset default_transaction_read_only;'],
    });
  });

  it("that raise the isolation are a warning", () => {
    expect(row("isolation", setting("default_transaction_isolation", "serializable")).level).toBe("warning");
    expect(row("isolation", setting("default_transaction_isolation", "read uncommitted")).level).toBe("ok");
  });

  it("that end statements early are a problem below a second, and told above", () => {
    expect(row("preset timeouts", setting("statement_timeout", "999"))).toMatchObject({ level: "problem" });
    const { level, seen } = row("preset timeouts", setting("statement_timeout", "1000", "database"));
    expect([level, seen.slice(0, 37)]).toEqual(["ok", "statement_timeout 1000 ms (database);"]);
  });

  it("that end a waiting transaction are a problem up to the wait for the lock", () => {
    expect(row("transaction timeout", setting("transaction_timeout", "1000"))).toMatchObject({ level: "problem" });
    expect(row("transaction timeout", setting("transaction_timeout", "1001"))).toMatchObject({ level: "ok" });
  });

  it("that give up durability are warnings", () => {
    const { level, sql } = row("durability", {
      configured: configured({
        fsync: { value: "off", source: "configuration file" },
        full_page_writes: { value: "off", source: "configuration file" },
      }),
    });
    expect([level, sql]).toEqual([
      "warning",
      ["alter system set fsync = on;", "alter system set full_page_writes = on;", "select pg_reload_conf();"],
    ]);
    expect(row("synchronous commit", setting("synchronous_commit", "off"))).toMatchObject({ level: "warning" });
  });

  it.each([
    ["user", ['alter role "a""b" reset x;']],
    ["database", ['alter database "d" reset x;']],
    ["database user", ['alter role "a""b" in database "d" reset x;']],
    ["global", ["alter role all reset x;"]],
    ["configuration file", ["alter system set x = 0;", "select pg_reload_conf();"]],
  ])("that come from %s are undone there", (source, sql) => {
    expect(undo("x", { value: "1", source }, { role: 'a"b', database: "d" }, "0")).toEqual({ sql });
  });

  it.each(["client", "command line", "environment variable"])(
    "that come from %s have no SQL that undoes them",
    (source) => {
      const { sql, advice } = undo("x", { value: "1", source }, { role: "a", database: "d" }, "0");
      expect(sql).toEqual([]);
      expect(advice).toContain("x");
    },
  );
});

describe("a session", () => {
  const wanted = { idle_session_timeout: 6_000, lock_timeout: 1_000 };

  it("that does not keep the timeouts it was told is a problem", () => {
    const found = { idle_session_timeout: 0, lock_timeout: 1_000 };
    expect(row("session timeouts", { session: { value: { wanted, found, checksConnection: true } } })).toMatchObject({
      level: "problem",
      seen: "asked for idle_session_timeout 6000 ms; got idle_session_timeout 0 ms",
    });
  });

  it("trap 49b: whose server can't look at the socket is a warning", () => {
    const session = { value: { wanted, found: wanted, checksConnection: false } };
    expect(row("client check", { session }).level).toBe("warning");
  });
});

describe("connections", () => {
  const limits = (used: number, max: number, role: { used: number; max: number } | null = null) =>
    ({ connections: { value: { used, max, role, database: null } } }) as const;

  it("must leave room for one more elector, which takes three", () => {
    expect(row("connections", limits(97, 100)).level).toBe("warning");
    expect(row("connections", limits(98, 100)).level).toBe("problem");
    expect(row("connections", limits(90, 100)).level).toBe("ok");
  });

  it("are bounded by the role and the database too", () => {
    const database = { used: 4, max: 5 };
    expect(row("connections", limits(9, 100, { used: 3, max: 5 }))).toMatchObject({
      level: "problem",
      sql: ['alter role "app" connection limit -1;'],
    });
    expect(row("connections", { connections: { value: { used: 9, max: 100, role: null, database } } })).toMatchObject({
      level: "problem",
      sql: ['alter database "shop" connection limit -1;'],
    });
  });
});

describe("the schema", () => {
  const schema = (changes: object) => ({ schema: { value: { ...HEALTHY_SCHEMA, ...changes } } });
  const missing = { kind: "missing", version: 0, missing: ["table tenure_leader_state", "function tenure_beat()"] };

  it("that is not there is a problem, and nothing about it is judged further", () => {
    const checks = judgePostgres(factsOf({ ...schema({ state: missing }), scopes: { unknown: "no such table" } }));
    expect(off(checks).map(({ name, seen }) => [name, seen])).toEqual([
      ["schema", 'no tables of Tenure in schema "public" of database "shop"'],
    ]);
    expect(checks.map((check) => check.name)).not.toContain("rights");
  });

  it("that is in another place is told where", () => {
    const elsewhere = [{ database: "prod", schema: "public" }];
    const { means, advice } = row("schema", schema({ state: missing, elsewhere }));
    expect(means).toContain('database "prod", schema "public"');
    expect(advice).toContain("Correct the database in the URL");
    expect(advice).toContain("tenure schema apply");
  });

  it("that lacks a function names it", () => {
    const state = { kind: "missing", version: 1, missing: ["function tenure_beat(bigint, bigint)"] };
    expect(row("schema", schema({ state })).seen).toContain("no function tenure_beat(bigint, bigint)");
  });

  it("of an older or an unusable version is a problem", () => {
    for (const kind of ["older", "unusable"]) {
      expect(row("schema", schema({ state: { kind, version: 9 } })).level).toBe("problem");
    }
    expect(row("schema", schema({ state: { kind: "newer", version: 9, denied: [], foreign: [] } })).level).toBe("ok");
  });

  it("that the role may not use is mended by the grants", () => {
    const denied = [{ what: "table t", grant: "grant select on table t to app;" }];
    expect(row("rights", schema({ denied }))).toMatchObject({
      level: "problem",
      sql: ["grant select on table t to app;"],
    });
  });

  it("whose owner may not end sessions is a warning", () => {
    expect(row("ending sessions", schema({ owner: { name: "o", maySignal: false } }))).toMatchObject({
      level: "warning",
      sql: ['grant pg_signal_backend to "o";'],
    });
  });

  it("trap 43: must be guarded by its triggers and logged", () => {
    expect(row("triggers", schema({ triggersOff: ["tenure_guard_row"] })).level).toBe("problem");
    expect(row("triggers", schema({ triggersOff: ["tenure_notify"] })).level).toBe("warning");
    expect(row("triggers", schema({ triggersMissing: ["tenure_guard_row"] })).level).toBe("problem");
    expect(row("durable tables", schema({ unlogged: ["tenure_leader_state", "tenure_heartbeat"] }))).toMatchObject({
      level: "problem",
      sql: [
        'alter table "public".tenure_leader_state set logged;',
        'alter table "public".tenure_heartbeat set logged;',
      ],
    });
  });
});

describe("the clock", () => {
  const clock = (rate: number, uncertainty = 0.001) => ({
    clock: { value: { rate, uncertainty, overMs: 1_000, offsetMs: 0 } },
  });

  it("of the server may be faster by what the margin covers: 6 s to 4.5 s, a third", () => {
    expect(row("clock rate", clock(4 / 3)).level).toBe("warning");
    expect(row("clock rate", clock(4 / 3 + 0.002)).level).toBe("problem");
  });

  it("that is slower than ours is safe, and odd", () => {
    expect(row("clock rate", clock(0.5)).level).toBe("warning");
    expect(row("clock rate", clock(0.9895)).level).toBe("ok");
  });

  it("is not blamed for what a slow network hides", () => {
    expect(row("clock rate", clock(1.6, 0.7)).level).toBe("ok");
  });

  it("that shows another time of day does not matter", () => {
    const value = { rate: 1, uncertainty: 0.001, overMs: 1_000, offsetMs: 3_600_000 };
    expect(row("clock rate", { clock: { value } }).level).toBe("ok");
  });
});

describe("latency", () => {
  const latency = (p99Ms: number) => ({ latency: { value: { samples: 200, p50Ms: 1, p99Ms } } });

  it("must leave room for an answer between a heartbeat and the end of trust: 6 s − 1.5 s − 1.2 s", () => {
    expect(row("latency", latency(824)).level).toBe("ok");
    expect(row("latency", latency(825)).level).toBe("warning");
    expect(row("latency", latency(3_299)).level).toBe("warning");
    expect(row("latency", latency(3_300)).level).toBe("problem");
  });

  it("of notifications is a second where they do not arrive", () => {
    expect(row("notify", { notify: { value: { arrived: false } } }).level).toBe("warning");
  });
});
