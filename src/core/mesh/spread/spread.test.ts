// The rules of the spread, one by one; the whole of them is simulated (sim/spread).

import { describe, expect, it } from "vitest";
import { GRAFT_AFTER_MS, REFUSED_PAUSE_MS, SHORTER_WAY_AGAIN_MS } from "./limits.ts";
import { type Head, Spread, type SpreadEffect, type SpreadInput } from "./index.ts";

const X = "x.0";
const Y = "y.0";

type Unstamped = SpreadInput extends infer I ? (I extends SpreadInput ? Omit<I, "nowMs"> : never) : never;

/** A site with links a, b, … that are connected; what it asks for is said in short. */
function bench(sizes: readonly (readonly [string, number])[] = [], unwanted: readonly string[] = []) {
  const spread = new Spread({ sizes, unwanted });
  let nowMs = 0;
  const step = (input: Unstamped): string[] => spread.step({ ...input, nowMs }).map(said);
  for (const link of ["a", "b", "c"]) step({ kind: "up", link, controller: link });
  return {
    spread,
    step,
    heads: (link: string, ...heads: Head[]) => step({ kind: "heads", link, heads }),
    page: (link: string, through: number, outcome: "new" | "duplicate" | "gap" | "refused") =>
      step({ kind: "page", link, line: X, through, outcome }),
    taken: (link: string, line: string, through: number) =>
      step({ kind: "sent", link, line, outcome: { kind: "taken", through } }),
    later: (ms: number): string[] => {
      nowMs += ms;
      return step({ kind: "time" });
    },
  };
}

function said(effect: SpreadEffect): string {
  const after = effect.kind === "prune" ? "" : ` after ${effect.after}`;
  return `${effect.kind} ${effect.link} ${effect.line}${after}`;
}

describe("what is asked for", () => {
  it("is every line that nothing brings yet, over the first link that has it", () => {
    const { heads } = bench([[X, 3]]);
    expect(heads("a", [X, 5], [Y, 2])).toEqual(["graft a x.0 after 3", "graft a y.0 after 0"]);
    expect(heads("b", [X, 5], [Y, 2])).toEqual([]);
  });

  it("is never the site's own line, nor one that is not wanted any more", () => {
    const { heads, step, spread } = bench([[X, 3]], [X]);
    expect(heads("a", [X, 9], [Y, 1])).toEqual(["graft a y.0 after 0"]);
    expect(step({ kind: "wanted", line: Y, wanted: false })).toEqual(["prune a y.0"]);
    expect(heads("b", [Y, 7])).toEqual([]);
    expect(spread.nextTimeMs()).toBeNull();
    expect(step({ kind: "wanted", line: Y, wanted: true })).toEqual(["graft a y.0 after 0"]);
  });

  it("is a line over the link to its own site, whoever else brings it", () => {
    const { heads, step } = bench();
    heads("a", [X, 5]);
    step({ kind: "up", link: "d", controller: "x" });
    expect(heads("d", [X, 5])).toEqual(["graft d x.0 after 0"]);
  });

  it("moves to another link at once when the only one goes down, not to one that has the line from here", () => {
    const { heads, step } = bench([[X, 5]]);
    heads("a", [X, 5]);
    heads("b", [X, 5]);
    heads("c", [X, 5]);
    step({ kind: "graft", link: "b", line: X, after: 5 });
    expect(step({ kind: "down", link: "a" })).toEqual(["graft c x.0 after 5"]);
    expect(step({ kind: "down", link: "c" })).toEqual([]);
    expect(heads("b", [X, 6])).toEqual(["graft b x.0 after 5"]);
  });

  it("moves to a shorter way, also where the present one became longer", () => {
    const { heads } = bench([[X, 5]]);
    heads("a", [X, 5, 5]);
    expect(heads("b", [X, 5, 5])).toEqual([]);
    expect(heads("b", [X, 5, 2])).toEqual(["prune a x.0", "graft b x.0 after 5"]);
    expect(heads("b", [X, 5, 7])).toEqual(["prune b x.0", "graft a x.0 after 5"]);
  });

  it("does not believe in a short way over which nothing came, for a while", () => {
    const { heads, later, page } = bench([[X, 5]]);
    heads("a", [X, 5, 5]);
    expect(heads("b", [X, 9, 2])).toEqual(["prune a x.0", "graft b x.0 after 5"]);
    heads("a", [X, 9, 5]);
    later(GRAFT_AFTER_MS);
    expect(later(GRAFT_AFTER_MS)).toEqual(["graft a x.0 after 5"]);
    page("a", 9, "new");
    expect(page("b", 9, "duplicate")).toEqual(["prune b x.0"]);
    expect(heads("b", [X, 9, 2])).toEqual([]);
    later(SHORTER_WAY_AGAIN_MS);
    expect(heads("b", [X, 9, 2])).toEqual(["prune a x.0", "graft b x.0 after 5"]);
  });

  it("reports no distance on a longer way than its last one until that is reported again, so that none counts up", () => {
    const { heads, step, spread } = bench([[X, 5]]);
    heads("a", [X, 5, 0]);
    heads("b", [X, 5, 2]);
    expect(spread.hops(X)).toBe(1);
    expect(step({ kind: "down", link: "a" })).toEqual(["graft b x.0 after 5"]);
    expect(spread.hops(X), "b may have the line from here").toBeUndefined();
    expect(heads("c", [X, 5, 4]), "nor is that a reason to move on").toEqual([]);
    heads("b", [X, 6, 2]);
    expect(spread.hops(X)).toBe(3);
  });
});

