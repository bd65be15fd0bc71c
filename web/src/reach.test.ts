import { expect, it } from "vitest";
import type { ClusterView, MemberView } from "../../src/client/index.ts";
import { leadershipOf, type Look, UNSEEN } from "./leadership.ts";
import { aloneOf, blockedText, copiesOf, healthOf, lookAtMember } from "./reach.ts";

const member = (nodeId: string, isConnected = true): MemberView => ({
  nodeId,
  incarnation: "aa",
  kind: "voter",
  isLeader: nodeId === "n1",
  address: null,
  url: `http://${nodeId}.example:7400`,
  isConnected,
  progress: null,
});
const view = (members: readonly MemberView[]): ClusterView => ({ members }) as unknown as ClusterView;
const reached = (nodeId: string, url: string, members: readonly MemberView[]): Look => ({
  ...UNSEEN,
  url,
  isReached: true,
  nodeId,
  role: "STANDBY",
  leaderId: "n1",
  epoch: 4,
  cluster: view(members),
});
const silent = (nodeId: string): Look => ({
  ...UNSEEN,
  url: `http://${nodeId}.example:7400`,
  why: "can't be reached",
});
const MEMBERS = [member("n1"), member("n2"), member("n3")];
const forwarded = (members = MEMBERS): Look[] => [
  reached("n2", "http://localhost:9999", members),
  silent("n1"),
  silent("n3"),
];

it("under a name that no node gives itself a page reaches its own node alone", () => {
  expect(aloneOf(forwarded())).toEqual({ nodeId: "n2", urls: MEMBERS.map(({ url }) => url) });
  expect(aloneOf([reached("n2", "http://n2.example:7400", MEMBERS), silent("n1"), silent("n3")])).toBeNull();
  expect(
    aloneOf([...forwarded().slice(0, 2), reached("n3", "http://n3.example:7400", MEMBERS)]),
    "a proxy that the others let in",
  ).toBeNull();
  expect(aloneOf([reached("n2", "http://localhost:9999", [member("n2")])]), "there are no others").toBeNull();
});

it("members that the node it reaches hears are not asked, and count; one that is not heard is down", () => {
  const health = (looks: readonly Look[], one: MemberView) =>
    healthOf(one, one.nodeId === "n1", lookAtMember(looks, one), true);
  for (const one of [MEMBERS[0]!, MEMBERS[2]!])
    expect(health(forwarded(), one)).toEqual({ text: "not asked", tone: "plain" });
  expect(leadershipOf(forwarded())).toMatchObject({ leader: "n1", voters: 3, working: 3 });

  const one = [member("n1"), member("n2"), member("n3", false)];
  expect(health(forwarded(one), one[2]!).tone).toBe("bad");
  expect(leadershipOf(forwarded(one))).toMatchObject({ voters: 3, working: 2 });
});

it("a member that a page under its right name can't reach is told with why", () => {
  const looks = [reached("n2", "http://n2.example:7400", MEMBERS), silent("n1"), silent("n3")];
  expect(healthOf(MEMBERS[2]!, false, lookAtMember(looks, MEMBERS[2]!), false)).toEqual({
    text: "can't be reached",
    tone: "bad",
  });
  expect(leadershipOf(looks)).toMatchObject({ working: 2 });
});

it("nothing is changed from where the leader is not reached, and where to go is said", () => {
  expect(blockedText(forwarded(), { leader: "n1" })).toMatch(/^Changes go to n1.*open http:\/\/n1\.example:7400\.$/);
  expect(blockedText(forwarded(), { leader: "n2" })).toBeNull();
  expect(blockedText(forwarded(), { leader: null }), "it waits for a leader").toBeNull();
});

it("a verification names every member: one that does not answer is asked all the same, one without a look is named", () => {
  const looks = [reached("n1", "http://n1.example:7400", MEMBERS), silent("n2")];
  expect(copiesOf(looks, MEMBERS)).toEqual([
    { name: "n1", url: "http://n1.example:7400" },
    { name: "n2", url: "http://n2.example:7400" },
    { name: "n3", url: null },
  ]);
  expect(copiesOf(looks, []), "before the members are known: whoever answers").toEqual([
    { name: "n1", url: "http://n1.example:7400" },
  ]);
});
