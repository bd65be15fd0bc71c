import { expect, test } from "vitest";
import { OwnSiteStage } from "../../controller/mesh/own/test-own-site.ts";
import type { OwnLine } from "../../controller/mesh/own/own-line.ts";
import { ringHashOf } from "../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../core/mesh/test-signatures.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { audit, type AuditedSite, type Pin, type Proven } from "./audit.ts";

const NOTHING: Pin = { ringHash: null, publicKey: null };

function siteOf(lineAt: (line: string) => OwnLine, changed: Partial<AuditedSite> = {}): AuditedSite {
  const any = lineAt("");
  return {
    lines: () => Promise.resolve(any.view()?.lines ?? []),
    page: (line, after) => lineAt(line).page(line, after),
    head: (line) => lineAt(line).checkpoint(line),
    consistency: async (line, from, to) => (await lineAt(line).consistency(line, from, to)).path,
    ...changed,
  };
}

function run(site: AuditedSite, pin: Pin = NOTHING): Promise<Proven> {
  return audit({ site, digest, verify: fakeVerify(digest), progress: () => undefined }, pin);
}

/** Of two generations; the second one's ring has this node alone. */
function recovered(node: string) {
  const stage = new OwnSiteStage(digest);
  stage.grow(5);
  stage.ring("n1", "n2");
  stage.grow(600);
  stage.recover();
  const next = stage.ringOf(node);
  stage.ring(node);
  stage.grow(3);
  const [first] = stage.fold.lines!.generations;
  const [old, own] = [stage.lineAt("n1"), stage.lineAt(node)];
  return { stage, next, site: siteOf((line) => (line === first!.line ? old : own)) };
}

test("all generations are proven, each from where the one before ended", async () => {
  const { site, next } = recovered("n1");
  const proven = await run(site, { ringHash: ringHashOf(next, digest), publicKey: next.keys[0]!.key });
  expect(proven).toMatchObject({ controller: "alpha", ringHash: ringHashOf(next, digest), isPinned: true });
  expect(proven.lines).toMatchObject([
    { generation: 1, first: 1, through: 606, withheld: 121, ringChanges: 0 },
    { generation: 2, first: 607, through: 611, withheld: 0, ringChanges: 0 },
  ]);
  expect((await run(site)).isPinned).toBe(false);
});

test("a generation that no key of the one before signs counts only where its ring was given", async () => {
  const { site, next, stage } = recovered("n9");
  const first = stage.fold.lines!.generations[0]!.rings[0]!.ring;
  for (const pin of [NOTHING, { ringHash: ringHashOf(first, digest), publicKey: null }]) {
    await expect(run(site, pin)).rejects.toThrow(/generation 2 is signed by a key that generation 1 did not have/);
  }
  expect((await run(site, { ringHash: ringHashOf(next, digest), publicKey: null })).lines).toHaveLength(2);
});

test("a first ring that is not the one of the line's name is refused", async () => {
  const { site, stage } = recovered("n1");
  const other = { ...stage.ringOf("n7"), generation: 1, author: "c-one" };
  const lines = async () => (await site.lines()).map((one) => ({ ...one, firstRing: other }));
  await expect(run({ ...site, lines })).rejects.toThrow(/its name is not the hash/);
  await expect(run({ ...site, lines: () => Promise.resolve([]) })).rejects.toThrow(/shows no line/);
  const last = async () => (await site.lines()).slice(1);
  await expect(run({ ...site, lines: last })).rejects.toThrow(/does not show the generations before/);
});

test("a head of another history, and one that was never sent, are found", async () => {
  const stage = new OwnSiteStage(digest);
  stage.ring("n1");
  stage.grow(20);
  const other = new OwnSiteStage(digest);
  other.ring("n1");
  other.grow(20, { another: true });
  const [own, forked] = [stage.lineAt("n1"), other.lineAt("n1")];
  const [line] = own.lines() as [string];
  expect(forked.lines()).toEqual([line]);
  const site = siteOf(() => own);
  expect((await run(site)).lines).toMatchObject([{ through: 21 }]);
  await expect(run({ ...site, head: () => forked.checkpoint(line) })).rejects.toThrow(
    /not of the history that it sends/,
  );
  const page: AuditedSite["page"] = (name, after) => (after >= 10 ? Promise.resolve(null) : own.page(name, after));
  other.grow(5);
  await expect(run({ ...site, page, head: () => forked.checkpoint(line) })).rejects.toMatchObject({ sequence: 22 });
});
