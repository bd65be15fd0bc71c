// What rows and notifications mean.

import { describe, expect, it } from "vitest";
import { headOf, integerOf, logStatements, NO_HEAD, noticeOf } from "./log-sql.ts";

describe("notifications", () => {
  it("name the log, its epoch and its position; all else is none of ours", () => {
    expect(noticeOf("jobs", "jobs:3:12")).toEqual({ epoch: 3, position: 12 });
    for (const payload of [
      "",
      "jobs",
      "jobs:",
      "jobs:3",
      "jobs:3:x",
      "jobs:3:12:1",
      "job:3:12",
      "jobs2:3:12",
      "jobs:-1:2",
    ])
      expect(noticeOf("jobs", payload), payload).toBeNull();
  });
});

describe("rows", () => {
  it("a log without a row is empty, and integers are exact or refused", () => {
    expect(headOf(undefined)).toEqual(NO_HEAD);
    expect(integerOf("9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
    for (const text of ["9007199254740993", "-1", "1.5", "x"])
      expect(() => integerOf(text), text).toThrow(/an integer of ours/);
  });

  it("a schema's name that would need quoting is refused", () => {
    expect(() => logStatements('a"b')).toThrow(/it must be letters, digits and underscores/);
  });
});
