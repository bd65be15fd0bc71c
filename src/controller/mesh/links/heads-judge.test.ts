// Heads of other sites next to what is known here: how much they have, and whether a line was forked, which needs proof.

import { describe, expect, it } from "vitest";
import type { LineState } from "../../../core/mesh/model.ts";
import { checkPage, type Evidence, verifyEvidence } from "../../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import { HEAD_PROOF_EVERY_MS } from "../limits.ts";
import { Blame } from "./blame.ts";
import { HeadsJudge } from "./heads-judge.ts";

const tools = { digest, verify: fakeVerify(digest) };

function known(site: TestSite, size: number): LineState {
  const checking = checkPage({ ...tools, state: site.start, page: site.page(0, size) });
  for (let step = checking.next(); ; step = checking.next()) {
    if (step.done !== true) continue;
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    return step.value.state;
  }
}

function stage(size = 6) {
  const clock = new ManualClock();
  const blame = new Blame();
  const site = new TestSite(ringOf("a", ["n1"], digest), digest);
  site.writeMany(12);
  const other = new TestSite(site.ring, digest);
  other.writeMany(3);
  other.write({ payload: { another: "history" } });
  other.writeMany(8);
  const state = known(site, size);
  const own = new TestSite(ringOf("home", ["n1"], digest), digest);
  own.writeMany(9);
  const forks: Evidence[] = [];
  const proofs: number[] = [];
  const judge = new HeadsJudge({
    clock,
    tools,
    known: {
      isOwn: (line) => line.startsWith("home."),
      stateOf: (line) => (line === site.line ? state : null),
      firstRingOf: () => null,
    },
    ownSize: (line) => (line === own.line ? 4 : null),
    lines: {
      consistency: async (_line, from, to) => {
        proofs.push(from);
        const { rootAt, path } = site.prefix(from, to);
        return { fromSize: from, treeSize: to, fromRoot: rootAt, root: site.root(to), path };
      },
    },
    blame,
    forked: (evidence) => void forks.push(evidence),
  });
  /** The other side proves what it has. */
  const ask = (of: TestSite) => async (_line: string, from: number, to: number) => {
    const { rootAt, path } = of.prefix(from, to);
    return { fromRoot: rootAt, root: of.root(to), path };
  };
  return { clock, blame, site, other, own, judge, forks, proofs, ask };
}

describe("a head", () => {
  it("says how much the other side has, shorter, equal or longer; of lines that nobody knows it says nothing", async () => {
    const { judge, site, blame, forks } = stage();
    const stranger = new TestSite(ringOf("x", ["n1"], digest), digest);
    stranger.writeMany(2);
    const sizes = await judge.judge("b", [site.head(4), site.head(6), site.head(9), stranger.head()], null);
    await settled();
    expect(sizes).toEqual([4, 6, 9].map((size) => [site.line, size]));
    expect([forks, blame.of("b")]).toEqual([[], {}]);
  });

  it("of a line of this site that this disk does not have says nothing: the spread would remember whatever a peer makes up", async () => {
    const { judge, own, blame } = stage();
    const madeUp = (at: number): string => own.head().replace(own.line, `home.${String(at).padStart(32, "0")}`);
    const sizes = await judge.judge("b", [own.head(), ...Array.from({ length: 100 }, (_, at) => madeUp(at))], null);
    expect(sizes).toEqual([[own.line, 4]]);
    expect(blame.of("b")).toEqual({});
  });

  it("that is no note, or wrongly signed, is blamed on whoever shows it; one by an unknown key is only a reason to ask", async () => {
    const { judge, site, blame } = stage();
    const forged = new TestSite(ringOf("a", ["n2"], digest), digest);
    const byOther = forged.sign(site.checkpoint(9), "n2");
    const note = site.head(9);
    const spoilt = `${note.slice(0, -8)}${note.at(-8) === "A" ? "B" : "A"}${note.slice(-7)}`;
    expect(await judge.judge("b", ["nonsense", spoilt, byOther], null)).toEqual([[site.line, 9]]);
    const { malformed = 0, invalid = 0 } = blame.of("b");
    expect([malformed + invalid, malformed >= 1]).toEqual([2, true]);
  });

  it("of this site's own line is not believed beyond what the site has: the gate compares it", async () => {
    const { judge, own } = stage();
    const forged = new TestSite(ringOf("home", ["n2"], digest), digest).sign(own.checkpoint(9), "n2");
    expect(await judge.judge("b", [own.head(3), own.head(9), forged], null)).toEqual(
      [3, 4, 4].map((size) => [own.line, size]),
    );
  });
});

describe("two histories", () => {
  it("of one size are evidence by themselves", async () => {
    const { judge, site, other, forks } = stage();
    expect(await judge.judge("b", [other.head(6)], null)).toEqual([]);
    expect(forks.map((evidence) => verifyEvidence(evidence, site.ring, tools))).toEqual([true]);
  });

  it("of which the other is shorter are proven from our own history", async () => {
    const { judge, site, other, forks } = stage();
    await judge.judge("b", [other.head(5)], null);
    await settled();
    expect(forks.map((evidence) => verifyEvidence(evidence, site.ring, tools))).toEqual([true]);
  });

  it("of which the other is longer are proven by whoever shows it; without that, nobody is accused", async () => {
    const { judge, site, other, forks, ask, clock } = stage();
    judge.suspected("b", site.line, other.page(4, 9).checkpoint, null);
    await settled();
    expect(forks).toEqual([]);
    clock.nowMs += HEAD_PROOF_EVERY_MS;
    judge.suspected("b", site.line, other.page(4, 9).checkpoint, ask(other));
    await settled();
    expect(forks.map((evidence) => verifyEvidence(evidence, site.ring, tools))).toEqual([true]);
  });

  it("that are one after all accuse nobody: the page was changed on its way", async () => {
    const { judge, site, forks, ask } = stage();
    judge.suspected("b", site.line, site.page(4, 9).checkpoint, ask(site));
    await settled();
    expect(forks).toEqual([]);
  });
});

it("a peer that shows old heads all the time does not keep another one's second history from being proven", async () => {
  const { judge, site, other, forks, clock } = stage();
  await judge.judge("liar", [site.head(4)], null);
  await judge.judge("b", [other.head(5)], null);
  await settled();
  expect(forks.map((evidence) => verifyEvidence(evidence, site.ring, tools))).toEqual([true]);
  expect(clock.nowMs, "within the time of the first proof").toBeLessThan(HEAD_PROOF_EVERY_MS);
});

it("a proof is made for a line now and then, not for every head", async () => {
  const { judge, site, proofs, clock } = stage();
  for (let at = 0; at < 5; at++) await judge.judge("b", [site.head(4)], null);
  await settled();
  expect(proofs).toEqual([4]);
  clock.nowMs += HEAD_PROOF_EVERY_MS;
  await judge.judge("b", [site.head(5)], null);
  await settled();
  expect(proofs).toEqual([4, 5]);
});
