// Jobs that are taken over from the database: committed there, so each becomes something here.

import { expect, test } from "vitest";
import { TenureError } from "../../kit/errors.ts";
import { JobsBook } from "../state/book.ts";
import type { TakenJob } from "../commands.ts";
import { agent, Desk, spec } from "../test-desk.ts";

function taken(id: string, changes: Partial<TakenJob> = {}): TakenJob {
  return { id, by: "postgres:app", spec: spec(), problem: null, ...changes };
}

function desk(limits: Partial<{ liveMax: number }> = {}): Desk {
  return new Desk(new JobsBook({ canonical: (value) => JSON.stringify(value), limits }));
}

test("they are pending under the ids that they were given, in order, and can be leased", () => {
  const on = desk();
  on.do<"take">({ kind: "take", jobs: [taken("a"), taken("b")] });
  expect(on.book.applied.job("a")).toMatchObject({ state: "pending", submittedBy: "postgres:app" });
  const { leases } = on.do<"lease">({ kind: "lease", agent: agent(), max: 2, ttlMs: 1_000 });
  expect(leases.map(({ jobId }) => jobId)).toEqual(["a", "b"]);
});

test("one that nobody can do has failed at once and says why; the others are not held up", () => {
  const on = desk();
  const tooMany = taken("b", { spec: spec({ attemptsMax: 0 }) });
  on.do<"take">({ kind: "take", jobs: [taken("a", { problem: "priorty is not known" }), tooMany, taken("c")] });
  expect(on.book.applied.job("a")).toMatchObject({ state: "failed", jobEpoch: 1 });
  expect(on.book.applied.job("a")?.error?.message).toContain("priorty is not known");
  expect(on.book.applied.job("b")?.error?.message).toContain("attempts_max");
  expect(on.book.applied.job("c")).toMatchObject({ state: "pending" });
  expect(on.book.applied.stats()).toMatchObject({ submitted: 3, finished: 2 });
});

test("what was taken over before is there once", () => {
  const on = desk();
  on.do<"take">({ kind: "take", jobs: [taken("a")] });
  expect(on.decide<"take">({ kind: "take", jobs: [taken("a")] })).toMatchObject({ kind: "decided", drafts: [] });
});

test("where there is no room, all stay where they are", () => {
  const on = desk({ liveMax: 1 });
  const decision = on.decide<"take">({ kind: "take", jobs: [taken("a"), taken("b")] });
  expect(decision).toMatchObject({ kind: "refused", code: "OVERLOADED" });
});

test.each(["", "send mail", "käse", "-k", "k\n", "k".repeat(129)])(
  "F4: a kind that nobody could name in a path (%j) is not carried on",
  (kind) => {
    const on = desk();
    on.do<"take">({ kind: "take", jobs: [taken("a", { spec: spec({ kind }), problem: "kind must be a name" })] });
    expect(on.book.applied.job("a")).toMatchObject({ state: "failed", spec: { kind: "unusable" } });
  },
);

test("F4: a number that is none is a failed job, not a loop", () => {
  const canonical = (value: unknown): string => {
    if (value === Infinity) throw new TenureError("EVENT_INVALID", "an event can't hold Infinity");
    return JSON.stringify(value);
  };
  const on = new Desk(new JobsBook({ canonical }));
  on.do<"take">({ kind: "take", jobs: [taken("a", { spec: spec({ payload: Infinity }) }), taken("b")] });
  expect(on.book.applied.job("a")?.error?.message).toContain("can't hold Infinity");
  expect(on.book.applied.job("b")).toMatchObject({ state: "pending" });
});
