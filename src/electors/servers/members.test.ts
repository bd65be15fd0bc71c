import { describe, expect, it } from "vitest";
import type { Introduction } from "./answers.ts";
import { Members } from "./members.ts";

const GIVEN = ["https://a", "https://b"];

function word(nodeId: string, members: Record<string, string | null> = {}, clusterId = "c1"): Introduction {
  const list = Object.entries(members).map(([id, url]) => ({ nodeId: id, url }));
  return { clusterId, nodeId, leader: null, members: list };
}

describe("trap 64: where the key may go", () => {
  it("a leader is asked at the URL that was given for it, whatever it advertises", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://b", word("n2", { n2: "https://inside:1" }));
    expect(members.urlOf("n2", "https://inside:1")).toBe("https://b");
    expect(members.urls).toEqual(GIVEN);
  });

  it("a member that a given URL names may be asked, also by its id alone", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1", { n1: "https://a", n3: "https://c/" }));
    expect(members.urls).toEqual([...GIVEN, "https://c"]);
    expect(members.urlOf("n3", null)).toBe("https://c");
    expect(members.urlOf("n3", "https://elsewhere")).toBe("https://c");
    expect(members.urlOf("n4", "https://c")).toBe("https://c");
  });

  it("a URL that only an answer names is not asked", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1", { n3: "https://c" }));
    expect(members.urlOf("n9", "https://evil")).toBeNull();
    expect(members.urlOf("n9", null)).toBeNull();
  });

  it("a member's word adds nobody: only those that were given introduce others", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1", { n3: "https://c" }));
    members.introduce("https://c", word("n3", { n9: "https://evil" }));
    expect(members.urlOf("n9", "https://evil")).toBeNull();
  });

  it("from https nobody is led to http, nor to anything else", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1", { n3: "http://c", n4: "file:///etc", n5: "https://k:k@d", n6: null }));
    expect(members.urls).toEqual(GIVEN);
    const plain = new Members(["http://a"], true);
    plain.introduce("http://a", word("n1", { n3: "http://c", n4: "https://d" }));
    expect(plain.urls).toEqual(["http://a", "http://c", "https://d"]);
  });

  it("where nothing is to be learned, the given URLs are all there is", () => {
    const members = new Members(GIVEN, false);
    members.introduce("https://a", word("n1", { n3: "https://c" }));
    expect(members.urls).toEqual(GIVEN);
    expect(members.urlOf("n3", "https://c")).toBeNull();
  });

  it("what a node names is bounded", () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`n${at}`, `https://x${at}`]));
    const members = new Members(["https://a"], true);
    members.introduce("https://a", word("n1", many));
    expect(members.urls).toHaveLength(32);
  });
});

describe("another cluster", () => {
  it("is refused once one is known, and teaches nothing", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1"));
    const other = word("n1", { n3: "https://c" }, "c2");
    expect(() => members.introduce("https://b", other)).toThrow(expect.objectContaining({ code: "CLUSTER_MISMATCH" }));
    expect([members.isIntroduced("https://b"), members.urls]).toEqual([false, GIVEN]);
  });

  it("that answers at a known URL later is refused there too, and has to be introduced again", () => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1"));
    members.leaderUrl = "https://a";
    expect(() => members.checkCluster("https://a", "c2")).toThrow(/cluster c2/);
    expect([members.isIntroduced("https://a"), members.leaderUrl]).toEqual([false, null]);
  });
});
