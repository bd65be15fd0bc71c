import { expect, it } from "vitest";
import type { ClusterView } from "../../src/client/index.ts";
import { accessOf, leadershipOf, type Look, majorityOf, UNSEEN } from "./leadership.ts";

const look = (nodeId: string, change: Partial<Look> = {}): Look => ({
  ...UNSEEN,
  url: `http://${nodeId}`,
  isReached: true,
  nodeId,
  role: "STANDBY",
  leaderId: "n1",
  epoch: 4,
  stalenessMs: 14,
  ...change,
});
const leading = (nodeId: string, epoch: number): Look => look(nodeId, { role: "LEADER", leaderId: nodeId, epoch });

it("whoever says of itself that it leads does, the highest epoch first", () => {
  expect(leadershipOf([look("n2"), leading("n1", 4)])).toMatchObject({ leader: "n1", epoch: 4 });
  expect(leadershipOf([leading("n1", 4), leading("n2", 5)])).toMatchObject({ leader: "n2", epoch: 5 });
});

it("a leader that only this browser can't reach still leads; one that says it does not is none", () => {
  expect(leadershipOf([look("n2"), { ...look("n1"), isReached: false }])).toMatchObject({ leader: "n1", epoch: 4 });
  expect(leadershipOf([look("n2"), look("n1")]).leader).toBeNull();
});

it("what a node said before it fell silent does not count", () => {
  expect(
    leadershipOf([{ ...leading("n1", 4), isReached: false }, look("n2", { leaderId: null, epoch: null })]),
  ).toMatchObject({
    leader: null,
    reads: { nodeId: "n2" },
  });
  expect(leadershipOf([{ ...leading("n1", 4), isReached: false }])).toMatchObject({ leader: null, reads: null });
});

it("any node that answers says whether a key is needed, and one that lets the reader in decides", () => {
  const gone = look("n1", { isReached: false });
  const message = "A key is needed.";
  const refusing = look("n2", { isReached: false, refused: { kind: "needed", message } });
  expect(accessOf([gone, refusing])).toEqual({ kind: "needed", message });
  expect(accessOf([refusing, look("n3")])).toEqual({ kind: "open" });
  expect(accessOf([gone])).toEqual({ kind: "open" });
});

it("a leader that gives no leases leads all the same", () => {
  expect(leadershipOf([look("n1", { role: "DRAINING" })]).leader).toBe("n1");
});

it("reads go to the page's own node, and to the next where it is silent", () => {
  expect(leadershipOf([look("n2"), leading("n1", 4)]).reads).toEqual({
    nodeId: "n2",
    url: "http://n2",
    stalenessMs: 14,
  });
  expect(leadershipOf([{ ...look("n2"), isReached: false }, leading("n1", 4)]).reads?.nodeId).toBe("n1");
});

it("counts voters that answer, or that the leader hears", () => {
  const member = (nodeId: string, healthy: boolean | null, kind = "voter") => ({
    nodeId,
    kind,
    progress: healthy === null ? null : { healthy },
  });
  const members = [member("n1", null), member("n2", true), member("n3", false), member("n4", true, "learner")];
  const cluster = { members } as unknown as ClusterView;
  const leader = { ...leading("n1", 4), cluster };
  expect(leadershipOf([leader])).toMatchObject({ voters: 3, working: 2 });
  expect(leadershipOf([leader, look("n3")])).toMatchObject({ working: 3 });
  expect(leadershipOf([look("n3", { leaderId: null, cluster })])).toMatchObject({ voters: 3, working: 1 });
  expect([1, 2, 3, 4, 5].map(majorityOf)).toEqual([1, 2, 2, 3, 3]);
});
