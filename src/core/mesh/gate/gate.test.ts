import { describe, expect, test } from "vitest";
import { findingOf, Gate } from "./gate.ts";

const LINE = `alpha.${"0".repeat(32)}`;
const head = (size: number, root = "r") => ({ line: LINE, size, root });
const part = (size: number, root: string | null, isEnded = false) => ({ size, root, isEnded });

describe("what a peer's head of an own line says", () => {
  test("a shorter or an equal one with our root is a part of ours, whoever has signed it", () => {
    expect(findingOf(head(5), part(9, "r"), false)).toEqual({ kind: "part", line: LINE });
    expect(findingOf(head(9), part(9, "r"), true)).toEqual({ kind: "part", line: LINE });
  });

  test("a longer one that this site has signed says that the disk is an older one", () => {
    expect(findingOf(head(10), part(9, null), true)).toEqual({ kind: "longer", line: LINE, size: 10, have: 9 });
  });

  test("another root at a size that is here is another history", () => {
    expect(findingOf(head(5, "x"), part(9, "r"), true)).toEqual({ kind: "other", line: LINE, size: 5 });
  });

  test("what this site has not signed, and a line that this disk does not know, prove nothing and clear nothing", () => {
    expect(findingOf(head(10), part(9, null), false).kind).toBe("unclear");
    expect(findingOf(head(5, "x"), part(9, "r"), false).kind).toBe("unclear");
    expect(findingOf(head(1), null, false).kind).toBe("unclear");
  });

  test("of a line that has ended a peer may have more, and anything", () => {
    expect(findingOf(head(10, "x"), part(9, null, true), true)).toEqual({ kind: "part", line: LINE });
  });

  test("what retention has cut off was compared before", () => {
    expect(findingOf(head(2, "x"), part(9, null), true)).toEqual({ kind: "part", line: LINE });
  });
});

describe("the gate", () => {
  test("opens when every peer is compared, and no sooner", () => {
    const gate = new Gate();
    expect(gate.standing(["b", "c"])).toEqual({ kind: "comparing", missing: ["b", "c"], unclear: [] });
    gate.heard("b", [{ kind: "part", line: LINE }], true);
    expect(gate.standing(["b", "c"])).toEqual({ kind: "comparing", missing: ["c"], unclear: [] });
    gate.heard("c", [], true);
    expect(gate.standing(["b", "c"])).toEqual({ kind: "open" });
  });

  test("waits for a peer that registers while it compares, and not for one that is evicted", () => {
    const gate = new Gate();
    gate.heard("b", [], true);
    expect(gate.standing(["b", "late"]).kind).toBe("comparing");
    expect(gate.standing(["b"]).kind).toBe("open");
  });

  test("is behind for good when one peer has more, whatever the others have", () => {
    const gate = new Gate();
    const finding = { kind: "longer", line: LINE, size: 10, have: 9 } as const;
    gate.heard("b", [{ kind: "part", line: LINE }, finding], true);
    gate.heard("b", [{ kind: "part", line: LINE }], true);
    gate.heard("c", [], true);
    expect(gate.standing(["b", "c"])).toEqual({ kind: "behind", peer: "b", finding });
    gate.open();
    expect(gate.standing(["b", "c"])).toEqual({ kind: "open" });
  });

  test("a peer that shows what this disk does not know stays uncompared, until it shows what fits", () => {
    const gate = new Gate();
    gate.heard("b", [{ kind: "unclear", line: LINE, size: 3 }], true);
    expect(gate.standing(["b"])).toEqual({ kind: "comparing", missing: ["b"], unclear: ["b"] });
    gate.heard("b", [{ kind: "part", line: LINE }], true);
    expect(gate.standing(["b"])).toEqual({ kind: "open" });
  });

  test("a peer that showed a forged head first is compared when it shows the true one, over the same link", () => {
    const gate = new Gate();
    gate.heard("b", [{ kind: "unclear", line: LINE, size: 3 }], true);
    gate.heard("b", [], false);
    gate.heard("b", [{ kind: "part", line: "alpha.another" }], false);
    expect(gate.standing(["b"]).kind).toBe("comparing");
    gate.heard("b", [{ kind: "part", line: LINE }], false);
    expect(gate.standing(["b"])).toEqual({ kind: "open" });
  });

  test("heads of some lines clear nobody", () => {
    const gate = new Gate();
    gate.heard("b", [], false);
    expect(gate.standing(["b"]).kind).toBe("comparing");
  });

  test("stays open for peers that come later, once it was opened", () => {
    const gate = new Gate();
    gate.open();
    expect(gate.standing(["new"])).toEqual({ kind: "open" });
    expect(gate.isOpen).toBe(true);
  });
});