describe("a line of which others have more", () => {
  it("is asked for again and again, of each link in turn, a second after the last progress", () => {
    const { heads, later, step, spread } = bench();
    heads("a", [X, 9]);
    heads("b", [X, 9]);
    expect(later(GRAFT_AFTER_MS - 1)).toEqual([]);
    expect(later(1)).toEqual(["graft b x.0 after 0"]);
    expect(later(GRAFT_AFTER_MS)).toEqual(["graft a x.0 after 0"]);
    later(GRAFT_AFTER_MS - 1);
    step({ kind: "have", line: X, size: 4 });
    expect(later(1)).toEqual([]);
    expect(later(GRAFT_AFTER_MS - 1)).toEqual(["graft b x.0 after 4"]);
    step({ kind: "have", line: X, size: 9 });
    expect(spread.nextTimeMs()).toBeNull();
  });

  it("is asked for ever less often where a link claims more and sends nothing, and at once again after it did", () => {
    const { heads, later, step, page } = bench();
    heads("a", [X, 9]);
    const gaps = (seconds: number): number[] => {
      const asked = Array.from({ length: seconds }, () => later(GRAFT_AFTER_MS).length);
      return asked.flatMap((count, at) => (count === 0 ? [] : [at + 1]));
    };
    expect(gaps(40)).toEqual([1, 3, 7, 15, 23, 31, 39]);
    step({ kind: "have", line: X, size: 4 });
    expect(gaps(10), "what another link brought is no excuse").toEqual([7]);
    page("a", 5, "new");
    expect(gaps(4)).toEqual([1, 2, 4]);
    step({ kind: "have", line: X, size: 9 });
    heads("a", [X, 10]);
    expect(gaps(4), "what it claimed was true").toEqual([1, 2, 4]);
  });

  it("is asked of the nearest to its author first", () => {
    const { heads, later } = bench();
    heads("a", [X, 9, 4]);
    heads("b", [X, 9, 5]);
    heads("c", [X, 9, 4]);
    expect(later(GRAFT_AFTER_MS)).toEqual(["graft c x.0 after 0"]);
    expect(later(GRAFT_AFTER_MS)).toEqual(["graft b x.0 after 0"]);
  });

  it.each(["duplicate", "refused", "new"] as const)(
    "is not put off by a page that is %s and brings nothing",
    (outcome) => {
      const { heads, later, page } = bench([[X, 3]]);
      heads("a", [X, 9]);
      heads("b", [X, 9]);
      const grafts = [];
      for (let ms = 0; ms < GRAFT_AFTER_MS; ms += 100) grafts.push(...page("a", 3, outcome), ...later(100));
      expect(grafts).toContain("graft b x.0 after 3");
    },
  );

  it("is asked for from what is applied, where pages arrived and were lost", () => {
    const { heads, later, page } = bench();
    heads("a", [X, 9]);
    later(500);
    page("a", 9, "new");
    expect(later(GRAFT_AFTER_MS - 1)).toEqual([]);
    expect(later(1)).toEqual(["graft a x.0 after 0"]);
  });
});

