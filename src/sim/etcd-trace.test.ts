// The lines have etcd's shape and keep the rules of order that its specification rests on. That the specification
// itself accepts them is checked by hand with TLC: docs/etcd-trace.md.

import { beforeAll, describe, expect, test } from "vitest";
import { systemDigest } from "../drivers/system/digest.ts";
import { etcdTracer } from "./etcd-trace.ts";
import { runSeed, type RaftFault, type RunResult } from "./raft/index.ts";

interface Event {
  readonly name: string;
  readonly nid: string;
  readonly state: { readonly term: number; readonly vote: string; readonly commit: number };
  readonly role: string;
  readonly log: number;
  readonly conf: readonly [readonly string[], readonly string[]];
  readonly msg?: Readonly<Record<string, unknown>> & {
    readonly type: string;
    readonly term: number;
    readonly from: string;
    readonly to: string;
  };
  readonly prop?: Readonly<Record<string, unknown>>;
}

const NAMES = [
  "InitState",
  "BecomeCandidate",
  "BecomeFollower",
  "BecomeLeader",
  "Commit",
  "Replicate",
  "Ready",
  "SendAppendEntriesRequest",
  "ReceiveAppendEntriesRequest",
  "SendAppendEntriesResponse",
  "ReceiveAppendEntriesResponse",
  "SendRequestVoteRequest",
  "ReceiveRequestVoteRequest",
  "SendRequestVoteResponse",
  "ReceiveRequestVoteResponse",
];
const MESSAGE_OF: Readonly<Record<string, readonly string[]>> = {
  AppendEntriesRequest: ["MsgApp", "MsgHeartbeat", "MsgSnap"],
  AppendEntriesResponse: ["MsgAppResp", "MsgHeartbeatResp"],
  RequestVoteRequest: ["MsgVote"],
  RequestVoteResponse: ["MsgVoteResp"],
};
const ID = /^(0|[1-9]\d*)$/;

const SEED = 118;
const PLAN: readonly RaftFault[] = [
  { atMs: 100, kind: "lossy", rate: 0.1, forMs: 1_500 },
  { atMs: 100, kind: "duplicating", rate: 0.3, forMs: 1_500 },
  { atMs: 700, kind: "isolate-leader", forMs: 400 },
  { atMs: 1_500, kind: "crash-leader", restartAfterMs: 300, silent: true },
];

let result: RunResult;
let events: readonly Event[];
let texts: readonly string[];

async function record(): Promise<{ result: RunResult; texts: string[] }> {
  const lines: string[] = [];
  const trace = etcdTracer((line) => lines.push(line));
  const run = await runSeed({ seed: SEED, digest: systemDigest, limits: { plain: true }, plan: PLAN, trace });
  expect(lines).toEqual([]);
  trace.finish();
  return { result: run, texts: lines };
}

beforeAll(async () => {
  ({ result, texts } = await record());
  events = texts.map((text) => (JSON.parse(text) as { event: Event }).event);
});

/** The events of each node, in order, with what preceded them anywhere. */
function byNode(): Map<string, Event[]> {
  return Map.groupBy(events, (event) => event.nid);
}

