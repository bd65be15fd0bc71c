// What a site takes from other sites' events: rings that they vouch for, and forks that they have proven. Nothing else.

import { describe, expect, it } from "vitest";
import type { ChainEvent, EventDraft, EventPayload } from "../../../core/events/index.ts";
import { checkPage, evidenceOf, lineIdOf } from "../../../core/mesh/proof/index.ts";
import { Registry } from "../../../core/mesh/registry/index.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import type { JournalReign } from "../../journal/journal-reign.ts";
import { VOUCHED_PER_LINE_MAX } from "../limits.ts";
import { WordOfOthers } from "./word-of-others.ts";

const tools = { digest, verify: fakeVerify(digest) };

function stage() {
  const registry = new Registry();
  const written: EventDraft[] = [];
  const apply = (draft: EventDraft): void => {
    written.push(draft);
    registry.apply({ ...draft, sequence: written.length } as unknown as ChainEvent);
  };
  const own = ringOf("home", ["n1"], digest);
  const registered = { name: "home", urls: [], line: lineIdOf(own, digest), ...own };
  apply({
    id: "0",
    eventType: "controller:registered",
    entityType: "controller",
    entityId: "home",
    payload: registered as unknown as EventPayload,
    timestamp: 1,
  });
  written.length = 0;
  const hub = new TestSite(ringOf("hub", ["n1"], digest), digest);
  const forker = new TestSite(ringOf("forker", ["n1"], digest), digest);
  forker.writeMany(3);
  const states = new Map([[forker.line, { ...forker.start, size: 3 }]]);
  const journal = {
    change: async (make: Parameters<JournalReign["change"]>[0]) => {
      const moment = { nowMs: 5, skippedMs: 0, leaderEpoch: 1, newId: () => `id-${written.length}` };
      for (const draft of make(moment)) apply(draft);
    },
  };
  const word = new WordOfOthers({ journal, registry, tools, stateOf: (line) => states.get(line) ?? null });
  /** Everything that the hub has written since the last time. */
  let state = hub.start;
  const take = async (): Promise<void> => {
    const checking = checkPage({ ...tools, state, page: hub.page(state.size, hub.size) });
    let step = checking.next();
    while (step.done !== true) step = checking.next();
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    ({ state } = step.value);
    await word.take(hub.line, step.value.events);
  };
  return { registry, written, hub, forker, take, word };
}

function vouch(hub: TestSite, id: string, change: object = {}): void {
  const ring = ringOf(id, ["n1"], digest);
  const payload = {
    url: `http://${id}:1`,
    name: id,
    urls: [],
    version: null,
    line: lineIdOf(ring, digest),
    ring,
    ...change,
  };
  hub.write({ eventType: "controller:registered", entityId: id, payload: payload as unknown as EventPayload });
}

describe("a registration in another site's line", () => {
  it("pins the first ring of a site that is not known here, once", async () => {
    const { hub, take, registry, written } = stage();
    vouch(hub, "c");
    vouch(hub, "c");
    await take();
    expect(written.map(({ eventType, entityId }) => [eventType, entityId])).toEqual([["controller:registered", "c"]]);
    const line = lineIdOf(ringOf("c", ["n1"], digest), digest);
    expect(registry.standingOf("c", line, "vouched").kind).toBe("wanted");
    expect(registry.standingOf("c", line, "approved").kind, "an operator has the last word").toBe("unapproved");
  });

  it.each([
    ["of this site itself", "home", {}],
    ["whose line is not that of its ring", "c", { line: `c.${"0".repeat(32)}` }],
    ["of another controller", "c", { ring: ringOf("d", ["n1"], digest) }],
    ["without a ring", "c", { ring: null }],
    ["of no ring", "c", { ring: { controller: "c", keys: [] } }],
  ])("%s says nothing", async (_name, id, change) => {
    const { hub, take, written } = stage();
    vouch(hub, id, change);
    await take();
    expect(written).toEqual([]);
  });

  it("replaces no ring that is pinned", async () => {
    const { hub, take, registry, written } = stage();
    vouch(hub, "c");
    await take();
    const [pinned] = registry.site("c")!.lines;
    const other = { ...ringOf("c", ["n2"], digest) };
    vouch(hub, "c", { ring: other, line: lineIdOf(other, digest) });
    await take();
    expect(written).toHaveLength(1);
    expect(registry.site("c")!.lines).toEqual([pinned]);
  });

  it("is one of so many at most, for each site that vouches", async () => {
    const { hub, take, registry } = stage();
    for (let at = 0; at < VOUCHED_PER_LINE_MAX; at++) vouch(hub, `s${at}`);
    await take();
    vouch(hub, "one-more");
    await take();
    expect(registry.size).toBe(VOUCHED_PER_LINE_MAX);
  });
});

describe("a fork that another site has proven", () => {
  it("is verified, and then an own event; evidence of nothing is none", async () => {
    const { hub, forker, take, registry, written } = stage();
    const other = new TestSite(forker.ring, digest);
    other.write({ payload: { another: "history" } });
    other.writeMany(2);
    const evidence = evidenceOf([forker.head(), other.head()], null, forker.ring, tools)!;
    const forked = (payload: object): void =>
      void hub.write({ eventType: "controller:forked", entityId: "forker", payload: payload as EventPayload });
    forked({ line: forker.line, evidence: { ...evidence, larger: evidence.smaller } });
    forked({ line: forker.line, evidence: null });
    forked({ line: forker.line });
    await take();
    expect([written, registry.forkOf(forker.line)]).toEqual([[], undefined]);
    forked({ line: forker.line, evidence });
    await take();
    expect(written.map(({ eventType, payload }) => [eventType, payload["line"]])).toEqual([
      ["controller:forked", forker.line],
    ]);
    expect(registry.forkOf(forker.line)).toBeDefined();
    forked({ line: forker.line, evidence });
    await take();
    expect(written, "once").toHaveLength(1);
  });

  it("counts also where no page of that line has come yet: the ring is pinned", async () => {
    const { hub, take, written } = stage();
    const late = new TestSite(ringOf("late", ["n1"], digest), digest);
    const other = new TestSite(ringOf("late", ["n1"], digest), digest);
    late.writeMany(2);
    other.writeMany(2);
    other.write({ eventType: "build:submitted", entityId: "another", payload: {} });
    late.writeMany(1);
    const evidence = evidenceOf([late.head(), other.head()], null, late.ring, tools)!;
    vouch(hub, "late");
    await take();
    hub.write({
      eventType: "controller:forked",
      entityId: "late",
      payload: { line: late.line, evidence } as unknown as EventPayload,
    });
    await take();
    expect(written.at(-1)).toMatchObject({ eventType: "controller:forked", payload: { line: late.line } });
  });
});
