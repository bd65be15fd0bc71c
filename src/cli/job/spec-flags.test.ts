import { describe, expect, it } from "vitest";
import { ROUTES } from "../../contract/index.ts";
import { kindsOf } from "../kit/description.ts";
import { JOB } from "./help.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { JOB_NAME } from "../../contract/names.ts";
import { readSpec, type Spec } from "./spec-flags.ts";

const NOW_MS = Date.parse("2030-01-01T00:00:00Z");

function spec(...args: readonly string[]): Spec {
  const { words, rest, values, lists } = parseFlags(args, kindsOf(JOB));
  return readSpec(words, rest, { values, lists }, NOW_MS);
}

function wrong(...args: readonly string[]): string {
  try {
    spec(...args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
}

const COMMAND = "tenure job submit -- COMMAND ARG…";
const DURATION = "takes a duration such as 500ms, 2s or 1m";

describe("a job made of flags", () => {
  it("has the names that the servers have", () => {
    const takes = (kind: string): boolean => ROUTES.submit.body.check({ kind }).ok;
    const names = ["a", "a".repeat(128), "a".repeat(129), "", "-a", ".a", "a.b_c:D-9", "a b", "ä", "a/b", "9"];
    expect(names.map((name) => JOB_NAME.test(name))).toEqual(names.map(takes));
  });

  it("has what was given, and nothing else: the servers know the defaults", () => {
    expect(spec("build")).toEqual({ request: { kind: "build" }, payloadFile: null });
    const flags = [
      'build --payload {"a":[1]} --queue q --priority -5 --label zone=a --label x=1=2 --platform linux --not-before 10m',
      "--attempts 2 --losses 4 --backoff 500ms,1h --timeout 2h --retention 30d --concurrency deploy:eu=2",
    ];
    const all = spec(...flags.join(" ").split(" "));
    expect(all).toEqual({
      payloadFile: null,
      request: {
        kind: "build",
        payload: { a: [1] },
        queue: "q",
        priority: -5,
        labels: { zone: "a", x: "1=2" },
        platform: "linux",
        notBeforeMs: NOW_MS + 600_000,
        attemptsMax: 2,
        lossesMax: 4,
        backoff: { baseMs: 500, maxMs: 3_600_000 },
        timeoutMs: 7_200_000,
        retentionMs: 30 * 86_400_000,
        concurrency: { key: "deploy:eu", limit: 2 },
      },
    });
    expect(spec("build", "--payload", "null").request).toEqual({ kind: "build", payload: null });
    expect(spec("build", "--payload-file", "-")).toEqual({ request: { kind: "build" }, payloadFile: "-" });
  });

  it("of a command is of the kind exec, with all that stands behind --", () => {
    const request = { kind: "exec", payload: { command: ["make", "--quiet", "-j2", "--"] } };
    expect(spec("--", "make", "--quiet", "-j2", "--").request).toEqual(request);
    expect(spec("exec", "--", "make", "--quiet", "-j2", "--").request).toEqual(request);
    expect(spec("--env", "A=1", "--env", "B=", "--cwd", "src", "--", "make").request.payload).toEqual({
      command: ["make"],
      env: { A: "1", B: "" },
      cwd: "src",
    });
    expect(spec("exec", "--payload", '{"command":["make"]}').request.payload).toEqual({ command: ["make"] });
  });

  it("may begin at a time with its zone, or in so long", () => {
    const at = (when: string): number => spec("build", "--not-before", when).request.notBeforeMs ?? Number.NaN;
    expect(at("2030-02-28T15:00Z")).toBe(Date.UTC(2030, 1, 28, 15));
    expect(at("2030-02-28T15:00:30.5+02:00")).toBe(Date.UTC(2030, 1, 28, 13, 0, 30, 500));
    expect(at("2d")).toBe(NOW_MS + 2 * 86_400_000);
    const taken = "--not-before takes a time such as 2030-01-31T15:00:00Z, or a duration such as 10m, not";
    for (const text of [
      "",
      "soon",
      "2030-01-31",
      "2030-01-31T15:00:00",
      "2030-02-30T15:00:00Z",
      "2030-13-01T15:00:00Z",
      "-10m",
    ]) {
      expect(wrong("build", `--not-before=${text}`)).toBe(`${taken} ${JSON.stringify(text)}`);
    }
    expect(wrong("build", "--not-before", "10x")).toBe(`--not-before ${DURATION}, not "10x"`);
    expect(wrong("build", "--not-before", "366d")).toBe("--not-before takes at most 365d, not 366d");
  });

  it.each<[readonly string[], string]>([
    [[], `submit needs a kind: tenure job submit KIND, or a command: ${COMMAND}`],
    [["build", "make"], "submit takes one kind, not 2; a command stands behind --"],
    [
      ["a b"],
      `submit takes a name of letters, digits, '.', '_', ':' and -, at most 128, beginning with a letter or digit, not "a b"`,
    ],
    [["exec"], "the kind exec needs a command: tenure job submit exec -- COMMAND ARG…"],
    [["build", "--", "make"], 'a command behind -- is of the kind exec, not of "build"; its payload is --payload'],
    [["--"], "there is no command behind --"],
    [["--payload", "1", "--", "make"], "the command behind -- is the payload of exec: leave out --payload"],
    [["--payload-file", "f", "--", "make"], "the command behind -- is the payload of exec: leave out --payload-file"],
    [["build", "--payload", "1", "--payload-file", "f"], "give --payload or --payload-file, not both"],
    [["build", "--env", "A=1"], `--env belongs to a command: ${COMMAND}`],
    [["build", "--cwd", "/"], `--cwd belongs to a command: ${COMMAND}`],
    [["--cwd", "", "--", "make"], "--cwd must not be empty"],
    [["--env", "A", "--", "make"], '--env takes NAME=VALUE, not "A"'],
    [["build", "--label", "=a"], '--label takes NAME=VALUE, not "=a"'],
    [["build", "--label", "a=1", "--label", "a=2"], "--label a is given twice"],
    [["build", "--priority", "high"], '--priority takes a whole number from -1000000 to 1000000, not "high"'],
    [["build", "--attempts", "0"], '--attempts takes a whole number from 1 to 1000, not "0"'],
    [["build", "--losses", "1.5"], '--losses takes a whole number from 1 to 1000, not "1.5"'],
    [["build", "--backoff", "1s"], '--backoff takes the first pause and the longest, such as 1s,5m, not "1s"'],
    [["build", "--backoff", "1s,"], `--backoff ${DURATION}, not ""`],
    [["build", "--backoff", "2m,1m"], "--backoff: the first pause, 2m, is above the longest, 1m"],
    [["build", "--backoff", "1s,25h"], "--backoff takes at most 24h, not 25h"],
    [["build", "--timeout", "5"], `--timeout ${DURATION}, not "5"`],
    [["build", "--timeout", "0s"], "--timeout takes at least 1ms, not 0s"],
    [["build", "--timeout", "31d"], "--timeout takes at most 30d, not 31d"],
    [["build", "--retention", "401d"], "--retention takes at most 400d, not 401d"],
    [["build", "--concurrency", "deploy"], '--concurrency takes KEY=LIMIT, such as deploy=1, not "deploy"'],
    [["build", "--concurrency", "a=0"], '--concurrency: the limit takes a whole number from 1 to 100000, not "0"'],
    [["build", "--lable", "a=1"], "there is no --lable; did you mean --label?"],
  ])("%j is refused", (args, message) => {
    expect(wrong(...args)).toBe(message);
  });

  it("says what is no JSON, in one line and not all of it", () => {
    const message = wrong("build", "--payload", "{a:\n1}");
    expect(message).toMatch(/^--payload must be JSON, such as \{"a": 1\} or "text", not "\{a:\\n1\}" \(.+\)$/);
    expect(message).not.toContain("\n");
    expect(wrong("build", "--payload", "x".repeat(500)).length).toBeLessThan(250);
  });
});
