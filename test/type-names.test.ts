// A type's name is exported to other rooms by one room. The exceptions are listed here, with their reasons.

import { describe, expect, it } from "vitest";
import { describe as text, readSources } from "../scripts/source.ts";
import { checkTypeNames } from "../scripts/type-names.ts";

/** The SDK's public type of what a port reports, where the two differ: older servers say less. */
const SDK = "client: public type of the SDK; ports: what a server reports";

const EXCEPTIONS: Readonly<Record<string, string>> = {
  AlertView: SDK,
  ClusterView: SDK,
  ElectionView: SDK,
  MemberView: SDK,
  NewKey: SDK,
  Role: "contract: what an API key may do; core/raft: follower, candidate, leader. Both are the words of the field",
  ChainPoint:
    "core/archive: a place in the chain of events; core/health: the hash over the applied log that beacons compare",
  Moment: "core/health and core/supervise: two clocks read at once, each with the clocks of its own processes",
};

const check = (...files: readonly [string, string][]): string[] =>
  checkTypeNames(
    files.map(([path, code]) => ({ path, text: code })),
    {},
  ).violations.map(text);

it("this repository exports a type's name to others by one room, but for the exceptions, and something was checked", () => {
  const report = checkTypeNames(readSources(process.cwd(), ["src", "web/src"]), EXCEPTIONS);
  expect(report.violations.map(text)).toEqual([]);
  expect(report.names).toBeGreaterThan(300);
});

describe("a name that two rooms export", () => {
  const engine: [string, string] = ["src/engine/a.ts", "export interface Thing {}\n"];
  const client: [string, string] = ["src/client/b.ts", "export class Thing {}\n"];
  const user: [string, string] = ["src/cli/c.ts", 'import type { Thing } from "../engine/index.ts";\n'];

  it("is refused where others use both, also renamed or passed on", () => {
    for (const second of [
      'import { Thing as Other } from "../client/b.ts";\n',
      'export { type Thing } from "../client/index.ts";\n',
    ]) {
      expect(check(engine, client, user, ["src/entry/d.ts", second])).toEqual([
        "src/engine/a.ts:1: Thing is exported to others by engine and client; rename one",
        "src/client/b.ts:1: Thing is exported to others by engine and client; rename one",
      ]);
    }
  });

  it("is fine where one of them stays in its room, or only a test uses it", () => {
    expect(check(engine, client, user)).toEqual([]);
    expect(check(engine, client, user, ["src/client/c.ts", 'import { Thing } from "./b.ts";\n'])).toEqual([]);
    expect(check(engine, client, user, ["src/cli/c.test.ts", 'import { Thing } from "../client/b.ts";\n'])).toEqual([]);
  });

  it("needs its exception: one that is not needed any more is refused", () => {
    expect(checkTypeNames([], { Thing: "why" }).violations.map(text)).toEqual([
      "test/type-names.test.ts:1: the exception for Thing is not needed",
    ]);
  });
});
