// What is shown of islands, and what a person has to do, from one node's answer.

import { describe, expect, it } from "vitest";
import type { IslandsView } from "../../src/client/index.ts";
import { adviceOf, leaderText, quorumText, registryOf, rowsOf } from "./islands.ts";

type Voter = IslandsView["voters"][number];

const voter = (identity: string, state: Voter["state"]): Voter => ({
  identity,
  incarnation: "1",
  endpoint: `https://${identity}:1`,
  state,
});
const member = (identity: string, endpoint = `https://${identity}:1`): IslandsView["members"][number] => ({
  identity,
  endpoint,
  updatedAtMs: 1_000,
  expiresAtMs: 10_000,
});

function viewOf(change: Partial<IslandsView> = {}): IslandsView {
  return {
    self: {
      identity: "a",
      incarnation: "1",
      endpoint: "https://a:1",
      tcClusterId: "c",
      backendHash: "aa",
      term: 5,
      roster: { term: 5, version: 3 },
      leaving: false,
    },
    leader: { identity: "a", incarnation: "1", endpoint: "https://a:1", term: 5, expiresAtMs: 3_000 },
    actsInTerm: 5,
    waitsFor: [],
    left: false,
    members: [member("a"), member("b"), member("c")],
    voters: [voter("c", "answers"), voter("a", "leads"), voter("b", "answers")],
    quorum: 2,
    roster: { term: 5, version: 3 },
    registry: [
      { backendHash: "bb", endpoint: "https://b:1" },
      { backendHash: "aa", endpoint: "https://a2:1" },
      { backendHash: "aa", endpoint: "https://a1:1" },
    ],
    registryUpdatedAtMs: 900,
    ...change,
  };
}

const advice = (change: Partial<IslandsView>): string => adviceOf(viewOf(change))?.text ?? "";

describe("rows of nodes", () => {
  it("are voters and members, each once, by name", () => {
    const members = [member("a"), member("d"), member("b", "https://moved:1")];
    const rows = rowsOf(viewOf({ members }));
    expect(
      rows.map(({ identity, state, endpoint, heardMs, isOwn }) => [identity, state, endpoint, heardMs, isOwn]),
    ).toEqual([
      ["a", "leads", "https://a:1", 1_000, true],
      ["b", "answers", "https://moved:1", 1_000, false],
      ["c", "answers", "https://c:1", null, false],
      ["d", "waits", "https://d:1", 1_000, false],
    ]);
  });

  it("link only to what is an address of a web page", () => {
    const [row] = rowsOf(viewOf({ voters: [], members: [member("x", "javascript:alert(1)")] }));
    expect(row).toMatchObject({ url: null, endpoint: "javascript:alert(1)" });
  });
});

describe("what a person has to do", () => {
  it("is nothing while somebody leads and all answer", () => {
    expect(adviceOf(viewOf())).toBeNull();
    expect(leaderText(viewOf())).toBe("a leads in term 5");
    expect(quorumText(viewOf())).toBe("2 of 3 voters");
    expect(quorumText(viewOf({ voters: [voter("a", "leads")], quorum: 1 }))).toBe("1 of 1 voter");
  });

  it("names a silent voter, and says where one more ends the leadership", () => {
    const voters = [voter("a", "leads"), voter("b", "silent"), voter("c", "answers")];
    expect(adviceOf(viewOf({ voters }))).toMatchObject({ isBad: true });
    expect(advice({ voters })).toMatch(/do not answer the leader: b\. If one more fails, nobody leads/);
    const five = [...voters, voter("d", "answers"), voter("e", "answers")];
    expect(adviceOf(viewOf({ voters: five, quorum: 3 }))).toMatchObject({ isBad: false });
  });

  it("where nobody leads depends on how far this node got", () => {
    expect(leaderText({ leader: null })).toBeNull();
    expect(advice({ leader: null })).toContain("a leader needs 2 of 3 voters.");
    const alone = { leader: null, roster: null, voters: [], quorum: 0 };
    expect(advice(alone)).toContain("waits until a leader admits it");
    expect(advice({ ...alone, waitsFor: ["https://b:1", "https://c:1"] })).toContain(
      "answered: https://b:1, https://c:1.",
    );
  });

  it("of one that has left: how it comes back", () => {
    expect(advice({ left: true, leader: null })).toContain("tenure tc announce");
  });
});

it("the registry has each island once, with all its addresses", () => {
  expect(registryOf(viewOf())).toEqual([
    { backendHash: "aa", isOwn: true, endpoints: ["https://a1:1", "https://a2:1"] },
    { backendHash: "bb", isOwn: false, endpoints: ["https://b:1"] },
  ]);
});
