// When an operator hears of the transaction coordinators, and what to do.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { AlertBoard } from "./alert-board.ts";
import { coordinatorAlerts, type CoordinatorsSeen, judgeCoordinators } from "./coordinators.ts";
import { TC_NO_LEADER_AFTER_MS, TC_VOTER_MISSING_AFTER_MS } from "./limits.ts";

const B = "b@1" as PeerKey;
const WELL: CoordinatorsSeen = {
  leaderlessMs: null,
  waitsFor: [],
  silent: [],
  mismatched: [],
  shared: [],
  forgetful: [],
};

const names = (seen: Partial<CoordinatorsSeen>): readonly string[] =>
  coordinatorAlerts({ ...WELL, ...seen }).map(({ name }) => name);
const text = (seen: Partial<CoordinatorsSeen>): string => coordinatorAlerts({ ...WELL, ...seen })[0]!.message;

describe("alerts of coordinators", () => {
  test("none while all is well", () => {
    expect(names({})).toEqual([]);
  });

  test("nobody leads for longer than an election takes; and where seeds are waited for, they are named", () => {
    expect(names({ leaderlessMs: TC_NO_LEADER_AFTER_MS })).toEqual([]);
    expect(names({ leaderlessMs: TC_NO_LEADER_AFTER_MS + 1 })).toEqual(["tc_no_leader"]);
    expect(text({ leaderlessMs: 60_000 })).toContain("60 s: no voter has the answers of a majority");
    expect(text({ leaderlessMs: 60_000, waitsFor: ["https://b"] })).toContain("before https://b has answered");
  });

  test("a voter is silent for longer than a restart takes", () => {
    const silent = (silentMs: number) => [{ peer: B, endpoint: "https://b", silentMs }];
    expect(names({ silent: silent(TC_VOTER_MISSING_AFTER_MS) })).toEqual([]);
    expect(text({ silent: silent(90_000) })).toContain("b@1 at https://b for 90 s");
  });

  test("another cluster, an identity of two, and a disk that has forgotten", () => {
    expect(text({ mismatched: [{ peer: B, clusterId: "c2" }] })).toContain("b@1 (cluster c2)");
    expect(names({ shared: ["b"], mismatched: [{ peer: B, clusterId: "c2" }] })).toEqual([
      "tc_cluster_mismatch",
      "tc_identity_shared",
    ]);
    expect(text({ shared: ["b"], forgetful: [B] })).toMatch(/^b: two processes/);
  });

  test("an alert stays one line, however many it is about", () => {
    const shared = Array.from({ length: 9 }, (_, at) => `n${at}`);
    expect(text({ shared })).toContain("n0, n1, n2, n3, n4 and 4 more:");
  });

  test("are raised once, brought up to date, and cleared when they are over or this node is no coordinator any more", () => {
    const board = new AlertBoard();
    const at = { nowMs: 0, wallMs: 0 };
    const judged = (seen: Partial<CoordinatorsSeen> | null): readonly string[] =>
      judgeCoordinators(board, at, "a@1" as PeerKey, seen && { ...WELL, ...seen }).map((output) =>
        "alert" in output ? `${output.kind} ${output.alert.name} of ${output.alert.nodeId}` : output.kind,
      );
    expect(judged({})).toEqual([]);
    expect(judged({ leaderlessMs: 20_000, shared: ["b"] })).toEqual([
      "alert-raised tc_no_leader of a",
      "alert-raised tc_identity_shared of a",
    ]);
    expect(judged({ leaderlessMs: 80_000, shared: ["b"] })).toEqual([]);
    expect(board.alerts.map(({ name, severity }) => [name, severity])).toEqual([
      ["tc_identity_shared", "critical"],
      ["tc_no_leader", "warning"],
    ]);
    expect(board.alerts[1]!.message).toContain("80 s");
    expect(judged({ shared: ["b"] })).toEqual(["alert-cleared tc_no_leader of a"]);
    expect(judged(null)).toEqual(["alert-cleared tc_identity_shared of a"]);
  });
});