describe("a page", () => {
  it("that is a duplicate ends one direction of one link, but not the last that brings the line", () => {
    const { heads, page, later, step, spread } = bench();
    heads("a", [X, 1]);
    heads("b", [X, 1]);
    later(GRAFT_AFTER_MS);
    step({ kind: "have", line: X, size: 1 });
    step({ kind: "graft", link: "a", line: X, after: 1 });
    expect(page("a", 1, "duplicate")).toEqual(["prune a x.0"]);
    expect(page("b", 1, "duplicate")).toEqual([]);
    expect([...spread.lanes()].map(({ link, incoming, outgoing }) => ({ link, incoming, outgoing }))).toEqual([
      { link: "a", incoming: false, outgoing: true },
      { link: "b", incoming: true, outgoing: false },
    ]);
  });

  it("that is refused moves the line to another link, and its sender is not asked for a while", () => {
    const { heads, page, later } = bench();
    heads("a", [X, 9]);
    heads("b", [X, 5]);
    expect(page("a", 9, "refused")).toEqual(["prune a x.0", "graft b x.0 after 0"]);
    expect(later(GRAFT_AFTER_MS)).toEqual(["graft b x.0 after 0"]);
    for (let ms = 2 * GRAFT_AFTER_MS; ms < REFUSED_PAUSE_MS; ms += GRAFT_AFTER_MS) later(GRAFT_AFTER_MS);
    expect(later(GRAFT_AFTER_MS)).toEqual(["graft a x.0 after 0"]);
  });

  it("with a gap before it is answered by one graft", () => {
    const { heads, page, later, step } = bench();
    heads("a", [X, 9]);
    later(GRAFT_AFTER_MS - 1);
    step({ kind: "have", line: X, size: 2 });
    later(1);
    expect(page("a", 9, "gap")).toEqual(["graft a x.0 after 2"]);
    expect(page("a", 10, "gap")).toEqual([]);
  });

  it("ends a direction in which two sites asked each other, once another link brings something", () => {
    const { heads, page, step, later } = bench([[X, 1]]);
    heads("a", [X, 1]);
    step({ kind: "graft", link: "a", line: X, after: 1 });
    heads("b", [X, 2]);
    later(GRAFT_AFTER_MS);
    expect(page("b", 2, "new")).toEqual(["prune a x.0"]);
  });
});

