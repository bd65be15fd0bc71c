import { describe, expect, it } from "vitest";
import type { Json } from "../core/kit/json.ts";
import { readExecPayload } from "./exec-payload.ts";

describe("the payload of an exec job", () => {
  it("is a command, maybe with an environment and a directory", () => {
    expect(readExecPayload({ command: ["make"] })).toEqual({ command: ["make"], env: {}, cwd: null });
    const whole = { command: ["make", "", "all"], env: { A: "" }, cwd: "/tmp" };
    expect(readExecPayload(whole)).toEqual(whole);
  });

  it.each<[Json, RegExp]>([
    [null, /must be an object .*, not null\.$/],
    [["make"], /must be an object .*, not \["make"\]/],
    [{}, /command must be a list of the program and its arguments, not nothing/],
    [{ command: "make all" }, /command must be a list .*, not "make all"/],
    [{ command: [] }, /command must be a list .*, not \[\]/],
    [{ command: [""] }, /command\[0\] must be a program, not empty/],
    [{ command: ["a", 1] }, /command\[1\] must be text without NUL, not 1/],
    [{ command: ["a\0b"] }, /command\[0\] must be text without NUL/],
    [{ command: ["a"], env: [] }, /env must be an object of texts, not \[\]/],
    [{ command: ["a"], env: { A: 1 } }, /env\.A must be text without NUL, not 1/],
    [{ command: ["a"], env: { "A=B": "c" } }, /env has the name "A=B"; a name has no =/],
    [{ command: ["a"], cwd: "" }, /cwd must be a directory, not ""/],
    [{ command: ["a"], cwd: 5 }, /cwd must be a directory, not 5/],
    [{ command: ["a"], shell: true }, /there is no "shell"; there are command, env, cwd/],
  ])("%j is refused for good", (payload, message) => {
    expect(() => readExecPayload(payload)).toThrow(
      expect.objectContaining({ name: "JobError", retry: false, message: expect.stringMatching(message) as string }),
    );
  });

  it("names every mistake at once", () => {
    expect(() => readExecPayload({ command: [1, 2], env: null, cwd: false, user: "root" })).toThrow(
      /command\[0\].*command\[1\].*env must.*cwd must.*no "user"/,
    );
  });
});
