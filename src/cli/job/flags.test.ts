import { describe, expect, it } from "vitest";
import { JOB_ID } from "../../contract/names.ts";
import { ROUTES } from "../../contract/index.ts";
import { JOB_STATES } from "../../core/jobs/model.ts";
import { UsageError } from "../kit/flags.ts";
import { JOB } from "./help.ts";
import { type JobStep, readJobFlags } from "./flags.ts";

function step(...args: readonly string[]): JobStep {
  const flags = readJobFlags(args, 0);
  if (flags === "help") throw new Error("help");
  return flags.step;
}

function wrong(...args: readonly string[]): string {
  try {
    step(...args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
}

describe("tenure job", () => {
  it("knows the states and ids that the servers know", () => {
    const takesState = (state: string): boolean => ROUTES.jobs.query.check({ state }).ok;
    expect(takesState(JOB_STATES.join(","))).toBe(true);
    const takesId = (id: string): boolean => ROUTES.job.params.check({ id }).ok;
    const ids = ["a", "A_-9", "a".repeat(64), "a".repeat(65), "", "a b", "a/b", "ä", "."];
    expect(ids.map((id) => JOB_ID.test(id))).toEqual(ids.map(takesId));
  });

  it("keeps the connection apart from the step", () => {
    expect(readJobFlags(["show", "j1", "--url", "http://a", "-o", "json"], 0)).toEqual({
      step: { verb: "show", id: "j1" },
      connection: { url: "http://a", output: "json" },
    });
    expect(readJobFlags(["--help"], 0)).toBe("help");
    expect(JOB.help).toContain("\n  -o table|json|jsonl ");
  });

  it("reads each verb", () => {
    const submit = { verb: "submit", payloadFile: null, idempotencyKey: undefined, detach: false };
    expect(step("submit", "build")).toEqual({ ...submit, request: { kind: "build" } });
    for (const words of [
      ["--kind", "build"],
      ["build", "--kind=build"],
    ])
      expect(step("submit", ...words)).toEqual({ ...submit, request: { kind: "build" } });
    expect(step("submit", "--kind", "exec", "--", "true")).toMatchObject({
      request: { payload: { command: ["true"] } },
    });
    expect(step("submit", "--idempotency-key", "k", "--detach", "--", "show", "-o")).toEqual({
      ...submit,
      request: { kind: "exec", payload: { command: ["show", "-o"] } },
      idempotencyKey: "k",
      detach: true,
    });
    expect(step("list")).toEqual({ verb: "list", query: {}, limit: 50 });
    const some = "list --state pending,failed --kind k --queue q --agent a --search words --limit 7";
    expect(step(...some.split(" "))).toEqual({
      verb: "list",
      query: { states: ["pending", "failed"], kind: "k", queue: "q", agent: "a", search: "words" },
      limit: 7,
    });
    expect(step("logs", "j1")).toEqual({ verb: "logs", id: "j1", attempt: undefined, follow: false });
    expect(step("logs", "j1", "--attempt", "2", "--follow")).toEqual({
      verb: "logs",
      id: "j1",
      attempt: 2,
      follow: true,
    });
    expect(step("cancel", "j1", "j2", "j1")).toEqual({ verb: "cancel", ids: ["j1", "j2"] });
    expect(step("retry", "--", "-j1")).toEqual({ verb: "retry", ids: ["-j1"] });
    expect(step("wait", "j1")).toEqual({ verb: "wait", ids: ["j1"], timeoutMs: null });
    expect(step("wait", "j1", "--timeout", "2s")).toEqual({ verb: "wait", ids: ["j1"], timeoutMs: 2_000 });
  });

  it.each<[readonly string[], string | RegExp]>([
    [[], "say what to do: submit, list, show, logs, cancel, retry, wait"],
    [["sumbit"], 'there is no "sumbit"; did you mean submit?'],
    [["frobnicate"], 'there is no "frobnicate"; give submit, list, show, logs, cancel, retry, wait'],
    [["list", "j1"], 'list takes no "j1"; to look at one job: show ID'],
    [["list", "--state", "complete"], 'there is no state "complete"; did you mean completed?'],
    [["list", "--state", "done"], `there is no state "done"; give ${JOB_STATES.join(", ")}`],
    [["list", "--limit", "0"], '--limit takes a whole number from 1 to 100000, not "0"'],
    [["list", "--search", " "], "--search takes words, and there are none"],
    [["list", "--detach"], "--detach belongs to submit, not to list"],
    [["show", "j1", "--queue", "q"], "--queue belongs to submit and list, not to show"],
    [["cancel", "j1", "--timeout", "1s"], "--timeout belongs to submit and wait, not to cancel"],
    [["show"], "show needs the id of a job: tenure job show ID"],
    [["show", "a", "b"], "show takes one id, not 2"],
    [["logs", "a b"], `logs takes ids of jobs, which have letters, digits, '_' and -, not "a b"`],
    [["logs", "a", "--attempt", "0"], '--attempt takes a whole number from 1 to 1000000, not "0"'],
    [["logs", "a", "--folow"], "there is no --folow; did you mean --follow?"],
    [["cancel"], "cancel needs the id of a job: tenure job cancel ID…"],
    [["retry", ""], `retry takes ids of jobs, which have letters, digits, '_' and -, not ""`],
    [["wait", "a", "--timeout", "25h"], "--timeout takes at most 24h, not 25h"],
    [["wait", ...Array.from({ length: 1_001 }, (_, at) => `j${at}`)], "wait takes at most 1000 ids, not 1001"],
    [["submit", "build", "--idempotency-key", ""], "--idempotency-key must not be empty"],
    [["submit", "build", "--kind", "test"], 'the kind is "build", and "test" by --kind; give one of them'],
    [["submit", "--kind", "a b"], /^--kind takes a name of letters/],
    [
      ["submit", "--kind", "build", "--", "true"],
      'a command behind -- is of the kind exec, not of "build"; its payload is --payload',
    ],
    [["show", "j1", "--kind", "k"], "--kind belongs to submit and list, not to show"],
    [["submit", "build", "--follow"], "--follow belongs to logs, not to submit"],
  ])("%j is refused", (args, message) => {
    expect(wrong(...args)).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
  });
});
