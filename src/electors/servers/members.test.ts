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
    expect(() => members.checkCluster("https://a", { clusterId: "c2" })).toThrow(/cluster c2/);
    expect([members.isIntroduced("https://a"), members.leaderUrl]).toEqual([false, null]);
  });
});

describe("a cluster that was recovered or restored", () => {
  const A = { clusterId: "a" };
  const B = { clusterId: "b", ancestors: ["a"] };
  const C = { clusterId: "c", ancestors: ["a"] };
  const onA = (): Members => {
    const members = new Members(GIVEN, true);
    members.introduce("https://a", word("n1", {}, "a"));
    members.leaderUrl = "https://a";
    members.use();
    return members;
  };

  it("takes the place of the one that it names, and everybody is introduced again", () => {
    const members = onA();
    members.checkCluster("https://b", B);
    expect([members.isIntroduced("https://a"), members.leaderUrl]).toEqual([false, null]);
    members.checkCluster("https://a", B);
  });

  it("is not left for the ancestor again, whose nodes are waited for to go", () => {
    const members = onA();
    members.checkCluster("https://b", B);
    expect(() => members.checkCluster("https://a", A)).toThrow(
      expect.objectContaining({ code: "BACKEND_UNAVAILABLE", message: expect.stringContaining("not used any more") }),
    );
    members.checkCluster("https://b", B);
  });

  it("is meant by a process that sees both before it used one, whichever answers first", () => {
    for (const both of [
      [A, B],
      [B, A],
    ]) {
      const members = new Members(GIVEN, true);
      for (const one of both) {
        try {
          members.checkCluster("https://a", one);
        } catch (error) {
          expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
        }
      }
      members.checkCluster("https://a", B);
      expect(() => members.checkCluster("https://b", A)).toThrow(/not used any more/);
    }
  });

  it("of two that come from one, the first that answers is ours, and the other is refused", () => {
    const members = onA();
    members.checkCluster("https://b", B);
    expect(() => members.checkCluster("https://a", C)).toThrow(expect.objectContaining({ code: "CLUSTER_MISMATCH" }));
    // What is recovered from ours goes on, also nine times later.
    members.checkCluster("https://a", { clusterId: "k", ancestors: ["j", "i", "h", "g", "f", "e", "d", "b", "a"] });
    expect(() => members.checkCluster("https://a", C)).toThrow(expect.objectContaining({ code: "CLUSTER_MISMATCH" }));
  });

  it("is waited for while it is paused", () => {
    const members = onA();
    const copy = { ...B, isPaused: true };
    expect(() => members.checkCluster("https://b", copy)).toThrow(
      expect.objectContaining({ code: "BACKEND_UNAVAILABLE", message: expect.stringContaining("cluster resume") }),
    );
    members.checkCluster("https://a", A);
    members.checkCluster("https://b", B);
  });

  it("is no reason to wait for a copy that is paused, where that answers first: the ancestor still acts", () => {
    const members = new Members(GIVEN, true);
    const copy = { ...B, isPaused: true };
    members.checkCluster("https://b", copy);
    members.use();
    members.checkCluster("https://a", A);
    expect(() => members.checkCluster("https://b", copy)).toThrow(/cluster resume/);
    members.checkCluster("https://a", A);
    // Resumed, it is ours for good, whatever a node says that has not heard of it.
    members.checkCluster("https://b", B);
    members.checkCluster("https://b", copy);
    expect(() => members.checkCluster("https://a", A)).toThrow(/not used any more/);
  });

  it("trap 73: a node that has just joined it, and does not know yet where it comes from, ends nothing", () => {
    const members = onA();
    const joining = { clusterId: "b", ancestors: null };
    expect(() => members.checkCluster("https://b", joining)).toThrow(
      expect.objectContaining({ code: "BACKEND_UNAVAILABLE" }),
    );
    members.checkCluster("https://a", B);
    members.checkCluster("https://b", joining);
    expect(() => members.checkCluster("https://a", A)).toThrow(/not used any more/);
  });
});
