// What a site takes from other sites' events: rings that they vouch for, and forks that they have proven. Nothing else.

import { describe, expect, it } from "vitest";
import type { ChainEvent, EventDraft, EventPayload } from "../../../core/events/index.ts";
import { checkPage, type CheckedEvent, evidenceOf, lineIdOf, ringHashOf } from "../../../core/mesh/proof/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { decideRegister, type PinnedLine, Registry } from "../../../core/mesh/registry/index.ts";
import { LINES_PER_SITE_MAX } from "../../../core/mesh/registry/limits.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import type { Ring as HeldRing } from "../../../core/mesh/model.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { ManualClock } from "../../../loops/test-clock.ts";
import type { JournalReign } from "../../journal/journal-reign.ts";
import { EVIDENCE_WAITING_LENGTH_MAX, EVIDENCE_WAITING_MAX, VOUCHED_PER_LINE_MAX } from "../limits.ts";
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
  const disk = { isFull: false };
  const journal = {
    change: async (make: Parameters<JournalReign["change"]>[0]) => {
      if (disk.isFull) throw new TenureError("DISK_FULL", "full");
      const moment = { nowMs: 5, skippedMs: 0, leaderEpoch: 1, newId: () => `id-${written.length}` };
      for (const draft of make(moment)) apply(draft);
    },
  };
  const word = new WordOfOthers({
    clock: new ManualClock(),
    journal,
    registry,
    tools,
    stateOf: (line) => states.get(line) ?? null,
  });
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
  const write = (eventType: EventDraft["eventType"], entityId: string, payload: object): void =>
    apply({ id: "a", eventType, entityType: "controller", entityId, payload: payload as EventPayload, timestamp: 1 });
  const approve = (entityId: string, hash: string): void =>
    write("controller:approved", entityId, { by: "ada", ring: hash });
  return { registry, written, hub, forker, take, word, states, approve, apply: write, disk };
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

  it("of a site that an operator has approved beforehand makes it no peer that this site is compared with", async () => {
    const { hub, take, registry, approve } = stage();
    approve("c", ringHashOf(ringOf("c", ["n1"], digest), digest));
    vouch(hub, "c");
    await take();
    expect([registry.status(registry.site("c")!), registry.peers()]).toEqual(["approved", []]);
    expect(registry.site("c")!.metadata).toEqual({ vouchedBy: hub.line });
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

  it("of a later generation brings the lines that it continues, where they are not known here", async () => {
    const { hub, take, registry, written } = stage();
    const named = (generation: number) => {
      const ring = ringOf("c", ["n1"], digest, generation);
      return { line: lineIdOf(ring, digest), ring };
    };
    const [one, two, three] = [named(1), named(2), named(3)];
    vouch(hub, "c", { ...three, earlier: [two, one] });
    await take();
    expect(written, "not in order").toEqual([]);
    vouch(hub, "c", { ...two, earlier: [one] });
    await take();
    expect(registry.site("c")!.lines).toEqual([one, two]);
    const alien = ringOf("c", ["n2"], digest, 4);
    const five = named(5);
    vouch(hub, "c", { ...five, earlier: [one, two, three, { line: lineIdOf(alien, digest), ring: alien }] });
    await take();
    expect(registry.site("c")!.lines, "with a key between that the site did not have").toEqual([one, two]);
    vouch(hub, "c", { ...named(4), earlier: [one, two, three] });
    await take();
    expect(registry.site("c")!.lines).toEqual([one, two, three, named(4)]);
  });

  it("of the next generation has the site's own keys; whose made-up one came first holds up another, until an operator approves it", async () => {
    const { registry, hub, take, approve } = stage();
    vouch(hub, "b");
    await take();
    const of = (author: string) => ({
      ...ringOf("b", ["n1"], digest, 2),
      author,
      keys: ringOf("b", ["n1"], digest).keys,
    });
    const [fake, real] = [of("hub"), of("b+1")];
    vouch(hub, "b", { ring: { ...fake, keys: ringOf("x", ["n1"], digest).keys }, line: "no" });
    vouch(hub, "b", { ring: fake, line: lineIdOf(fake, digest) });
    vouch(hub, "b", { ring: real, line: lineIdOf(real, digest) });
    await take();
    expect(registry.site("b")!.lines.map(({ ring }) => ring.author)).toEqual(["b.1", "hub"]);
    approve("b", ringHashOf(real, digest));
    // Of others than the approved one nothing is taken.
    const third = { ...of("hub"), generation: 3 };
    vouch(hub, "b", { ring: third, line: lineIdOf(third, digest) });
    vouch(hub, "b", { ring: real, line: lineIdOf(real, digest) });
    await take();
    expect(registry.site("b")!.lines.map(({ ring }) => ring.author)).toEqual(["b.1", "hub", "b+1"]);
    expect(registry.site("b")!.approvedRing).toBeNull();
  });

  it("changes neither the name nor the addresses of a site that has registered here itself", async () => {
    const { registry, hub, forker, take, apply } = stage();
    const { line, ring } = forker;
    const own = { url: "http://forker:1", name: "forker", urls: ["http://forker:1"], version: "1.0" };
    apply("controller:registered", "forker", { ...own, metadata: { rack: "7" }, line, ring });
    const next = { ...ring, generation: 2, author: "forker.2" };
    const said = { url: "http://hub:1", name: "hub", urls: ["http://hub:1"], version: "6.6" };
    vouch(hub, "forker", { ...said, line: lineIdOf(next, digest), ring: next });
    await take();
    expect(registry.site("forker")).toMatchObject({ ...own, metadata: { rack: "7" } });
    expect(registry.site("forker")!.lines).toHaveLength(2);
  });

  it("pins no line with keys that the site never had: not before a generation that follows in the same page", async () => {
    const { registry, hub, forker, take, apply } = stage();
    const { line, ring } = forker;
    apply("controller:registered", "forker", { url: "", name: "f", urls: [], version: null, metadata: {}, line, ring });
    const named = (of: typeof ring) => ({ line: lineIdOf(of, digest), ring: of });
    const [second, third] = [2, 3].map((generation) => named({ ...ring, generation, author: "made-up" }));
    const forged = named({ ...second!.ring, keys: hub.ring.keys });
    vouch(hub, "forker", second);
    vouch(hub, "forker", { ...third, earlier: [forged] });
    await take();
    expect(registry.standingOf("forker", forged.line, "vouched").kind).toBe("unknown");
    expect(registry.site("forker")!.lines.map((one) => one.line)).toEqual([line, second!.line]);
    // What was said in the page before is no other line.
    vouch(hub, "forker", { ...third, earlier: [second] });
    vouch(hub, "forker", { ...named({ ...third!.ring, generation: 4 }), earlier: [second, third] });
    await take();
    expect(registry.site("forker")!.lines.map((one) => one.ring.generation)).toEqual([1, 2, 3, 4]);
  });

  it("pins a line before one in which the site was met: its disk may not have it, and with the site's own keys nobody else writes there", async () => {
    const { registry, hub, forker, take, apply, approve } = stage();
    const named = (of: HeldRing) => ({ line: lineIdOf(of, digest), ring: of });
    const [first, second, third] = [1, 2, 3].map((generation) =>
      named({ ...forker.ring, generation, author: `forker+${generation}` }),
    ) as [PinnedLine, PinnedLine, PinnedLine];
    const own = { url: "http://forker:1", name: "forker", urls: [], version: null, metadata: {} };
    apply("controller:registered", "forker", { ...own, ...third });
    approve("forker", "a".repeat(64));
    const foreign = named({ ...first.ring, keys: hub.ring.keys });
    vouch(hub, "forker", foreign);
    vouch(hub, "forker", second);
    await take();
    expect(registry.site("forker")!.lines).toEqual([second, third]);
    // In one registration, by a site that learned of all of them at once.
    vouch(hub, "forker", { ...third, earlier: [first, second] });
    await take();
    expect(registry.site("forker")!.lines).toEqual([first, second, third]);
    expect(registry.site("forker")).toMatchObject({ ...own, approvedRing: "a".repeat(64) });
    for (const one of [first, second, third]) {
      expect(registry.standingOf("forker", one.line, "vouched").kind).toBe("wanted");
    }
    for (let at = 0; at < 2 * LINES_PER_SITE_MAX; at++) {
      vouch(hub, "forker", named({ ...first.ring, author: `made-up-${at}` }));
      if (at % 3 === 1) await take();
    }
    await take();
    expect(registry.site("forker")!.lines.length).toBeLessThan(LINES_PER_SITE_MAX);
    expect(registry.site("forker")!.lines.at(-1)).toEqual(third);
  });

  it("pins no line with other keys before a ring that an operator has approved by its hash", async () => {
    const { registry, hub, take, approve } = stage();
    const named = (of: HeldRing) => ({ line: lineIdOf(of, digest), ring: of });
    const approved = ringOf("c", ["n1"], digest, 3);
    approve("c", ringHashOf(approved, digest));
    const own = named({ ...approved, generation: 1 });
    const forged = named({ ...approved, generation: 2, keys: hub.ring.keys });
    vouch(hub, "c", { ...named(approved), earlier: [own, forged] });
    await take();
    expect(registry.site("c")!.lines).toEqual([]);
    vouch(hub, "c", { ...named(approved), earlier: [own] });
    await take();
    expect(registry.site("c")!.lines).toEqual([own, named(approved)]);
  });

  it("of generations that somebody made up with the site's own keys, of which nothing comes, pushes out no line of which something has come", async () => {
    const { registry, hub, forker, take, apply } = stage();
    const { line, ring } = forker;
    const registered = { url: "", name: "forker", urls: [], version: null, metadata: {} };
    apply("controller:registered", "forker", { ...registered, line, ring });
    for (let generation = 2; generation <= 2 * LINES_PER_SITE_MAX; generation++) {
      const fake = { ...ring, generation, author: "hub" };
      vouch(hub, "forker", { ring: fake, line: lineIdOf(fake, digest) });
      if (generation % 3 === 0) await take();
    }
    await take();
    const earlier = Array.from({ length: LINES_PER_SITE_MAX - 1 }, (_, at) => {
      const fake = { ...ring, generation: at + 2, author: "hub.2" };
      return { line: lineIdOf(fake, digest), ring: fake };
    });
    vouch(hub, "forker", { ...earlier.at(-1)!, earlier: earlier.slice(0, -1) });
    await take();
    expect(registry.standingOf("forker", line, "vouched").kind).toBe("wanted");
    const shown = { line, ring, ringHash: ringHashOf(ring, digest), earlier: [], provenBy: ring.keys[0]!.key };
    const asked = { id: "forker", ...registered, shown };
    const inForce = (of: string) => (of === line ? ring : null);
    expect(decideRegister(registry, asked, inForce).kind).not.toBe("refused");
    // The site's own next generations follow those that nobody has written in.
    const [second, third] = [2, 3].map((generation) => {
      const made = { ...ring, generation, author: `forker+${generation}` };
      return { line: lineIdOf(made, digest), ring: made };
    }) as [PinnedLine, PinnedLine];
    const proven = { ...third, ringHash: ringHashOf(third.ring, digest), provenBy: ring.keys[0]!.key };
    const decision = decideRegister(registry, { ...asked, shown: { ...proven, earlier: [second] } }, inForce);
    if (decision.kind !== "write") throw new Error(decision.kind);
    apply("controller:registered", "forker", decision.payload);
    for (const one of [line, second.line, third.line]) {
      expect(registry.standingOf("forker", one, "vouched").kind, one).toBe("wanted");
    }
  });

  it("of a ring that is pinned says nothing new, also where an operator approves it by its hash: two sites would tell each other for ever", async () => {
    const { registry, hub, take, approve, written } = stage();
    vouch(hub, "c");
    await take();
    approve("c", ringHashOf(ringOf("c", ["n1"], digest), digest));
    written.length = 0;
    vouch(hub, "c");
    await take();
    expect(written).toEqual([]);
    expect(registry.site("c")!.isApproved).toBe(true);
    // The approval has no ring to wait for: it does not keep the site's next generation away.
    const next = ringOf("c", ["n1"], digest, 2);
    vouch(hub, "c", { ring: next, line: lineIdOf(next, digest) });
    await take();
    expect(registry.site("c")!.lines.map(({ ring }) => ring.generation)).toEqual([1, 2]);
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

describe("a fork of this site's own line that another site has proven", () => {
  it("is an own event too: its operator is the one who has to begin a new line", async () => {
    const { hub, take, written, registry } = stage();
    const [one, other] = [0, 1].map(() => new TestSite(ringOf("home", ["n1"], digest), digest));
    one!.writeMany(3);
    other!.write({ entityId: "another" });
    other!.writeMany(2);
    const evidence = evidenceOf([one!.head(), other!.head()], null, one!.ring, tools)!;
    const payload = { line: one!.line, evidence } as unknown as EventPayload;
    hub.write({
      eventType: "controller:forked",
      entityId: "home",
      payload: { ...payload, evidence: { ...evidence, larger: evidence.smaller } },
    });
    await take();
    expect(written, "evidence of nothing").toEqual([]);
    hub.write({ eventType: "controller:forked", entityId: "home", payload });
    await take();
    expect(written).toMatchObject([{ eventType: "controller:forked", entityId: "home", payload: { line: one!.line } }]);
    expect(registry.forkOf(one!.line)).toBeDefined();
  });
});

describe("evidence of a fork that comes before the line's ring is known", () => {
  function late() {
    const line = new TestSite(ringOf("late", ["n1"], digest), digest);
    const other = new TestSite(ringOf("late", ["n1"], digest), digest);
    line.writeMany(3);
    other.write({ payload: { another: "history" } });
    other.writeMany(2);
    return { line, evidence: evidenceOf([line.head(), other.head()], null, line.ring, tools)! };
  }
  const forked = (hub: TestSite, payload: object): void =>
    void hub.write({ eventType: "controller:forked", entityId: "late", payload: payload as EventPayload });

  it("waits for the line's first page, and is verified then", async () => {
    const { hub, take, word, written, registry } = stage();
    const { line, evidence } = late();
    forked(hub, { line: line.line, evidence });
    await take();
    vouch(hub, "late");
    await take();
    expect(written.map(({ eventType }) => eventType)).toEqual(["controller:registered"]);
    await word.take(line.line, eventsOf(line));
    expect(written.at(-1)).toMatchObject({ eventType: "controller:forked", payload: { line: line.line } });
    expect(registry.forkOf(line.line)).toBeDefined();
    await word.take(line.line, eventsOf(line));
    expect(written, "once").toHaveLength(2);
  });

  it("waits for the ring under which it was signed", async () => {
    const { hub, take, word, written, states } = stage();
    const { line, evidence } = late();
    states.set(line.line, { ...line.start, ring: ringOf("late", ["n0"], digest) });
    forked(hub, { line: line.line, evidence });
    await take();
    await word.take(line.line, []);
    expect(written).toEqual([]);
    states.set(line.line, line.start);
    await word.take(line.line, []);
    expect(written).toHaveLength(1);
  });

  it("waits on where the fork that it proves can't be written, and is forgotten when it is", async () => {
    const { hub, take, word, written, states, disk } = stage();
    const { line, evidence } = late();
    forked(hub, { line: line.line, evidence });
    await take();
    states.set(line.line, line.start);
    disk.isFull = true;
    await expect(word.take(line.line, [])).rejects.toMatchObject({ code: "DISK_FULL" });
    disk.isFull = false;
    await word.take(line.line, []);
    expect(written.map(({ eventType }) => eventType)).toEqual(["controller:forked"]);
    await word.take(line.line, []);
    expect(written).toHaveLength(1);
  });

  it("is kept up to a bound, and one site does not push out what others have proven", async () => {
    const { hub, take, word, written, states } = stage();
    const { line, evidence } = late();
    forked(hub, { line: line.line, evidence });
    await take();
    for (let at = 0; at < 3; at++) {
      const evil = new TestSite(ringOf(`evil${at}`, ["n1"], digest), digest);
      for (let one = 0; one < EVIDENCE_WAITING_MAX / 2; one++)
        forked(evil, { evidence: { line: `nobody.${one}`, ring: "" } });
      forked(evil, { evidence: { line: line.line, ring: "x".repeat(EVIDENCE_WAITING_LENGTH_MAX) } });
      await word.take(evil.line, eventsOf(evil));
    }
    states.set(line.line, line.start);
    await word.take(line.line, []);
    expect(written).toHaveLength(1);
  });
});

describe("a hostile registration in another site's line", () => {
  it.each([
    ["with addresses that are no list", { urls: 5 }],
    ["with addresses that are no texts", { urls: [{}] }],
    ["with more addresses than a site has", { urls: Array.from({ length: 33 }, () => "http://c:1") }],
    ["with a version that is no text", { version: {} }],
    ["with an address without a bound", { url: `http://${"c".repeat(4_000)}:1` }],
    ["with a name without a bound", { name: "c".repeat(400_000) }],
    ["with a version without a bound", { version: "1".repeat(400_000) }],
  ])("%s says nothing: it would be in the state of every node, and of every site after it", async (_name, change) => {
    const { hub, take, written } = stage();
    vouch(hub, "c", change);
    await take();
    expect(written).toEqual([]);
  });

  it("fills no registry through sites that it vouches for itself", async () => {
    const { hub, word, registry, take } = stage();
    for (let at = 0; at < VOUCHED_PER_LINE_MAX; at++) vouch(hub, `s${at}`);
    await take();
    for (let at = 0; at < 4; at++) {
      const puppet = new TestSite(ringOf(`s${at}`, ["n1"], digest), digest);
      for (let one = 0; one < VOUCHED_PER_LINE_MAX; one++) vouch(puppet, `t${at}-${one}`);
      await word.take(puppet.line, eventsOf(puppet));
    }
    expect(registry.size).toBe(VOUCHED_PER_LINE_MAX);
  });

  it("costs few signatures in one turn", async () => {
    const { registry, forker } = stage();
    const clock = new ManualClock();
    let verified = 0;
    const verify: typeof tools.verify = (...asked) => {
      verified++;
      clock.nowMs += 0.15;
      return tools.verify(...asked);
    };
    const journal = { change: async () => undefined };
    const word = new WordOfOthers({ clock, journal, registry, tools: { digest, verify }, stateOf: () => forker.start });
    const hub = new TestSite(ringOf("hub", ["n1"], digest), digest);
    const evidence = { line: forker.line, ring: ringHashOf(forker.ring, digest), rootAt: "0".repeat(64), path: [] };
    const notes = { smaller: forker.head(2), larger: forker.head(3) };
    for (let at = 0; at < 300; at++) {
      const payload = { line: forker.line, evidence: { ...evidence, ...notes } };
      hub.write({ eventType: "controller:forked", entityId: "forker", payload: payload as unknown as EventPayload });
    }
    void word.take(hub.line, eventsOf(hub));
    expect(verified, "each is about 0.15 ms").toBeLessThan(64);
  });
});

function eventsOf(site: TestSite): readonly CheckedEvent[] {
  const checking = checkPage({ ...tools, state: site.start, page: site.page(0, site.size) });
  for (let step = checking.next(); ; step = checking.next()) {
    if (step.done !== true) continue;
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    return step.value.events as readonly CheckedEvent[];
  }
}

describe("that a site has left", () => {
  const says = (hub: TestSite, what: "left" | "joined", id = "hub"): void => {
    hub.write({ eventType: `controller:${what}`, entityId: id, payload: { by: "ada" } });
  };
  const knowHub = (registry: Registry, hub: TestSite): void => {
    const payload = { url: "http://hub:1", name: "hub", urls: [], version: null, line: hub.line, ring: hub.start.ring };
    const event = { eventType: "controller:registered", entityId: "hub", payload, sequence: 1, timestamp: 1 };
    registry.apply(event as unknown as ChainEvent);
  };

  it("is believed of its own line, with its place there, before the page is received", async () => {
    const { hub, take, registry, written } = stage();
    knowHub(registry, hub);
    says(hub, "left");
    await take();
    expect(written).toMatchObject([
      { eventType: "controller:left", entityId: "hub", payload: { line: hub.line, sequence: hub.size } },
    ]);
    expect(registry.peers()).toEqual([]);
  });

  it("is not believed of another site's line", async () => {
    const { hub, take, registry, written } = stage();
    knowHub(registry, hub);
    vouch(hub, "c");
    says(hub, "left");
    says(hub, "left", "c");
    says(hub, "left", "home");
    await take();
    expect(written.map(({ eventType, entityId }) => `${eventType} ${entityId}`)).toEqual([
      "controller:registered c",
      "controller:left hub",
    ]);
    expect(registry.leftAt).toBeNull();
  });

  it("and has come back in the same page: the last word counts", async () => {
    const { hub, take, registry, written } = stage();
    knowHub(registry, hub);
    says(hub, "left");
    says(hub, "joined");
    await take();
    expect(written).toEqual([]);
    says(hub, "left");
    says(hub, "joined");
    says(hub, "left");
    await take();
    expect(written).toHaveLength(1);
    expect(written.at(-1)).toMatchObject({ eventType: "controller:left", payload: { sequence: hub.size } });
    expect(registry.peers()).toEqual([]);
  });
});
