import { describe, expect, it } from "vitest";
import type { PendingReasonView } from "../../src/client/index.ts";
import {
  ago,
  attemptText,
  duration,
  isFenced,
  pendingText,
  plainLog,
  plural,
  refusedSum,
  sizeText,
  titleText,
} from "./words.ts";

it.each([
  [0, "0 ms"],
  [63.4, "63 ms"],
  [4_240, "4.2 s"],
  [59_999, "59 s"],
  [190_000, "3 min 10 s"],
  [3_600_000, "1 h"],
  [187_200_000, "2 d 4 h"],
  [-5, "0 ms"],
])("%d ms are %s", (ms, text) => expect(duration(ms)).toBe(text));

it.each([
  [1, "1 B"],
  [1_023, "1023 B"],
  [1_024, "1.0 KiB"],
  [4_200, "4.1 KiB"],
  [64 * 1_024, "64 KiB"],
])("%d bytes are %s", (bytes, text) => expect(sizeText(bytes)).toBe(text));

it("says how long ago, or in how long; a server's clock that is a little ahead is now", () => {
  expect(ago(1_000, 6_000)).toBe("5.0 s ago");
  expect(ago(6_500, 6_000)).toBe("now");
  expect(ago(66_000, 6_000)).toBe("in 1 min");
});

it("counts with a comma, and in the plural", () => {
  expect(plural(1, "job")).toBe("1 job");
  expect(plural(12_345, "job")).toBe("12,345 jobs");
});

describe("why a job waits", () => {
  const reasons: [PendingReasonView, RegExp][] = [
    [{ reason: "paused", queue: "q1" }, /queue q1 is paused/],
    [{ reason: "not-before", readyAtMs: 0 }, /before 1970-01-01 00:00:00.000 UTC/],
    [{ reason: "concurrency", key: "k", limit: 3 }, /3 with the concurrency key k/],
    [{ reason: "no-agent", kind: "build", missing: "label gpu=yes" }, /no agent takes it \(label gpu=yes\).*build/],
    [{ reason: "agents-busy", agents: 2 }, /all 2 agents/],
    [{ reason: "draining" }, /draining/],
    [{ reason: "cluster-paused" }, /tenure cluster resume/],
    [{ reason: "next" }, /next/],
  ];
  it.each(reasons)("%j", (reason, text) => expect(pendingText(reason)).toMatch(text));
});

it("an attempt that was taken away is fenced, and one that ended by itself is not", () => {
  expect((["lost", "timed-out"] as const).map((end) => isFenced({ end }))).toEqual([true, true]);
  const own = (["completed", "failed", "cancelled", "handed-back", "undelivered", null] as const).map((end) => ({
    end,
  }));
  expect(own.map(isFenced)).toEqual(own.map(() => false));
  expect(attemptText({ end: "lost" })).toContain("not heard from");
});

it("what was refused is the sum over the nodes that answer, and they are named", () => {
  const counts = [
    { by: "n3", staleRejected: 2 },
    { by: "n1", staleRejected: 5 },
  ];
  expect(refusedSum(counts)).toEqual({ count: 7, by: ["n1", "n3"] });
  expect(refusedSum([])).toEqual({ count: 0, by: [] });
});

it("the title says who leads, and which view is open", () => {
  expect(titleText("Jobs", "n1", false)).toBe("n1 leads – Jobs – Tenure");
  expect(titleText("Jobs", null, true)).toBe("nobody leads – Jobs – Tenure");
  expect(titleText("Jobs", null, false)).toBe("Jobs – Tenure");
});

it("a log is shown without a terminal's escapes", () => {
  expect(plainLog("\u001b[31mred\u001b[0m \u001b]0;title\u0007done\r\nnext\rover")).toBe("red done\r\nnext\nover");
});
