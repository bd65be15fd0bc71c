// Heads and evidence next to a dumb oracle: two lists of events either are one the beginning of the other, or a fork.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { canonicalJson } from "../../events/canonical.ts";
import { fakeSigner } from "../test-signatures.ts";
import { ringOf } from "../test-site.ts";
import { evidenceOf, verifyEvidence } from "./evidence.ts";
import { compareHeads, settle } from "./fork.ts";
import { exampleSite, forkedSite, readTo, toolsOf } from "./test-pages.ts";

const tools = toolsOf(digest);
// Written into the histories of all sites (`controller:forked`): it never changes.
const GOLDEN_EVIDENCE =
  '{"larger":"site-a.7d3953beb8ddb59e64f07e950b91bd27\\n3\\nBm7d5uCtXH6MEhDTQqEx+oNn2zlOlhPvfWDfBS194cU=\\n' +
  "withheld 3 0000000000000000000000000000000000000000000000000000000000000000\\n\\n" +
  '— site-a/n1 R+954PL+hBKVUNNGVZfU81EbVAXYVGf1wZnSADbcUCAKvpnZtP0SEEOTiCP9mRO+Y5phdRhWpJxpkheqNJhrf/QbuVQ=\\n",' +
  '"line":"site-a.7d3953beb8ddb59e64f07e950b91bd27",' +
  '"path":["58709e7cc0d881e60982d1cb3029ac6b34e19a6a98207120cde796f91514159f"],' +
  '"ring":"7d3953beb8ddb59e64f07e950b91bd27fd098ced5178103b4f8e02502ed8e8ca",' +
  '"rootAt":"23c46b27e9dc59cc1a6677b33fe9447500ae9c39d65f2947725d0c08a4b6b84c",' +
  '"smaller":"site-a.7d3953beb8ddb59e64f07e950b91bd27\\n2\\n0rWL7vcVIuDoy5mE/QXzYrLa4rnMMxuRGAgMrXDdqtI=\\n' +
  "withheld 2 0000000000000000000000000000000000000000000000000000000000000000\\n\\n" +
  '— site-a/n1 R+954ArSVCUeLPlZU2LaiSTuDk2OmsP7DOk44VRsC68BUz+GR02LAFSpOVsd+KmQ8kdFXKh9UT8VNHtwIxzNMrs3gq8=\\n"}';
const sizes = fc.integer({ min: 1, max: 20 });

describe("two signed heads", () => {
  test("are settled as one history or as a fork, exactly as they are", () => {
    fc.assert(
      fc.property(sizes, sizes, fc.nat(20), (ours, theirs, common) => {
        const left = forkedSite(digest, 20, ours);
        const right = forkedSite(digest, common, theirs);
        const isFork = common < Math.min(ours, theirs);
        const state = readTo(left, [ours], tools);
        const larger = ours >= theirs ? left : right;
        const proof = larger.prefix(Math.min(ours, theirs), Math.max(ours, theirs));
        const settled = settle({ state, note: right.head(), proof }, tools);
        expect(settled.kind).toBe(isFork ? "fork" : "consistent");
        if (settled.kind !== "fork") return;
        // A third party has what was sent, and the ring.
        expect(verifyEvidence(JSON.parse(JSON.stringify(settled.evidence)), left.ring, tools)).toBe(true);
        expect(JSON.parse(canonicalJson(settled.evidence))).toEqual(settled.evidence);
      }),
    );
  });

  test("are compared with what is known, and a fork needs no more where sizes meet", () => {
    fc.assert(
      fc.property(sizes, sizes, fc.nat(20), fc.boolean(), (ours, theirs, common, isKnown) => {
        const left = forkedSite(digest, 20, ours);
        const right = forkedSite(digest, common, theirs);
        const state = readTo(left, [ours], tools);
        const known = (size: number) => (isKnown ? { root: left.root(size), note: left.head(size) } : null);
        const compared = compareHeads({ state, known, note: right.head() }, tools);
        const isSame = common >= theirs;
        const below = isKnown ? (isSame ? "behind-known" : "fork") : "behind-unknown";
        const expected = theirs > ours ? "ahead" : theirs < ours ? below : isSame ? "same" : "fork";
        expect(compared.kind).toBe(expected);
        if (compared.kind === "fork") expect(verifyEvidence(compared.evidence, left.ring, tools)).toBe(true);
      }),
    );
  });

  test("that differ without a signed note of ours are a suspicion", () => {
    const site = exampleSite(digest);
    const other = forkedSite(digest, 8, 12);
    const state = { ...readTo(site, [12], tools), checkpoint: null };
    const note = other.head();
    expect(compareHeads({ state, known: () => null, note }, tools)).toMatchObject({ kind: "suspected", note });
    expect(settle({ state, note, proof: null }, tools).kind).toBe("unproven");
    const known = (size: number) => ({ root: site.root(size), note: null });
    expect(compareHeads({ state, known, note: other.head(10) }, tools).kind).toBe("suspected");
  });

  test("contradict nothing where nothing is known: a changed first page is its deliverer's", () => {
    const site = exampleSite(digest);
    expect(settle({ state: site.start, note: site.head(), proof: null }, tools)).toEqual({ kind: "consistent" });
    const odd = { ...site.checkpoint(0), root: site.root(1) };
    const state = readTo(site, [12], tools);
    expect(settle({ state, note: site.sign(odd), proof: null }, tools).kind).toBe("unproven");
  });

  test("say what is known: no signature is asked for", () => {
    const site = exampleSite(digest);
    const state = readTo(site, [12], tools);
    const unsigned = site.sign(site.checkpoint(12), "n1", fakeSigner("stranger", digest));
    expect(compareHeads({ state, known: () => null, note: unsigned }, tools)).toEqual({ kind: "same" });
  });

  test("malformed, of another line, or of another site are no heads of this one", () => {
    const site = exampleSite(digest);
    const state = readTo(site, [8], tools);
    const ask = (note: string) => compareHeads({ state, known: () => null, note }, tools);
    expect(ask("x")).toMatchObject({ kind: "bad" });
    expect(ask(exampleSite(digest, ["n1"]).head())).toEqual({ kind: "bad", problem: "it is of another line" });
    expect(settle({ state, note: exampleSite(digest, ["n1"]).head(), proof: null }, tools).kind).toBe("unproven");
    expect(settle({ state, note: "x", proof: null }, tools).kind).toBe("unproven");
  });
});