describe("etcd's state trace", () => {
  test("the run itself was sound and eventful, and is told the same way twice", async () => {
    expect(result.violation).toBeNull();
    expect(result.elections).toBeGreaterThan(1);
    const seen = new Set(events.map((event) => event.name));
    expect(NAMES.filter((name) => !seen.has(name))).toEqual([]);
    expect((await record()).texts).toEqual(texts);
  });

  test("tracing changes nothing in the run", async () => {
    const untraced = await runSeed({ seed: SEED, digest: systemDigest, limits: { plain: true }, plan: PLAN });
    expect(untraced.hash).toBe(result.hash);
  });

  test("every line has the outer shape, and sorts by its timestamp as text (validate.sh does that)", () => {
    for (const [at, text] of texts.entries()) {
      expect(text).not.toContain("\n");
      expect(
        text.startsWith(`{"level":"debug","ts":${1_000_000_000 + at},"msg":"trace","tag":"trace","event":{"name":"`),
      ).toBe(true);
    }
  });

  test("every event has etcd's fields, in its order and of its types", () => {
    for (const event of events) {
      expect(NAMES).toContain(event.name);
      const fields = ["name", "nid", "state", "role", "log", "conf", "msg", "prop"].filter((field) => field in event);
      expect(Object.keys(event)).toEqual(fields);
      expect(fields.slice(0, 6)).toEqual(["name", "nid", "state", "role", "log", "conf"]);
      expect(Object.keys(event.state)).toEqual(["term", "vote", "commit"]);
      expect([event.nid, event.state.vote, ...event.conf[0], ...event.conf[1]].filter((id) => !ID.test(id))).toEqual(
        [],
      );
      expect(event.nid).not.toBe("0");
      expect([event.state.term, event.state.commit, event.log].every(Number.isSafeInteger)).toBe(true);
      expect(["StateFollower", "StateCandidate", "StateLeader"]).toContain(event.role);
      expect(event.state.commit).toBeLessThanOrEqual(event.log);
      expect("msg" in event).toBe(/^(Send|Receive)/.test(event.name));
    }
  });

  test("every message has etcd's fields, and a type that its event is for", () => {
    const order = [
      "type",
      "term",
      "from",
      "to",
      "entries",
      "logTerm",
      "index",
      "commit",
      "vote",
      "reject",
      "rejectHint",
    ];
    for (const { name, nid, msg } of events) {
      if (msg === undefined) continue;
      expect(Object.keys(msg)).toEqual(order);
      expect(MESSAGE_OF[name.replace(/^(Send|Receive)/, "")]).toContain(msg.type);
      expect(name.startsWith("Send") ? msg.from : msg.to).toBe(nid);
      expect(typeof msg["reject"]).toBe("boolean");
      for (const field of ["term", "entries", "logTerm", "index", "commit", "rejectHint"])
        expect(msg[field]).toBeTypeOf("number");
    }
  });

  test("what is received was sent before, as often, and its sender was Ready in between", () => {
    const pending = new Map<string, string[]>();
    const underWay = new Map<string, number>();
    for (const { name, nid, msg } of events) {
      const key = JSON.stringify(msg);
      if (name.startsWith("Send")) pending.set(nid, [...(pending.get(nid) ?? []), key]);
      if (name === "InitState") pending.delete(nid);
      if (name === "Ready") {
        for (const sent of pending.get(nid) ?? []) underWay.set(sent, (underWay.get(sent) ?? 0) + 1);
        pending.delete(nid);
      }
      if (!name.startsWith("Receive")) continue;
      const left = underWay.get(key) ?? 0;
      expect(left, `${name} ${key}`).toBeGreaterThan(0);
      underWay.set(key, left - 1);
    }
  });

  test("on each node terms never fall, the commit index only at a restart, and a term has one vote", () => {
    for (const own of byNode().values()) {
      const votes = new Map<number, string>();
      let before = own[0]!;
      for (const event of own) {
        expect(event.state.term).toBeGreaterThanOrEqual(before.state.term);
        if (event.name !== "InitState") expect(event.state.commit).toBeGreaterThanOrEqual(before.state.commit);
        const { term, vote } = event.state;
        if (vote !== "0") expect(votes.get(term) ?? vote).toBe(vote);
        if (vote !== "0") votes.set(term, vote);
        before = event;
      }
    }
  });

  test("a leader was a candidate of its term with a majority, and the only one; only leaders commit", () => {
    const leaders = new Map<number, string>();
    const votes = new Map<string, Set<string>>();
    const candidacies = new Set<string>();
    for (const { name, nid, state, role, msg } of events) {
      const candidacy = `${nid} in ${state.term}`;
      if (name === "BecomeCandidate") candidacies.add(candidacy);
      if (name === "ReceiveRequestVoteResponse" && msg?.term === state.term && msg["reject"] === false) {
        votes.set(candidacy, (votes.get(candidacy) ?? new Set()).add(msg.from));
      }
      if (name === "Replicate" || name === "Commit") expect(role).toBe("StateLeader");
      if (name !== "BecomeLeader") continue;
      expect(candidacies).toContain(candidacy);
      expect(votes.get(candidacy)?.size).toBeGreaterThanOrEqual(2);
      expect(leaders.get(state.term) ?? nid).toBe(nid);
      leaders.set(state.term, nid);
    }
    expect(leaders.size).toBeGreaterThan(1);
  });
});
