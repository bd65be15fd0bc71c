import { describe, expect, it } from "vitest";
import { JOB_VARIABLES } from "../core/kit/job-variables.ts";
import type { StartedProcess } from "../ports/processes/processes.ts";
import { ExecJobs, jobEnvironment } from "./exec.ts";
import { LastLine } from "./last-line.ts";
import { LogBuffer } from "./log-buffer.ts";
import { JobAborted, outcomeOfThrow } from "./outcome.ts";
import { TestDesk } from "./test-desk.ts";

describe("the environment of a command", () => {
  it("has nothing that is Tenure's: no key, no URL, no channel", () => {
    const environment = {
      PATH: "/bin",
      TENURE_API_KEY: "secret",
      TENURE_URL: "http://a",
      TENURE_JOB_ID: "of an outer job",
      NODE_CHANNEL_FD: "3",
      GONE: undefined,
    };
    expect(jobEnvironment(environment)).toEqual({ PATH: "/bin" });
  });
});

it("variables by which Tenure knows its processes are not a submitter's to set, also where an older server took them", async () => {
  const desk = new TestDesk();
  let given: Readonly<Record<string, string>> = {};
  const jobs = new ExecJobs({
    clock: desk.clock,
    processes: {
      start: ({ environment }) => {
        given = environment;
        return Promise.resolve({ kind: "refused", message: "enough was seen" });
      },
    },
    logger: { info() {}, warn() {}, error() {} },
    graceMs: 0,
    environment: { PATH: "/bin" },
    cookies: { TENURE_AGENT_PROCESS: "ours" },
    newCookie: () => "cookie",
  });
  await desk.start((job, context) => jobs.run(job, context));
  const theirs = Object.fromEntries(JOB_VARIABLES.map((name) => [name, "theirs"]));
  await desk.give({ payload: { command: ["true"], env: { ...theirs, STAGE: "test", TENURE_URL: "http://a" } } });
  const ours = { TENURE_JOB_ID: "job-1", TENURE_JOB_KIND: "work", TENURE_JOB_ATTEMPT: "1" };
  const rest = { PATH: "/bin", STAGE: "test", TENURE_URL: "http://a", TENURE_AGENT_PROCESS: "ours" };
  expect(given).toEqual({ ...rest, ...ours });
});

describe("the last line", () => {
  it.each([
    [[], ""],
    [["one\ntwo\n"], "two"],
    [["one\ntw", "o"], "two"],
    [["one\n", "\n  \n"], "one"],
    [["50 %\r100 %\r\n"], "100 %"],
    [["x".repeat(10_000)], "x".repeat(500)],
  ])("of %j", (texts, expected) => {
    const line = new LastLine();
    for (const text of texts) line.write(text);
    expect(line.text).toBe(expected);
  });
});

describe("whoever prints much", () => {
  it("waits until half of what waits was taken, and not for ever", async () => {
    const logs = new LogBuffer();
    let isFree = false;
    for (let written = 0; written < 10; written++) logs.write("x".repeat(60 * 1024));
    expect(logs.hasRoom).toBe(false);
    const room = logs.room().then(() => (isFree = true));
    logs.confirm(logs.take(1));
    await Promise.resolve();
    expect(isFree).toBe(false);
    while (!logs.hasRoom) logs.confirm(logs.take(64 * 1024));
    await room;
    for (let written = 0; written < 10; written++) logs.write("x".repeat(60 * 1024));
    const released = logs.room();
    logs.release();
    await released;
  });
});

it("who outlives SIGKILL is killed again until nobody is left, while the job itself has ended", async () => {
  const desk = new TestDesk();
  const told: string[] = [];
  const tell = (fields: object): void => void told.push((fields as { event: string }).event);
  const survivors = [2, 1, 0, 0];
  const started: StartedProcess = {
    kind: "started",
    pid: 2,
    ended: Promise.resolve({ code: 0, signal: null }),
    printed: Promise.resolve(),
    setReading: () => undefined,
    terminate: () => undefined,
    kill: () => Promise.resolve({ survivors: survivors.shift()!, killed: 0 }),
  };
  const jobs = new ExecJobs({
    clock: desk.clock,
    processes: { start: () => Promise.resolve(started) },
    logger: { info: tell, warn: tell, error: tell },
    graceMs: 1_000,
    environment: {},
    cookies: {},
    newCookie: () => "c",
  });
  await desk.start((job, context) => jobs.run(job, context));
  await desk.give({ payload: { command: ["true"] } });
  expect(desk.sent).toMatchObject([{ outcome: { kind: "completed" } }]);
  expect(told).toEqual(["job_begun", "job_survivors", "job_ended"]);
  await desk.clock.advance(60_000);
  expect(told.at(-1)).toBe("job_survivors_gone");
  expect(survivors).toEqual([0]);
});

it("a handler that stops by itself hands its job back", () => {
  expect(outcomeOfThrow(new JobAborted("stopping", "now"), null)).toEqual({ kind: "handed-back" });
});