describe("evidence", () => {
  const site = exampleSite(digest);
  const other = forkedSite(digest, 5, 14);
  const evidence = evidenceOf([other.head(14), site.head(10)], other.prefix(10, 14), site.ring, tools)!;

  test("puts the smaller one first, whoever is named first", () => {
    expect(verifyEvidence(evidence, site.ring, tools)).toBe(true);
    expect(evidence).toMatchObject({ smaller: site.head(10), larger: other.head(14), rootAt: other.root(10) });
  });

  test("is this text, for ever", () => {
    const other = forkedSite(digest, 1, 3);
    const small = evidenceOf([site.head(2), other.head(3)], other.prefix(2, 3), site.ring, tools);
    expect(canonicalJson(small)).toBe(GOLDEN_EVIDENCE);
  });

  test("takes signatures of two keys of the ring", () => {
    const two = evidenceOf([site.head(10, "n1"), other.head(14, "n2")], other.prefix(10, 14), site.ring, tools);
    expect(two).not.toBeNull();
  });

  test("counts no key that the ring in force does not have", () => {
    const now = { ...site.ring, keys: site.ring.keys.slice(1) };
    expect(evidenceOf([site.head(10, "n2"), other.head(14, "n1")], other.prefix(10, 14), now, tools)).toBeNull();
    expect(verifyEvidence(evidence, now, tools)).toBe(false);
    expect(verifyEvidence(evidence, ringOf("site-b", ["n1", "n2"], digest), tools)).toBe(false);
  });

  test("is made of nothing that is missing", () => {
    expect(evidenceOf([site.head(10), other.head(14)], null, site.ring, tools)).toBeNull();
    expect(evidenceOf([site.head(10), "x"], null, site.ring, tools)).toBeNull();
    expect(evidenceOf([site.head(10), site.head(10)], null, site.ring, tools)).toBeNull();
  });

  test("with any letter changed, or any field gone, proves nothing", () => {
    const believed: string[] = [];
    for (const [field, value] of Object.entries(evidence)) {
      const texts = typeof value === "string" ? [value] : value;
      for (const [which, text] of texts.entries()) {
        for (let at = 0; at < text.length; at++) {
          const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
          const tampered = { ...evidence, [field]: typeof value === "string" ? changed : texts.with(which, changed) };
          if (verifyEvidence(tampered, site.ring, tools)) believed.push(`${field}: ${changed}`);
        }
      }
      const { [field as "line"]: _, ...rest } = evidence;
      for (const wrong of [
        rest,
        { ...evidence, [field]: null },
        { ...evidence, [field]: 1 },
        { ...evidence, [field]: [] },
      ])
        if (verifyEvidence(wrong, site.ring, tools)) believed.push(field);
    }
    const { path } = evidence;
    const paths = [
      path.slice(1),
      [...path, path[0]!],
      path.toReversed(),
      Array.from({ length: 55 }, () => path[0]!),
      [1],
      {},
    ];
    for (const wrong of paths)
      if (verifyEvidence({ ...evidence, path: wrong }, site.ring, tools)) believed.push("path");
    for (const wrong of [null, 1, [], "x", { ...evidence, more: 1 }])
      if (verifyEvidence(wrong, site.ring, tools)) believed.push(JSON.stringify(wrong));
    expect(believed).toEqual([]);
  });
});
