// Who may be given what, as it is asked at each command: how much of it is looked at.

import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../events/index.ts";
import { INTEGER_MAX } from "../../kit/limits.ts";
import { JobsBook } from "../state/book.ts";
import { openClasses } from "./lease.ts";
import { Desk, spec } from "../test-desk.ts";

/** Kinds that agents wait for, and how many of them were looked at. */
class CountedKinds extends Map<string, null> {
  looks = 0;

  constructor(kinds: readonly string[]) {
    super();
    for (const kind of kinds) this.set(kind, null);
  }

  override has(kind: string): boolean {
    this.looks++;
    return super.has(kind);
  }

  override *keys(): MapIterator<string> {
    for (const kind of super.keys()) {
      this.looks++;
      yield kind;
    }
  }

  /** Whoever takes it for a list of kinds is counted too. */
  override [Symbol.iterator](): MapIterator<[string, null]> {
    return this.keys() as unknown as MapIterator<[string, null]>;
  }
}

const kindsOf = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

function found(ready: readonly string[], wanted: CountedKinds): string[] {
  const desk = new Desk(new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX) }));
  for (const kind of ready) desk.submit(spec({ kind }));
  return [...openClasses(desk.book, wanted, { nowMs: desk.nowMs, wallMs: desk.nowMs })].map(({ kind }) => kind);
}

describe("jobs for those who wait", () => {
  it("a submission looks at the kinds that are ready, not at each of a thousand that agents wait for", () => {
    const wanted = new CountedKinds(kindsOf("k", 1_000));
    expect(found(["k-7", "nobody's"], wanted)).toEqual(["k-7"]);
    expect(wanted.looks).toBeLessThanOrEqual(2);
  });

  it("a poll looks at the kinds that it waits for, not at each of a thousand that are ready", () => {
    const wanted = new CountedKinds(["k-7", "idle"]);
    expect(found(kindsOf("k", 1_000), wanted)).toEqual(["k-7"]);
    expect(wanted.looks).toBeLessThanOrEqual(2);
  });

  it("whichever is walked, the same is found", () => {
    for (const [ready, waited] of [
      [30, 50],
      [50, 30],
      [30, 30],
    ] as const) {
      const wanted = new CountedKinds(kindsOf("k", waited));
      expect(found(kindsOf("k", ready), wanted).toSorted()).toEqual(kindsOf("k", 30).toSorted());
    }
  });
});
