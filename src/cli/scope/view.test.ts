import { describe, expect, it } from "vitest";
import type { ScopeRecord } from "../../ports/backends/scope-admin.ts";
import { columns, duration, printable } from "../kit/output.ts";
import { ageOf, scopeTable, sessionText, stateOf } from "./view.ts";

const NOW = { nowMs: 1_000_000, staleAfterMs: 6_000 };
const LED: ScopeRecord = {
  scope: "jobs",
  epoch: 3,
  identity: "one",
  metadata: {},
  acquiredAtMs: 900_000,
  heartbeatAtMs: 999_000,
};

describe("the state of a scope", () => {
  it("is held up to the server timeout after the last heartbeat, and stale one millisecond later", () => {
    expect(stateOf({ ...LED, heartbeatAtMs: NOW.nowMs - 6_000 }, NOW)).toBe("held");
    expect(stateOf({ ...LED, heartbeatAtMs: NOW.nowMs - 6_001 }, NOW)).toBe("stale");
  });

  it("is stale at once when the backend knows that the session is gone", () => {
    expect(stateOf({ ...LED, isGone: true }, NOW)).toBe("stale");
    expect(stateOf({ ...LED, isGone: false }, NOW)).toBe("held");
  });

  it("is free where nobody leads, whatever else is stored", () => {
    expect(stateOf({ ...LED, identity: null, isGone: true, heartbeatAtMs: 0 }, NOW)).toBe("free");
  });

  it("is held where the age of the heartbeat is not known", () => {
    expect(stateOf({ ...LED, heartbeatAtMs: null }, NOW)).toBe("held");
  });

  it("has no negative age where the clocks differ", () => {
    expect(ageOf({ ...LED, heartbeatAtMs: NOW.nowMs + 50 }, NOW.nowMs)).toBe(0);
  });
});

describe("what is printed", () => {
  it("is columns with two spaces between, without spaces at the end", () => {
    expect(
      columns([
        ["a", "bb", "c"],
        ["aaa", "b", ""],
      ]),
    ).toBe("a    bb  c\naaa  b\n");
  });

  it("has a dash for what is not there", () => {
    const free = { ...LED, identity: null, acquiredAtMs: null, heartbeatAtMs: null };
    expect(scopeTable([free], NOW).split("\n")[1]).toBe("jobs   free   3      -      -          -");
  });

  it("has no control characters, and no characters that turn the line around", () => {
    expect(printable("a\u001b[2J\n\u202eb\u2028c")).toBe("a?[2J??b?c");
  });

  it.each([
    [0, "0ms"],
    [999, "999ms"],
    [1_000, "1.0s"],
    [59_940, "59.9s"],
    [60_000, "1m00s"],
    [3_599_000, "59m59s"],
    [3_600_000, "1h00m"],
    [86_400_000, "1d0h"],
  ])("writes %d ms as %s", (ms, text) => expect(duration(ms)).toBe(text));

  it("names a prepared transaction, which has no session", () => {
    const session = { pid: null, user: null, applicationName: null, client: null, prepared: "tx-1" };
    expect(sessionText(session)).toBe('prepared transaction "tx-1"');
    expect(sessionText({ ...session, pid: 7, user: "app", client: "10.0.0.1", applicationName: "x" })).toBe(
      'pid 7 "x" as app from 10.0.0.1',
    );
  });
});
