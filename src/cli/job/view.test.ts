import { describe, expect, it } from "vitest";
import { jobObject, steeredObject, waitedObject } from "./object.ts";
import { jobsTable, jobText, outcomeText, pendingText, progressText, terminalText } from "./view.ts";
import { briefOf, jobOf, NOW_MS } from "./test-job.ts";

const ESCAPE = "\u001B";

describe("a list of jobs", () => {
  it("says of each how old it is and why it is where it is", () => {
    const progress = { share: 0.257, message: "fetched", atMs: 0 };
    const table = jobsTable(
      [
        briefOf({ id: "j6" }),
        briefOf({ id: "j5", failures: 1, readyAtMs: NOW_MS + 1, errorMessage: "no\nroom" }),
        briefOf({ id: "j4", state: "building", failures: 1, losses: 1, agent: "w1", progress }),
        briefOf({ id: "j3", state: "completed", agent: "w1", progress }),
        briefOf({ id: "j2", state: "failed", failures: 3, agent: "w1", errorMessage: "x".repeat(81) }),
        briefOf({ id: "j1", state: "cancelled", queue: "q" }),
      ],
      NOW_MS,
    );
    expect(table.split("\n")).toEqual([
      "ID  KIND   STATE      QUEUE    ATTEMPT  AGE    WHY",
      "j6  build  pending    default  0        1m00s  -",
      "j5  build  pending    default  1        1m00s  not before 2030-01-01T00:01:00.001Z; no room",
      "j4  build  building   default  3        1m00s  at w1, 25% fetched",
      "j3  build  completed  default  1        1m00s  -",
      `j2  build  failed     default  3        1m00s  ${"x".repeat(80)}…`,
      "j1  build  cancelled  q        0        1m00s  -",
      "",
    ]);
  });

  it("says of one that waits whether its queue is paused, where that is known", () => {
    const jobs = [
      briefOf({ queue: "mail" }),
      briefOf({ queue: "mail", readyAtMs: NOW_MS + 1, failures: 1, errorMessage: "no room" }),
      briefOf(),
      briefOf({ queue: "mail", state: "building" }),
    ];
    const why = (paused: ReadonlySet<string> | null) =>
      jobsTable(jobs, NOW_MS, undefined, { paused, reasons: new Map() })
        .trimEnd()
        .split("\n")
        .slice(1)
        .map((line) => line.split(/ {2,}/).slice(6).join(""));
    expect(why(new Set(["mail"]))).toEqual([
      "queue paused",
      "queue paused, not before 2030-01-01T00:01:00.001Z; no room",
      "ready",
      "-",
    ]);
    expect(why(null)).toEqual(["-", "not before 2030-01-01T00:01:00.001Z; no room", "-", "-"]);
  });

  it("lets nobody steer the terminal", () => {
    const evil = `a${ESCAPE}[2Jb`;
    const table = jobsTable([briefOf({ kind: evil, queue: evil, state: "failed", errorMessage: evil })], NOW_MS);
    expect(table).not.toContain(ESCAPE);
    expect(table.match(/a\?\[2Jb/g)).toHaveLength(3);
  });
});

describe("one job", () => {
  it("has everything that is known of it, in lines", () => {
    expect(jobText(jobOf()).split("\n")).toEqual([
      "id            j1",
      "kind          build",
      "state         building",
      "why pending   the queue default is paused",
      "agent         w2, lease of 15.0s",
      "progress      50% fetched, at 2030-01-01T00:00:08.000Z",
      "error         no such repository",
      'error detail  {"status":404}',
      'result        {"bytes":9}',
      "submitted     2030-01-01T00:00:00.000Z by ci, event 12",
      "ready         2030-01-01T00:00:05.000Z",
      "epoch         2",
      "failures      1 of 3",
      "losses        0 of 10",
      "queue         default",
      "priority      5",
      "labels        zone=a",
      "platform      linux",
      "not before    2030-01-01T00:00:00.000Z",
      "backoff       1.0s to 5m00s",
      "timeout       1m00s",
      "retention     7d0h",
      "concurrency   deploy, at most 1",
      'payload       {"repository":"a/b"}',
      "",
      "ATTEMPT  EPOCH  LEADER EPOCH  AGENT  ASSIGNED                  STARTED                   ENDED                     END",
      "1        1      7             w1     2030-01-01T00:00:01.000Z  2030-01-01T00:00:02.000Z  2030-01-01T00:00:04.000Z  failed",
      "2        2      7             w2     2030-01-01T00:00:06.000Z  -                         -                         -",
      "",
      "AT                        WHAT       ATTEMPT  AGENT  END",
      "2030-01-01T00:00:00.000Z  submitted  -        -      -",
      "2030-01-01T00:00:04.000Z  ended      1        w1     failed",
      "",
    ]);
  });

  it("lets nobody steer the terminal", () => {
    const evil = `${ESCAPE}[2J`;
    const { spec } = jobOf();
    const job = jobOf({
      spec: { ...spec, payload: evil, labels: { [evil]: evil }, queue: evil },
      result: evil,
      error: { message: evil, detail: evil },
      submittedBy: evil,
      progress: { share: null, message: evil, atMs: 0 },
    });
    expect(jobText(job)).not.toContain(ESCAPE);
    for (const state of ["completed", "failed"] as const) expect(outcomeText({ ...job, state })).not.toContain(ESCAPE);
  });

  it("ended in one line", () => {
    const finishedAtMs = jobOf().submittedAtMs + 90_000;
    expect(outcomeText(jobOf({ state: "completed", finishedAtMs }))).toBe('completed after 1m30s, result {"bytes":9}');
    expect(outcomeText(jobOf({ state: "completed", finishedAtMs, result: null }))).toBe("completed after 1m30s");
    expect(outcomeText(jobOf({ state: "failed", finishedAtMs }))).toBe("failed after 1m30s: no such repository");
    expect(outcomeText(jobOf({ state: "failed", finishedAtMs, error: null }))).toBe(
      "failed after 1m30s: nobody said why",
    );
    expect(outcomeText(jobOf({ state: "cancelled", finishedAtMs }))).toBe("cancelled after 1m30s");
  });

  it.each([
    [{ reason: "paused", queue: "q" }, "the queue q is paused"],
    [{ reason: "not-before", readyAtMs: NOW_MS }, "it may not run before 2030-01-01T00:01:00.000Z"],
    [{ reason: "concurrency", key: "k", limit: 2 }, "2 with the concurrency key k run already"],
    [{ reason: "no-agent", kind: "k", missing: "m" }, "no agent takes it (m); its kind is k"],
    [{ reason: "no-agent", kind: "k", missing: "any agent" }, "no agent is online; its kind is k"],
    [{ reason: "agents-busy", agents: 1 }, "the one agent that could take it is busy"],
    [{ reason: "agents-busy", agents: 2 }, "all 2 agents that could take it are busy"],
    [{ reason: "draining" }, "the servers are draining: nothing is given out"],
    [{ reason: "next" }, "it is next"],
  ] as const)("waits: %j", (reason, text) => {
    expect(pendingText(reason)).toBe(text);
  });
});

it("progress is a share, a message, both or nothing", () => {
  expect(progressText(null)).toBe("");
  expect(progressText({ share: null, message: null })).toBe("");
  expect(progressText({ share: 1, message: null })).toBe("100%");
  expect(progressText({ share: null, message: "half\ndone" })).toBe("half done");
});

it("a log keeps its lines and colours at a terminal, and can't move the cursor", () => {
  const colour = `${ESCAPE}[1;31mred${ESCAPE}[0m\r\n\tnext`;
  expect(terminalText(colour)).toBe(colour);
  expect(terminalText(`${ESCAPE}[2J${ESCAPE}]0;title\u0007\u202Eback`)).toBe("?[2J?]0;title??back");
});

describe("for programs", () => {
  it("each reason to wait has the same fields, with null for what it does not have", () => {
    const reason = jobObject(jobOf({ pendingReason: { reason: "not-before", readyAtMs: NOW_MS } })).pending_reason;
    expect(reason).toEqual({
      reason: "not-before",
      text: "it may not run before 2030-01-01T00:01:00.000Z",
      ready_at: "2030-01-01T00:01:00.000Z",
      queue: null,
      key: null,
      limit: null,
      kind: null,
      missing: null,
      agents: null,
    });
    const busy = jobObject(jobOf({ pendingReason: { reason: "agents-busy", agents: 3 } })).pending_reason;
    expect(busy).toMatchObject({ reason: "agents-busy", agents: 3, ready_at: null });
  });

  it("what was refused has no state, and says why", () => {
    const refusal = { code: "NOT_FOUND", message: "no" } as const;
    expect(steeredObject("j9", null, refusal)).toEqual({ id: "j9", state: null, refusal });
    expect(waitedObject("j9", null, refusal)).toEqual({
      id: "j9",
      state: null,
      refusal,
      finished_at: null,
      result: null,
      error: null,
    });
  });
});
