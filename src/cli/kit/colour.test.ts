// Who gets colours, and that they change nothing but the colour.

import { describe, expect, it } from "vitest";
import { paintFor, paintState, PLAIN, visibleLength } from "./colour.ts";
import { complaint, complaintLines, warningText } from "./complaint.ts";
import { jobsTable } from "../job/view.ts";
import { columns, table } from "./output.ts";
import { briefOf } from "../job/test-job.ts";

const TERMINAL = { isTTY: true };
const PIPE = { isTTY: undefined };
const RED = "\u001B[31mx\u001B[39m";

describe("colours", () => {
  it.each([
    ["a terminal has them", TERMINAL, {}, RED],
    ["a pipe has none", PIPE, {}, "x"],
    ["NO_COLOR switches them off", TERMINAL, { NO_COLOR: "1" }, "x"],
    ["an empty NO_COLOR counts as unset", TERMINAL, { NO_COLOR: "" }, RED],
    ["a dumb terminal has none", TERMINAL, { TERM: "dumb" }, "x"],
    ["FORCE_COLOR gives them to a pipe", PIPE, { FORCE_COLOR: "1" }, RED],
    ["so does CLICOLOR_FORCE", PIPE, { CLICOLOR_FORCE: "1" }, RED],
    ["FORCE_COLOR=0 forces nothing", PIPE, { FORCE_COLOR: "0" }, "x"],
    ["NO_COLOR goes before FORCE_COLOR", TERMINAL, { NO_COLOR: "1", FORCE_COLOR: "1" }, "x"],
  ])("%s", (_name, stream, environment, painted) => {
    expect(paintFor(stream, environment)("red", "x")).toBe(painted);
  });

  it("take no place in a column", () => {
    const paint = paintFor(TERMINAL, {});
    const rows = (by: typeof PLAIN) => [
      ["1", paintState("failed", by), "z"],
      ["22", paintState("pending", by), "z"],
    ];
    const plain = table(["ID", "STATE", "Z"], rows(PLAIN), PLAIN);
    const painted = table(["ID", "STATE", "Z"], rows(paint), paint);
    expect(painted).not.toBe(plain);
    expect(withoutColours(painted)).toBe(plain);
    expect(visibleLength(paint("bold", "abc"))).toBe(3);
  });

  it("of a state that is not known are none, whatever its name is", () => {
    const paint = paintFor(TERMINAL, {});
    expect(["toString", "frobnicated"].map((state) => paintState(state, paint))).toEqual(["toString", "frobnicated"]);
  });

  it("of jobs are those of their states, and what others wrote brings none", () => {
    const paint = paintFor(TERMINAL, {});
    const jobs = [briefOf({ state: "failed", kind: "\u001B[32mfake" }), briefOf({ state: "completed" })];
    const text = jobsTable(jobs, 0, paint);
    expect(text).toContain("\u001B[31mfailed\u001B[39m");
    expect(text).toContain("\u001B[32mcompleted\u001B[39m");
    expect(text).toContain("?[32mfake");
    expect(withoutColours(text)).toBe(jobsTable(jobs, 0));
  });
});

describe("complaints", () => {
  const paint = paintFor(TERMINAL, {});

  it("are one line, whatever the message has in it", () => {
    expect(complaint("tenure job", "a\n  b\u001B[2J", PLAIN)).toBe("tenure job: a b?[2J\n");
    expect(complaint("tenure", "a", paint)).toBe("\u001B[31mtenure:\u001B[39m a\n");
    expect(warningText("a\nb", paint)).toBe("\u001B[33mtenure: warning:\u001B[39m a b\n");
  });

  it("keep the lines of a configuration's mistakes", () => {
    expect(complaintLines("tenure", "is wrong:\n  a\u0007\n  b\n", PLAIN)).toBe("tenure: is wrong:\n  a?\n  b\n");
  });
});

it("columns without colours are as they were", () => {
  expect(
    columns([
      ["a", "bb", "c"],
      ["aaa", "b", "c"],
    ]),
  ).toBe("a    bb  c\naaa  b   c\n");
});

function withoutColours(text: string): string {
  // oxlint-disable-next-line no-control-regex -- colours are what is taken out
  return text.replaceAll(/\u001B\[\d+m/g, "");
}
