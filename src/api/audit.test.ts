import { describe, expect, it } from "vitest";
import { ManualClock } from "../loops/test-clock.ts";
import type { LogFields } from "../ports/logger.ts";
import { Audit } from "./audit.ts";
import type { Caller } from "./traffic/callers.ts";

const AGENT: Caller = { how: "key", name: "others", role: "agent" };
const BOUNDS = { auditWindowMs: 60_000, auditRefusalsPerCaller: 3, auditRefusalsMax: 5 };

function stage() {
  const clock = new ManualClock();
  const lines: LogFields[] = [];
  const write = (fields: LogFields): void => void lines.push(fields);
  const audit = new Audit({ info: write, warn: write, error: write }, clock, BOUNDS);
  const refused = (payer: string, target: string): void => {
    const about = { operation: "takeOverAgent", target, forced: false, outcome: "PERMISSION_DENIED", status: 403 };
    const call = { atMs: 0, nodeId: "n1", address: "127.0.0.1", durationMs: 0, requestId: "r", ...about };
    audit.refused(payer, AGENT, call);
  };
  return { clock, lines, audit, refused };
}

function shown(lines: readonly LogFields[]): string[] {
  return lines.map(({ phase, target, who, suppressed }) =>
    phase === "suppressed" ? `${String(suppressed)} of ${String(who)}` : String(target),
  );
}

describe("refused calls in the audit", () => {
  it("are so many of one caller in a minute, each once; the rest is counted when the minute is over, without another call", () => {
    const { clock, lines, audit, refused } = stage();
    for (const name of ["a", "a", "b", "c", "d", "e", "a"]) refused("key x", name);
    expect(shown(lines)).toEqual(["a", "b", "c"]);
    expect(audit.records()).toHaveLength(3);
    clock.nowMs += BOUNDS.auditWindowMs;
    expect(clock.fireNext()).toBe(true);
    expect(shown(lines.splice(0))).toEqual(["a", "b", "c", "4 of key x"]);
    expect(clock.pending).toBe(0);
    refused("key x", "a");
    expect(shown(lines)).toEqual(["a"]);
  });

  it("are so many of all callers: one that comes with many names for itself fills nothing either", () => {
    const { lines, audit, refused } = stage();
    for (let at = 0; at < 1_000; at++) refused(`address ${at}`, "a");
    expect(shown(lines.splice(0))).toEqual(["a", "a", "a", "a", "a"]);
    audit.stop();
    expect(shown(lines)).toEqual(["995 of others"]);
  });

  it("don't keep a caller from its own lines while another one has used up its share", () => {
    const { lines, refused } = stage();
    for (let at = 0; at < 100; at++) refused("key x", `n${at}`);
    refused("key y", "b");
    expect(shown(lines)).toEqual(["n0", "n1", "n2", "b"]);
  });

  it("leave no timer where everything was written", () => {
    const { clock, refused } = stage();
    refused("key x", "a");
    expect(clock.pending).toBe(0);
  });
});
