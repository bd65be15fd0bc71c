import { describe, expect, it } from "vitest";
import type { Occupant, ScopeFacts } from "./postgres.ts";
import { HELD, row } from "./test-doctor.ts";

const STRANGER: Occupant = {
  pid: 99,
  user: "bill",
  applicationName: "billing",
  client: "10.0.0.9",
  prepared: null,
  ageMs: 10,
};
const scopes = (...list: Partial<ScopeFacts>[]) => ({ scopes: { value: list.map((one) => ({ ...HELD, ...one })) } });

describe("lock keys", () => {
  it("that belong to another scope are a problem for the scope that was asked about", () => {
    const check = row("lock keys", scopes({ storedKey: null, keyBelongsTo: "mail" }), "jobs");
    expect(check).toMatchObject({ level: "problem", seen: 'key 1 of scope "jobs" belongs to scope "mail"' });
  });

  it("that somebody set are told, and are a problem for the scope that was asked about", () => {
    const other = scopes({ expectedKey: "2", keyBelongsTo: null });
    expect(row("lock keys", other)).toMatchObject({ level: "warning" });
    const asked = row("lock keys", other, "jobs");
    expect(asked.level).toBe("problem");
    expect(asked.advice).toContain("TENURE_LEADER_LOCK_KEY=1");
  });
});

describe("a lock", () => {
  it("that a session has which is not Tenure's is a problem, with who it is and how to end it", () => {
    const check = row("lock holders", scopes({ lockHolders: [STRANGER] }));
    expect(check).toMatchObject({ level: "problem", sql: ["select pg_terminate_backend(99);"] });
    expect(check.seen).toContain('pid 99 "billing" as bill from 10.0.0.9');
  });

  it("of a session whose name only begins like ours is no exception", () => {
    const lockHolders = [{ ...STRANGER, applicationName: "tenured faculty" }];
    expect(row("lock holders", scopes({ lockHolders })).level).toBe("problem");
  });

  it("of the session for many scopes is ours", () => {
    const lockHolders = [{ ...STRANGER, applicationName: "tenure (many scopes)" }];
    expect(row("lock holders", scopes({ lockHolders })).level).toBe("ok");
  });
});

describe("a fence", () => {
  it("that is held for long is a warning; for a moment it is what fences are for", () => {
    expect(row("fences", scopes({ fenceHolders: [{ ...STRANGER, ageMs: 5_000 }] })).level).toBe("ok");
    expect(row("fences", scopes({ fenceHolders: [{ ...STRANGER, ageMs: 5_001 }] }))).toMatchObject({
      level: "warning",
      sql: ["select pg_terminate_backend(99);"],
    });
  });

  it("of a prepared transaction is a problem at once, for nobody can end it by ending a session", () => {
    const prepared = { ...STRANGER, pid: null, prepared: "it's" };
    expect(row("fences", scopes({ fenceHolders: [prepared] }))).toMatchObject({
      level: "problem",
      sql: ["rollback prepared 'it''s';"],
    });
  });
});

describe("a leader", () => {
  it("that is gone or silent is a warning", () => {
    expect(row("leaders", scopes({ isHeld: false })).seen).toContain("gone, and nobody has followed");
    expect(row("leaders", scopes({ heartbeatAgeMs: 6_000 })).level).toBe("ok");
    expect(row("leaders", scopes({ heartbeatAgeMs: 6_001 })).seen).toContain("silent");
  });

  it("that is nobody is a warning only where the scope was asked about", () => {
    const nobody = scopes({ holder: null, isHeld: false, heartbeatAgeMs: null });
    expect(row("leaders", nobody).level).toBe("ok");
    expect(row("leaders", nobody, "jobs").level).toBe("warning");
  });
});
