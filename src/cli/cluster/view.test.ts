import { describe, expect, it } from "vitest";
import { bytesText, electionsNote, electionsOf, electionsTable, statusObject, statusOf, statusText } from "./view.ts";
import { answers, memberOf, viewOf } from "./test-cluster.ts";

describe("tenure cluster status", () => {
  it("shows the leader's view: every member, its lag and when it was last heard", () => {
    const text = statusText(statusOf(answers(viewOf("n1"), viewOf("n2"), viewOf("n3"))));
    expect(text).toBe(`cluster   c-1
leader    n1, term 7
commit    40
voters    3: 1 may fail
snapshot  none yet

NODE  DISK ID   KIND   ROLE      HEALTH  LAG  CONTACT   FREE     ADDRESS
n1    1abcdef0  voter  leader    ok      -    -         5.0 GiB  127.0.0.1:7201
n2    2abcdef0  voter  follower  ok      0    12ms ago  5.0 GiB  127.0.0.1:7202
n3    3abcdef0  voter  follower  ok      0    12ms ago  5.0 GiB  127.0.0.1:7203
`);
  });

  it("of a site on Postgres counts nodes, of which one is enough, and no voters", () => {
    const url = "http://127.0.0.1:7102";
    const members = [memberOf("n1", { kind: "node", address: null }), memberOf("n2", { kind: "node", address: null })];
    const site = (id: string, changes = {}) => viewOf(id, { backend: "postgres", members, ...changes });
    const status = statusOf(answers(site("n1"), "connection refused"));
    expect(statusText(status)).toMatch(
      /^site {4}c-1, on Postgres\nleader {2}n1, epoch 7\ncommit {2}40\nnodes {3}2: one is enough, as long as the database answers it\n\nNODE {2}PROCESS /,
    );
    expect(statusText(status)).toMatch(new RegExp(`^n2 .* node .* ${url}$`, "m"));
    expect(statusObject(status)).toMatchObject({ backend: "postgres", voters: 0, working: 2 });
    const idle = statusOf(answers(site("n1", { leader: null, role: "STANDBY" })));
    expect(statusText(idle)).toMatch(/^leader {2}nobody: look at the database /m);
    for (const text of [statusText(status), statusText(idle)])
      expect(text).not.toMatch(/voter|snapshot|needed|may fail/);
  });

  it("says which node is down, by the leader's word and by its own silence", () => {
    const silent = memberOf("n3", {
      progress: { match: 3, next: 4, lag: 37, state: "probe", lastContactMs: 61_000, healthy: false },
    });
    const leader = viewOf("n1", { members: [memberOf("n1"), memberOf("n2"), silent] });
    const status = statusOf(answers(leader, viewOf("n2"), "connection refused"));
    expect(statusText(status)).toMatch(/^n3 .* unresponsive +37 probe +1m01s ago +- /m);
    expect(statusText(status)).toContain("\nn3 does not answer at http://127.0.0.1:7103: connection refused\n");
    expect(statusObject(status)).toMatchObject({ leader: "n1", voters: 3, working: 2 });
    expect(statusText(status)).toContain("\nvoters    3, 2 work: none may fail\n");
  });

  it("works without a leader, and says how many voters it takes", () => {
    const lonely = viewOf("n2", {
      leader: null,
      members: ["n1", "n2", "n3"].map((id) => memberOf(id, { progress: null, isLeader: false })),
    });
    const status = statusOf(answers("connection refused", lonely, "no answer in time"));
    expect(status.leader).toBeNull();
    expect(statusText(status)).toContain("leader    nobody (1 of 3 voters work, 2 are needed)\n");
    expect(statusText(status)).toContain("voters    3, 1 works: nothing can be written until 2 do\n");
    expect(status.rows.map(({ health }) => health)).toEqual(["down", "ok", "down"]);
  });

  it("does not take voters for dead that nobody could be asked about while somebody leads", () => {
    const status = statusOf([{ url: "http://127.0.0.1:7102", view: viewOf("n2"), why: null, code: null }]);
    expect(statusText(status)).toContain("voters    3, 1 known to work\n");
  });

  it("does not believe in a leader that says itself that it is none", () => {
    const status = statusOf(answers(viewOf("n1", { role: "STANDBY", leader: null }), viewOf("n2", { term: 8 })));
    expect(status.leader).toBeNull();
  });

  it("prefers the leader of the highest term", () => {
    const old = viewOf("n1", { term: 6 });
    const now = viewOf("n2", { role: "LEADER", term: 9, leader: { nodeId: "n2", address: null, url: null } });
    expect(statusOf(answers(old, now))).toMatchObject({ leader: "n2", view: { term: 9 } });
  });

  it("says what is wrong where no node answers", () => {
    expect(statusText(statusOf(answers("connection refused")))).toBe(
      "no server answers:\n  http://127.0.0.1:7101: connection refused\n",
    );
  });

  it("a wiped disk that came back under its old id is not the member that was lost", () => {
    const wiped = viewOf("n2", { incarnation: "ffff" });
    expect(statusOf(answers(viewOf("n1"), wiped, viewOf("n3"))).rows[1]).toMatchObject({ own: null });
  });

  it("names a node once that does not answer and is a member twice, with its lost disk and with its new one", () => {
    const twice = [
      memberOf("n1"),
      memberOf("n2"),
      memberOf("n3"),
      memberOf("n3", { incarnation: "ffff", kind: "learner" }),
    ];
    const text = statusText(statusOf(answers(viewOf("n1", { members: twice }), viewOf("n2"), "connection refused")));
    expect(text.match(/^n3 does not answer at /gm)).toHaveLength(1);
  });

  it("tells of a node that answers and was removed", () => {
    const two = [memberOf("n1"), memberOf("n2")];
    const reason = "was removed from the cluster: stop it";
    const removed = viewOf("n3", { members: two, isReady: false, notReadyReason: reason });
    const status = statusOf(answers(viewOf("n1", { members: two }), viewOf("n2", { members: two }), removed));
    expect(status.rows.map(({ member }) => member.nodeId)).toEqual(["n1", "n2"]);
    expect(statusText(status)).toContain("\nn3 answers and is no member: it was removed from the cluster: stop it\n");
    expect(statusObject(status).strangers).toMatchObject([{ node_id: "n3", is_ready: false, reason }]);
    const whole = statusOf(answers(viewOf("n1"), viewOf("n2"), viewOf("n3")));
    expect(statusText(whole)).not.toContain("no member");
    expect(statusObject(whole).strangers).toEqual([]);
  });

  it("puts the alerts of all nodes together, critical ones first, each once", () => {
    const alert = {
      name: "follower_unresponsive",
      severity: "warning",
      message: "n3 is silent",
      sinceWallMs: 2_000,
      nodeId: "n3",
    } as const;
    const full = {
      name: "disk_full",
      severity: "critical",
      message: "3 MiB\u001B[2J left",
      sinceWallMs: 9_000,
      nodeId: "n2",
    } as const;
    const status = statusOf(
      answers(viewOf("n1", { alerts: [alert] }), viewOf("n2", { alerts: [full, { ...alert, sinceWallMs: 3_000 }] })),
    );
    expect(status.alerts.map(({ name }) => name)).toEqual(["disk_full", "follower_unresponsive"]);
    expect(statusText(status)).toContain(
      "\ncritical  1970-01-01T00:00:09.000Z  disk_full              n2: 3 MiB?[2J left\n",
    );
    expect(statusText(status), "who says so, since when the first did").toContain(
      "\nwarning   1970-01-01T00:00:02.000Z  follower_unresponsive  n1, n2: n3 is silent\n",
    );
    expect(statusObject(status).alerts[1]).toMatchObject({ node_id: "n3", raised_by: ["n1", "n2"] });
    expect(statusText(status)).not.toContain("\u001B");
  });

  it("says when versions differ, a node is not ready, or tells no URL", () => {
    const mixed = [
      viewOf("n1"),
      viewOf("n2", { version: "0.2.0" }),
      viewOf("n3", { isReady: false, notReadyReason: "it is 812 entries behind" }),
    ];
    const text = statusText(statusOf(answers(...mixed)));
    expect(text).toContain("versions differ: n1 0.1.0, n2 0.2.0, n3 0.1.0\n");
    expect(text).toContain("n3 is not ready: it is 812 entries behind\n");
    const hidden = viewOf("n1", { members: [memberOf("n1"), memberOf("n2", { url: null })] });
    expect(statusText(statusOf(answers(hidden)))).toContain("n2 tells no URL, and was not asked");
  });
});

