import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import type { LineState } from "../model.ts";
import { ringOf, TestSite } from "../test-site.ts";
import { lineIdOf } from "./line-id.ts";
import { readRecovered, type Recovered, recoveredPayload, type RecoveredProof, successorOf } from "./successor.ts";
import { exampleSite, readTo, toolsOf, verdictOf } from "./test-pages.ts";

const tools = toolsOf(digest);
const old = exampleSite(digest);
const ring = ringOf("site-a", ["n1"], digest, 2);
const stateAt = (size: number): LineState => (size === 0 ? old.start : readTo(old, [size], tools));
const recoveredAt = (through: number): Recovered => readRecovered(recoveredPayload(stateAt(through)), digest)!;
const proofOf = (through: number, size: number): RecoveredProof => ({
  consistency: old.prefix(through, size).path,
  inclusion: old.inclusion(through, size),
});

describe("a line of the next generation", () => {
  test("continues the old one at any event, with sequences and tree", () => {
    for (let through = 0; through <= 12; through++) {
      for (const size of [through, 12]) {
        const proof = through > 0 && through < size ? proofOf(through, size) : undefined;
        const begun = successorOf({ old: stateAt(size), ring, recovered: recoveredAt(through), proof, digest });
        expect(begun.kind).toBe("line");
        if (begun.kind !== "line") continue;
        expect(begun.state).toMatchObject({ line: lineIdOf(ring, digest), ring, size: through, checkpoint: null });
        expect(begun.state.frontier).toEqual(old.frontier(through));
        const site = new TestSite(ring, digest, { state: begun.state, leaves: old.leaves(through) });
        const payload = recoveredPayload(stateAt(through));
        site.write({ eventType: "controller:recovered", entityId: "site-a", payload });
        site.writeMany(2);
        const verdict = verdictOf(begun.state, site.page(through, through + 3), tools);
        expect(verdict).toMatchObject({ kind: "accepted", firstNew: through + 1, state: { size: through + 3 } });
      }
    }
  });

  test("waits until the old one is known so far", () => {
    const begun = successorOf({ old: stateAt(9), ring, recovered: recoveredAt(12), digest });
    expect(begun).toEqual({ kind: "incomplete", have: 9 });
  });

  test("needs a proof where more of the old one is known", () => {
    const begun = successorOf({ old: stateAt(12), ring, recovered: recoveredAt(9), digest });
    expect(begun).toEqual({ kind: "unproven", from: 9, to: 12 });
  });

  test.each([
    ["another line", { recovered: { ...recoveredAt(12), line: `site-a.${"0".repeat(32)}` } }, "another line"],
    ["another controller's ring", { ring: { ...ring, controller: "site-b" } }, "another controller's"],
    ["the same generation", { ring: { ...ring, generation: 1 } }, "generation 1 follows 1"],
    ["a generation too far", { ring: { ...ring, generation: 3 } }, "generation 3 follows 1"],
    ["another hash", { recovered: { ...recoveredAt(12), hash: old.hash(11) } }, "does not continue"],
    ["another tree", { recovered: { ...recoveredAt(12), frontier: old.frontier(11) } }, "does not continue"],
    ["no proof in its proof", { recovered: recoveredAt(9), proof: { consistency: [], inclusion: [] } }, "not proven"],
    ["texts for hashes", { recovered: recoveredAt(9), proof: { consistency: ["x"], inclusion: ["y"] } }, "not proven"],
  ])("is refused with %s", (_, more, problem) => {
    const begun = successorOf({ old: stateAt(12), ring, recovered: recoveredAt(12), digest, ...more });
    expect(begun).toMatchObject({ kind: "refused", problem: expect.stringContaining(problem) });
  });
});

describe("what a recovered event carries", () => {
  const payload = recoveredPayload(stateAt(12));

  test("is read back", () => {
    expect(readRecovered(JSON.parse(JSON.stringify(payload)), digest)).toEqual(recoveredAt(12));
  });

  test.each([
    { line: "x" },
    { line: 1 },
    { through: -1 },
    { through: 1.5 },
    { through: "12" },
    { through: 11 },
    { through: 0 },
    { hash: null },
    { hash: "x" },
    { frontier: 1 },
    { frontier: "" },
    { frontier: "AAAA" },
    { frontier: `${payload["frontier"] as string}AAAA` },
  ])("is not %j", (more) => {
    expect(readRecovered({ ...payload, ...more }, digest)).toBeNull();
  });
});
