import { describe, expect, it } from "vitest";
import { statusOf } from "../cluster/view.ts";
import { changesBetween, type DevModel, EMPTY_STATUS, lastWords, plainText, screenText } from "./view.ts";
import { answers, memberOf, viewOf } from "../cluster/test-cluster.ts";

const election = {
  term: 7,
  stage: "vote",
  reason: "leader-gone",
  candidate: "n1@1abcdef0123456",
  candidates: [],
  votes: [
    { voter: "n1@1a", granted: true },
    { voter: "n2@2a", granted: true },
  ],
  startedAtMs: 0,
  durationMs: 6.2,
  result: "won",
} as const;

const status = statusOf(answers(viewOf("n1"), viewOf("n2"), "connection refused"));
const model: DevModel = {
  uptimeMs: 65_000,
  nodes: [
    { id: "n1", pid: 101, state: "running", restartInMs: null },
    { id: "n2", pid: 102, state: "running", restartInMs: null },
    { id: "n3", pid: null, state: "dead", restartInMs: 1_900 },
  ],
  status,
  election,
  jobsPerSecond: 9.7,
  accepted: 1_234,
  failoverMs: 97,
  page: "http://127.0.0.1:17401/#key=k",
  access: "export TENURE_URL=http://127.0.0.1:17401 TENURE_API_KEY=k",
  happened: ["   1.000 s  n1 leads term 7"],
  directory: "/somewhere",
};

const SIZE = { rows: 50, columns: 200 };

describe("the screen of npm start", () => {
  it("fits into 80 × 24 with all that matters, and shows of what has happened as much as there is room for", () => {
    const access = `export TENURE_URL=${["17401", "17402", "17403"].map((port) => `http://127.0.0.1:${port}`).join(",")} TENURE_API_KEY=${"k".repeat(32)}`;
    const page = `http://127.0.0.1:17401/#key=${"k".repeat(32)}`;
    const happened = Array.from({ length: 30 }, (_, at) => `${at} ${"happened ".repeat(20)}`);
    const text = screenText(
      { ...model, access, page, happened, directory: "/tmp/tenure-dev-a1b2c3" },
      { rows: 24, columns: 80 },
    );
    const lines = text.trimEnd().split("\n");
    expect(lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 80)), 0)).toBeLessThan(24);
    expect(text).toContain(access);
    expect(lines.at(-1)).toMatch(/^29 happened .{68}$/);
  });

  it("shows who leads, the last election with its votes, commits per second, uptime, and how to kill the leader", () => {
    expect(screenText(model, SIZE)).toBe(`Tenure: three nodes on this machine, in /somewhere

leader    n1 leads, epoch 7
elected   term 7 in 6ms (leader-gone): n1 yes, n2 yes
jobs      10 jobs/s, 1234 accepted
failover  no job was accepted for 97ms, the last time
page      http://127.0.0.1:17401/#key=k
uptime    1m05s
in another terminal:
export TENURE_URL=http://127.0.0.1:17401 TENURE_API_KEY=k

NODE  PID  STATE               ROLE      COMMIT  LAG
n1    101  running             LEADER    40      -
n2    102  running             follower  40      0
n3    -    dead, back in 1.9s  -         -       0

kill -9 101 kills the leader: jobs go on within 0.2 s or so, it is back after 3 s
k kill the leader · p pause it or let it go on · d drain it · t transfer · q quit

   1.000 s  n1 leads term 7
`);
  });

  it("shows that nobody leads", () => {
    const text = screenText({ ...model, status: EMPTY_STATUS, election: null, jobsPerSecond: null }, SIZE);
    expect(text).toContain("leader    nobody\n");
    expect(text).toContain("nobody leads at this moment");
  });

  it("is one line elsewhere, with the process to kill", () => {
    expect(plainText(model)).toBe("n1 leads, epoch 7 (pid 101), 10 jobs/s, 1234 accepted");
  });
});

describe("what happened between two looks", () => {
  it("a new leader, with its votes", () => {
    expect(changesBetween(EMPTY_STATUS, status, election)).toEqual([
      "n1 leads, epoch 7, elected in 6ms: n1 yes, n2 yes",
    ]);
    expect(changesBetween(status, status, election)).toEqual([]);
  });

  it("the same node in another term is news; votes of another election are not shown with it", () => {
    const later = statusOf(answers(viewOf("n1", { term: 9 })));
    expect(changesBetween(status, later, election)).toEqual(["n1 leads, epoch 9"]);
  });

  it("a learner that became a voter, and a node that came in", () => {
    const learning = statusOf(
      answers(viewOf("n1", { members: [memberOf("n1"), memberOf("n2", { kind: "learner" })] })),
    );
    expect(changesBetween(learning, status, null)).toEqual(["n2 is a voter", "n3 is a voter"]);
  });
});

describe("the last words of a server", () => {
  const crash = `{"level":"info","node":"n1","msg":"starts"}
node:internal/modules/run_main:107
    triggerUncaughtException(
    ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'fastify' imported from /src/api/server.ts
    at packageResolve (node:internal/modules/esm/resolve:768:9) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v26.10.0
`;

  it("are the line that names the error, not the last one, which is Node's version", () => {
    expect(lastWords(crash)).toBe(
      "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'fastify' imported from /src/api/server.ts",
    );
    expect(lastWords("x\ntenure: 127.0.0.1:7400 is in use.\n")).toBe("tenure: 127.0.0.1:7400 is in use.");
  });

  it("are the last line that says anything where none names an error", () => {
    expect(lastWords('{"msg":"one"}\nKilled\n\nNode.js v26.10.0\n')).toBe("Killed");
    expect(lastWords('{"msg":"one"}\n{"msg":"two"}\n')).toBe('{"msg":"two"}');
    expect(lastWords("\n")).toBeNull();
  });
});