describe("sending", () => {
  it("goes only to whoever asked, one page at a time, and ends with what is there", () => {
    const { step, taken } = bench([[X, 9]], [X]);
    expect(step({ kind: "have", line: X, size: 10 })).toEqual([]);
    expect(step({ kind: "graft", link: "a", line: X, after: 2 })).toEqual(["send a x.0 after 2"]);
    expect(step({ kind: "have", line: X, size: 11 })).toEqual([]);
    expect(taken("a", X, 8)).toEqual(["send a x.0 after 8"]);
    expect(taken("a", X, 11)).toEqual([]);
    step({ kind: "prune", link: "a", line: X });
    expect(step({ kind: "have", line: X, size: 12 })).toEqual([]);
  });

  it("does not return what came over the same link, or what the other side reports to have", () => {
    const { step, heads, page } = bench();
    heads("a", [X, 1]);
    step({ kind: "graft", link: "a", line: X, after: 0 });
    step({ kind: "graft", link: "b", line: X, after: 0 });
    page("a", 4, "new");
    heads("b", [X, 4]);
    expect(step({ kind: "have", line: X, size: 4 })).toEqual([]);
  });

  it("gives each line its turn", () => {
    const { step, taken } = bench(
      [
        [X, 90],
        [Y, 2],
      ],
      [X, Y],
    );
    step({ kind: "graft", link: "a", line: X, after: 0 });
    step({ kind: "graft", link: "a", line: Y, after: 0 });
    expect(taken("a", X, 1)).toEqual(["send a y.0 after 0"]);
    expect(taken("a", Y, 1)).toEqual(["send a x.0 after 1"]);
    expect(taken("a", X, 2)).toEqual(["send a y.0 after 1"]);
  });

  it("pauses a line whose page was refused or brought nothing forward, and goes on with the others", () => {
    const { step, later, taken } = bench(
      [
        [X, 9],
        [Y, 2],
      ],
      [X, Y],
    );
    step({ kind: "graft", link: "a", line: X, after: 0 });
    expect(step({ kind: "sent", link: "a", line: X, outcome: { kind: "refused" } })).toEqual([]);
    expect(step({ kind: "graft", link: "a", line: Y, after: 0 })).toEqual(["send a y.0 after 0"]);
    expect(taken("a", Y, 0)).toEqual([]);
    expect(later(REFUSED_PAUSE_MS - 1)).toEqual([]);
    expect(later(1)).toEqual(["send a x.0 after 0"]);
  });

  it("goes back to where the other side says that it is", () => {
    const { step, heads } = bench([[X, 9]], [X]);
    heads("a", [X, 7]);
    expect(step({ kind: "graft", link: "a", line: X, after: 3 })).toEqual(["send a x.0 after 3"]);
    expect(step({ kind: "sent", link: "a", line: X, outcome: { kind: "gap", have: 1 } })).toEqual([
      "send a x.0 after 1",
    ]);
  });

  it("goes back once, and then waits: who answers every page with a gap, or takes it and has lost it, is not sent to at once again", () => {
    const { step, later, taken } = bench([[X, 9]], [X]);
    const gap = (have: number): string[] => step({ kind: "sent", link: "a", line: X, outcome: { kind: "gap", have } });
    step({ kind: "graft", link: "a", line: X, after: 3 });
    expect(gap(3)).toEqual(["send a x.0 after 3"]);
    expect(gap(3)).toEqual([]);
    expect(step({ kind: "graft", link: "a", line: X, after: 1 }), "it has asked, and has to wait").toEqual([]);
    expect(later(REFUSED_PAUSE_MS - 1)).toEqual([]);
    expect(later(1), "from where it asked last").toEqual(["send a x.0 after 1"]);
    expect(gap(0), "the last one is long ago").toEqual(["send a x.0 after 0"]);
    expect(taken("a", X, 5)).toEqual(["send a x.0 after 5"]);
    expect(gap(0)).toEqual([]);
    expect(later(REFUSED_PAUSE_MS)).toEqual(["send a x.0 after 0"]);
    expect(taken("a", X, 9)).toEqual([]);
  });

  it("forgets a link that went down, with all that was under way", () => {
    const { step, spread, taken } = bench([[X, 9]], [X]);
    step({ kind: "graft", link: "a", line: X, after: 0 });
    step({ kind: "down", link: "a" });
    expect(taken("a", X, 9)).toEqual([]);
    expect([...spread.lanes()]).toEqual([]);
    step({ kind: "up", link: "a", controller: "a" });
    expect(step({ kind: "graft", link: "a", line: X, after: 4 })).toEqual(["send a x.0 after 4"]);
  });
});