describe("tenure cluster elections", () => {
  it("says why there are none on Postgres, and where to look instead", () => {
    expect(electionsNote(answers(viewOf("n1", { backend: "postgres" })))).toContain("tenure scope history");
    expect(electionsNote(answers(viewOf("n1"), "down"))).toBeNull();
  });

  const election = {
    term: 7,
    stage: "vote",
    reason: "leader-gone",
    candidate: "n1@1a",
    candidates: ["n1@1a"],
    votes: [
      { voter: "n1@1a", granted: true },
      { voter: "n2@2a", granted: true },
      { voter: "n3@3a", granted: false },
    ],
    startedAtMs: 5,
    durationMs: 8.4,
    result: "won",
  } as const;

  it("merges what the nodes remember, newest first", () => {
    const older = { ...election, term: 6, candidate: "n2@2a", result: "lost" } as const;
    const found = electionsOf(
      answers(viewOf("n1", { elections: [election] }), viewOf("n2", { elections: [older, election] }), "down"),
    );
    expect(found.map(({ term }) => term)).toEqual([7, 6]);
    expect(electionsTable(found)).toContain(
      "1970-01-01T00:00:00.005Z  7     vote   n1@1a      leader-gone  won     8ms   n1 yes, n2 yes, n3 no\n",
    );
  });
});

it("sizes are short and never in the wrong unit", () => {
  expect([0, 1023, 1024, 1536, 150 * 1024 ** 2, 2.5 * 1024 ** 4].map(bytesText)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "150 MiB",
    "2.5 TiB",
  ]);
});
