import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { OwnSiteStage } from "../../controller/mesh/own/test-own-site.ts";
import type { OwnLine } from "../../controller/mesh/own/own-line.ts";
import { PAGE_ITEMS_MAX, ringHashOf } from "../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../core/mesh/test-signatures.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { MESH_PAGES_AHEAD_MAX } from "../limits.ts";
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

test("a head that was signed between two changes of the ring is of the ring in force then", async () => {
  const stage = new OwnSiteStage(digest);
  stage.ring("n1");
  stage.grow(20);
  const nodes = new Map(["n1", "n2", "n3"].map((node) => [node, stage.lineAt(node)]));
  /** Whoever has a key of the ring in force after this event. */
  let changes: number[] = [Infinity, Infinity];
  const at = (after: number): OwnLine => nodes.get(`n${1 + changes.filter((one) => one <= after).length}`)!;
  const site: AuditedSite = {
    ...siteOf(() => nodes.get("n1")!),
    page: (line, after) => at(after).page(line, after),
    head: async (line) => {
      changes = [stage.ring("n1", "n2"), Infinity];
      changes[0] = stage.ring("n2");
      stage.grow(2);
      const head = await nodes.get("n2")!.checkpoint(line);
      stage.ring("n2", "n3");
      changes[1] = stage.ring("n3");
      stage.grow(2);
      return head;
    },
  };
  const second = ringHashOf(stage.ringOf("n2"), digest);
  expect(await run(site, { ringHash: second, publicKey: null })).toMatchObject({
    lines: [{ through: 29, ringChanges: 4 }],
    ringHash: ringHashOf(stage.ringOf("n3"), digest),
  });
});

describe("pages are asked for before they are needed:", () => {
  const EVENTS = 10 * PAGE_ITEMS_MAX;
  const stage = new OwnSiteStage(digest);
  stage.ring("n1");
  stage.grow(EVENTS - 1);
  const own = stage.lineAt("n1");

  /** `asked`: after which event each page was asked for, and how far the audit had come then. */
  async function watched(page: AuditedSite["page"]) {
    const asked: { after: number; through: number }[] = [];
    let through = 0;
    const site = siteOf(() => own, {
      page: (line, after) => {
        asked.push({ after, through });
        return page(line, after);
      },
    });
    const progress = (to: number): void => void (through = to);
    const outcome = await audit({ site, digest, verify: fakeVerify(digest), progress }, NOTHING).catch(
      (error: unknown) => error,
    );
    // Whatever was under way goes on.
    for (let turn = 0; turn < 50; turn++) await setImmediate();
    return { asked, through, outcome };
  }

  test("a few, and no more, so that memory does not grow with the history", async () => {
    const { asked, outcome } = await watched((line, after) => own.page(line, after));
    expect(outcome).toMatchObject({ lines: [{ through: EVENTS }] });
    expect(asked.map(({ after }) => after)).toEqual(Array.from({ length: 11 }, (_, at) => at * PAGE_ITEMS_MAX));
    const ahead = asked.map(({ after, through }) => (after - through) / PAGE_ITEMS_MAX);
    expect(Math.max(...ahead)).toBe(MESH_PAGES_AHEAD_MAX);
  });

  test("what goes wrong with one is reported when all before it are proven", async () => {
    const failed = new Error("the site is gone");
    const { through, outcome } = await watched((line, after) =>
      after === 4 * PAGE_ITEMS_MAX ? Promise.reject(failed) : own.page(line, after),
    );
    expect(outcome).toBe(failed);
    expect(through).toBe(4 * PAGE_ITEMS_MAX);
    const malformed = await watched((line, after) =>
      after === 2 * PAGE_ITEMS_MAX ? Promise.resolve({}) : own.page(line, after),
    );
    expect(malformed.outcome).toMatchObject({ sequence: 2 * PAGE_ITEMS_MAX + 1 });
    expect(malformed.through).toBe(2 * PAGE_ITEMS_MAX);
  });

  test("a lie in an earlier page is the one that is named, and nothing more is asked for", async () => {
    const place = PAGE_ITEMS_MAX + 100;
    const { asked, outcome } = await watched(async (line, after) => {
      if (after === 2 * PAGE_ITEMS_MAX) throw new Error("the site is gone");
      const page = (await own.page(line, after))!;
      if (after !== PAGE_ITEMS_MAX) return page;
      const text = page.items[place - after - 1];
      if (typeof text !== "string") throw new Error("it has no text");
      return { ...page, items: page.items.with(place - after - 1, text.replace('"payload":{', '"payload":{"x":1')) };
    });
    expect(outcome).toMatchObject({ sequence: place });
    expect(asked).toHaveLength(3);
    const early = await watched(async (line, after) => {
      const page = (await own.page(line, after))!;
      return after === 0 ? { ...page, checkpoint: page.checkpoint.replace(/.{4}\n$/, "AAA=\n") } : page;
    });
    expect(early.outcome).toMatchObject({ sequence: 1 });
    expect(early.asked.length).toBeLessThanOrEqual(1 + MESH_PAGES_AHEAD_MAX);
  });

  test("an abort ends it", async () => {
    const end = new AbortController();
    const { asked, outcome } = await watched(async (line, after) => {
      if (after === 3 * PAGE_ITEMS_MAX) end.abort(new Error("aborted"));
      end.signal.throwIfAborted();
      return own.page(line, after);
    });
    expect(outcome).toBe(end.signal.reason);
    expect(asked).toHaveLength(4);
  });
});
