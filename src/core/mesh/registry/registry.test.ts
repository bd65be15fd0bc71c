import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../events/index.ts";
import type { Ring } from "../model.ts";
import {
  decideApprove,
  decideEvict,
  decideExpire,
  decideHeartbeat,
  decideJoin,
  decideLeave,
  decidePresence,
  decideRegister,
  type Registration,
} from "./decide.ts";
import { systemDigest } from "../../../drivers/system/digest.ts";
import { lineIdOf } from "../proof/index.ts";
import { earlierLines } from "./earlier.ts";
import { LINES_PER_SITE_MAX, SITES_MAX } from "./limits.ts";
import { Registry } from "./registry.ts";

const ring = (controller: string, key: string, generation = 1): Ring => ({
  controller,
  generation,
  author: controller,
  keys: [{ node: "n1", key }],
});

/** The line of a ring is named by its key here. */
const shown = (made: Ring, provenBy: string | null = made.keys[0]!.key): Registration["shown"] => {
  const ringHash = `hash-${made.generation}-${made.keys[0]!.key}`;
  return { line: `${made.controller}.${ringHash}`, ring: made, ringHash, earlier: [], provenBy };
};

const asked = (id: string, change: Partial<Registration> = {}): Registration => ({
  id,
  url: `http://${id}:7070`,
  name: id,
  urls: [],
  version: null,
  shown: null,
  metadata: {},
  ...change,
});

class Stage {
  readonly registry = new Registry();
  sequence = 0;
  inForce = new Map<string, Ring>();

  apply(eventType: StoredEvent["eventType"], entityId: string, payload: object): void {
    const event = { eventType, entityId, payload, sequence: ++this.sequence, timestamp: 1_000.5 + this.sequence };
    this.registry.apply(event as unknown as StoredEvent);
  }

  own(key: string, generation = 1): void {
    const { line } = shown(ring("home", key, generation))!;
    const payload = { name: "home", urls: [], line, generation, author: "home", keys: [{ node: "n1", key }] };
    this.apply("controller:registered", "home", payload);
  }

  /** "written", "unchanged" or the refusal's code. */
  register(registration: Registration): string {
    const decision = decideRegister(this.registry, registration, (line) => this.inForce.get(line) ?? null);
    if (decision.kind === "write") this.apply("controller:registered", registration.id, decision.payload);
    return decision.kind === "refused" ? decision.code : decision.kind;
  }

  approve(id: string, hash: string | null = null): string {
    const decision = decideApprove(this.registry, id, { by: "ada", ring: hash });
    if (decision.kind === "write") this.apply("controller:approved", id, decision.payload);
    return decision.kind === "refused" ? decision.code : decision.kind;
  }

  evict(id: string): string {
    const decision = decideEvict(this.registry, id, "ada", () => 7);
    if (decision.kind === "write") this.apply("controller:evicted", id, decision.payload);
    return decision.kind === "refused" ? decision.code : decision.kind;
  }

  /** What the line of a site says, at a place of it. */
  says(id: string, hasLeft: boolean, sequence: number, line = this.registry.site(id)!.lines.at(-1)!.line): string {
    const decision = decidePresence(this.registry, id, { line, sequence, hasLeft });
    if (decision.kind === "write") {
      this.apply(hasLeft ? "controller:left" : "controller:joined", id, decision.payload);
    }
    return decision.kind === "refused" ? decision.code : decision.kind;
  }

  leave(): string {
    const decision = decideLeave(this.registry, "ada");
    if (decision.kind === "write") this.apply("controller:left", "home", decision.payload);
    return decision.kind === "refused" ? decision.code : decision.kind;
  }

  join(): string {
    const decision = decideJoin(this.registry, "ada");
    if (decision.kind === "write") this.apply("controller:joined", "home", decision.payload);
    return decision.kind;
  }

  status(id: string): string {
    return this.registry.status(this.registry.site(id)!);
  }
}

describe("the own site", () => {
  it("has the ring of its last registration, and the first ring of each of its lines", () => {
    const stage = new Stage();
    stage.own("k1");
    const { line } = stage.registry.own!;
    stage.apply("controller:registered", "home", {
      name: "home",
      urls: ["http://a"],
      line,
      generation: 1,
      author: "home",
      keys: [{ node: "n1", key: "k2" }],
    });
    expect(stage.registry.own).toMatchObject({ keys: [{ key: "k2" }], urls: ["http://a"], since: 2, generation: 1 });
    expect(stage.registry.own!.lines).toEqual([{ line, ring: ring("home", "k1") }]);
    stage.own("k3", 2);
    expect(stage.registry.own!.lines.map((one) => one.ring.generation)).toEqual([1, 2]);
  });

  it("keeps its controller id, and nobody else registers under it", () => {
    const stage = new Stage();
    stage.own("k1");
    stage.apply("controller:registered", "other", { ...stage.registry.own!, keys: [] });
    expect(stage.registry.own!.controllerId).toBe("home");
    expect(stage.register(asked("home"))).toBe("CONTROLLER_CONFLICT");
    expect(stage.approve("home", "hash")).toBe("BAD_REQUEST");
  });
});

describe("registering", () => {
  it("writes what is new, and nothing when the same comes again", () => {
    const stage = new Stage();
    expect(stage.register(asked("b"))).toBe("write");
    expect(stage.register(asked("b"))).toBe("unchanged");
    expect(stage.register(asked("b", { url: "http://b:2" }))).toBe("write");
    expect(stage.register(asked("b", { url: "http://b:2", shown: shown(ring("b", "k1")) }))).toBe("write");
    expect(stage.register(asked("b", { url: "http://b:2", shown: shown(ring("b", "k1")) }))).toBe("unchanged");
    expect(stage.registry.site("b")).toMatchObject({ url: "http://b:2", registeredAtMs: 1_003 });
    stage.register(asked("c", { metadata: { a: 1, b: { c: 2, d: 3 } } }));
    expect(stage.register(asked("c", { metadata: { b: { d: 3, c: 2 }, a: 1 } }))).toBe("unchanged");
  });

  it("needs a proof by a key of the ring that is shown", () => {
    const stage = new Stage();
    expect(stage.register(asked("b", { shown: shown(ring("b", "k1"), null) }))).toBe("PERMISSION_DENIED");
    expect(stage.register(asked("b", { shown: shown(ring("b", "k1"), "k2") }))).toBe("PERMISSION_DENIED");
    expect(stage.registry.size).toBe(0);
  });

  it("with another ring under a known id is a conflict, until an operator approves that ring by its hash", () => {
    const stage = new Stage();
    stage.register(asked("b", { shown: shown(ring("b", "k1")) }));
    const other = shown(ring("b", "k2"), null)!;
    expect(stage.register(asked("b", { shown: other }))).toBe("CONTROLLER_CONFLICT");
    expect(stage.register(asked("b", { shown: shown(ring("b", "k2", 2)) }))).toBe("CONTROLLER_CONFLICT");
    expect(stage.approve("b", "hash-of-another")).toBe("write");
    expect(stage.register(asked("b", { shown: other }))).toBe("CONTROLLER_CONFLICT");
    expect(stage.approve("b", other.ringHash)).toBe("write");
    expect(stage.register(asked("b", { shown: other }))).toBe("write");
    expect(stage.registry.site("b")).toMatchObject({ approvedRing: null, isApproved: true });
    expect(stage.registry.site("b")!.lines.map((one) => one.ring.keys[0]!.key)).toEqual(["k1", "k2"]);
  });

  it("with a ring that is pinned and approved needs no proof until its keys are known here, and then the approval is over", () => {
    const stage = new Stage();
    const first = ring("b", "k1");
    stage.register(asked("b", { shown: shown(first) }));
    const rotated = asked("b", { shown: shown(first, "k9") });
    expect(stage.register(rotated)).toBe("PERMISSION_DENIED");
    expect(stage.approve("b", shown(first)!.ringHash)).toBe("write");
    expect([stage.register(rotated), stage.register(rotated)]).toEqual(["unchanged", "unchanged"]);
    stage.inForce.set(shown(first)!.line, ring("b", "k9"));
    expect([stage.register(rotated), stage.register(rotated)]).toEqual(["write", "unchanged"]);
    expect(stage.registry.site("b")).toMatchObject({ approvedRing: null, isApproved: true });
    expect(stage.register(asked("b", { shown: shown(first, "stolen") }))).toBe("PERMISSION_DENIED");
  });

  it("of the next generation needs a key of the one before; the same generation twice is a conflict", () => {
    const stage = new Stage();
    stage.register(asked("b", { shown: shown(ring("b", "k1")) }));
    const next = {
      ...ring("b", "k2", 2),
      keys: [
        { node: "n1", key: "k2" },
        { node: "n2", key: "k1" },
      ],
    };
    expect(stage.register(asked("b", { shown: shown(next, "k2") }))).toBe("CONTROLLER_CONFLICT");
    expect(stage.register(asked("b", { shown: shown(next, "k1") }))).toBe("write");
    expect(stage.register(asked("b", { shown: shown(ring("b", "k1", 2), "k1") }))).toBe("CONTROLLER_CONFLICT");
  });

  it("of the next generation is not kept out by one that somebody made up with the site's own keys", () => {
    const stage = new Stage();
    const first = ring("b", "k1");
    stage.register(asked("b", { shown: shown(first) }));
    const { line } = shown(first)!;
    stage.inForce.set(line, first);
    // What a hostile site vouched for (links/word-of-others.ts): the keys are in force, the ring is not the site's.
    const fake = { ...ring("b", "k1", 2), keys: [{ node: "n7", key: "k1" }] };
    stage.apply("controller:registered", "b", {
      url: "",
      name: "b",
      urls: [],
      version: null,
      line: "b.fake",
      ring: fake,
    });
    expect(stage.registry.site("b")?.lines).toHaveLength(2);
    const next = shown(ring("b", "k1", 2), "k1");
    expect(stage.register(asked("b", { shown: { ...next!, provenBy: "k9" } }))).toBe("CONTROLLER_CONFLICT");
    expect(stage.register(asked("b", { shown: next }))).toBe("write");
    // Once something has come of a generation, it is the last one.
    stage.inForce.set(next!.line, next!.ring);
    expect(stage.register(asked("b", { shown: { ...shown(fake, "k1")!, line: "b.else" } }))).toBe(
      "CONTROLLER_CONFLICT",
    );
  });

  it("takes a proof by the ring in force of a line that this site has", () => {
    const stage = new Stage();
    const first = shown(ring("b", "k1"))!;
    stage.register(asked("b", { shown: first }));
    expect(stage.register(asked("b", { shown: { ...first, provenBy: "k9" } }))).toBe("PERMISSION_DENIED");
    stage.inForce.set(first.line, ring("b", "k9"));
    expect(stage.register(asked("b", { shown: { ...first, provenBy: "k9" } }))).toBe("unchanged");
  });

  it("is not done with a key that the site has removed, as far as that is known here: it may be stolen", () => {
    const stage = new Stage();
    const first = shown(ring("b", "k1"))!;
    stage.register(asked("b", { shown: first }));
    stage.inForce.set(first.line, ring("b", "k9"));
    expect(stage.register(asked("b", { url: "http://thief:1", shown: first }))).toBe("PERMISSION_DENIED");
    expect(stage.register(asked("b", { shown: shown(ring("b", "k7", 2), "k1") }))).toBe("CONTROLLER_CONFLICT");
    expect(stage.register(asked("b", { shown: shown(ring("b", "k7", 2), "k9") }))).toBe("write");
  });

  it("is bounded", () => {
    const stage = new Stage();
    for (let at = 0; at < SITES_MAX; at++) stage.register(asked(`s${at}`));
    expect(stage.register(asked("one-more"))).toBe("OVERLOADED");
    expect(stage.approve("one-more", "hash")).toBe("OVERLOADED");
    stage.apply("controller:registered", "one-more", { url: "", name: "", urls: [], version: null });
    expect(stage.registry.size).toBe(SITES_MAX);
  });

  it("claims the authors of its lines, also after a snapshot", () => {
    const stage = new Stage();
    const claims = (): unknown => ["b", "b+2", "c", "nobody"].map((author) => stage.registry.claimsOf(author));
    stage.register(asked("b", { shown: shown(ring("b", "k1")) }));
    expect(claims()).toEqual([["b"], [], [], []]);
    stage.register(asked("b", { shown: shown({ ...ring("b", "k1", 2), author: "b+2" }) }));
    stage.register(asked("c", { shown: shown({ ...ring("c", "k3"), author: "b" }) }));
    expect(claims()).toEqual([["b", "c"], ["b"], [], []]);
    const written = stage.registry.encode();
    stage.registry.restore(null);
    expect(claims()).toEqual([[], [], [], []]);
    stage.registry.restore(written);
    expect(claims()).toEqual([["b", "c"], ["b"], [], []]);
  });

  it("keeps the newest lines of a site", () => {
    const stage = new Stage();
    for (let at = 1; at <= LINES_PER_SITE_MAX + 1; at++) {
      expect(stage.register(asked("b", { shown: shown(ring("b", "k1", at)) }))).toBe("write");
    }
    expect(
      stage.registry
        .site("b")!
        .lines.map((one) => one.ring.generation)
        .slice(0, 1),
    ).toEqual([2]);
  });
});

describe("what becomes of a site", () => {
  it("expires once, keeps its approval and its lines, and comes back when it registers again", () => {
    const stage = new Stage();
    const first = shown(ring("b", "k1"))!;
    stage.register(asked("b", { shown: first }));
    stage.approve("b");
    expect(decideExpire(stage.registry, ["b", "nobody"])).toEqual(["b"]);
    stage.apply("controller:expired", "b", {});
    expect([stage.status("b"), decideExpire(stage.registry, ["b"])]).toEqual(["expired", []]);
    expect(stage.registry.standingOf("b", first.line, "approved")).toMatchObject({ kind: "wanted" });
    expect(stage.register(asked("b", { shown: first }))).toBe("write");
    expect(stage.status("b")).toBe("approved");
  });

  it("is evicted, with how much was taken of its lines, and refused until it is approved", () => {
    const stage = new Stage();
    const first = shown(ring("b", "k1"))!;
    stage.register(asked("b", { shown: first }));
    expect(decideEvict(stage.registry, "b", "ada", () => 7)).toEqual({
      kind: "write",
      payload: { by: "ada", through: { [first.line]: 7 } },
    });
    expect([stage.evict("b"), stage.evict("b"), stage.evict("nobody")]).toEqual(["write", "unchanged", "NOT_FOUND"]);
    expect(stage.register(asked("b", { shown: first }))).toBe("PERMISSION_DENIED");
    expect(stage.registry.standingOf("b", first.line, "vouched")).toEqual({ kind: "evicted" });
    expect(decideExpire(stage.registry, ["b"])).toEqual([]);
    expect([stage.approve("b"), stage.approve("b"), stage.status("b")]).toEqual(["write", "unchanged", "approved"]);
    expect(stage.register(asked("b", { shown: first }))).toBe("unchanged");
  });

  it("is taken only when approved, where that is asked for; a line that nobody registered is unknown", () => {
    const stage = new Stage();
    const first = shown(ring("b", "k1"))!;
    stage.register(asked("b", { shown: first }));
    const { registry } = stage;
    expect(registry.standingOf("b", first.line, "vouched")).toEqual({ kind: "wanted", firstRing: first.ring });
    expect(registry.standingOf("b", first.line, "approved")).toEqual({ kind: "unapproved" });
    expect(registry.standingOf("b", "b.other", "vouched")).toEqual({ kind: "unknown" });
    expect(registry.standingOf("c", "c.line", "vouched")).toEqual({ kind: "unknown" });
  });

  it("stays frozen after a fork, and returns with another line that an operator approved", () => {
    const stage = new Stage();
    const first = shown(ring("b", "k1"))!;
    stage.register(asked("b", { shown: first }));
    stage.apply("controller:forked", "b", { line: first.line, evidence: {} });
    stage.apply("controller:forked", "b", { line: first.line, evidence: {} });
    expect(stage.registry.standingOf("b", first.line, "vouched")).toEqual({ kind: "forked", evidence: 2 });
    expect([stage.status("b"), stage.approve("b")]).toEqual(["forked", "BAD_REQUEST"]);
    const next = shown(ring("b", "k2", 2))!;
    stage.approve("b", next.ringHash);
    expect([stage.status("b"), stage.register(asked("b", { shown: next })), stage.status("b")]).toEqual([
      "forked",
      "write",
      "approved",
    ]);
    expect(stage.registry.standingOf("b", first.line, "vouched").kind).toBe("forked");
  });

  it("may be approved by its ring before it registers, and then needs no proof; by its bare id it may not", () => {
    const stage = new Stage();
    const rotated = shown(ring("b", "k1"), "k9")!;
    expect(stage.approve("b")).toBe("NOT_FOUND");
    expect(stage.approve("b", rotated.ringHash)).toBe("write");
    expect([stage.status("b"), stage.registry.site("b")!.lines]).toEqual(["approved", []]);
    expect(stage.register(asked("b", { shown: rotated }))).toBe("write");
    expect(stage.status("b")).toBe("approved");
  });
});

describe("the own line after a start", () => {
  const place = { through: 7, hash: "h", frontier: "f" };
  const renewed = { ...place, line: "home.1", before: "home", author: "home+1" };

  it("the first place counts until the site is resumed; how a new line began stays", () => {
    const stage = new Stage();
    stage.own("k0");
    stage.apply("controller:gated", "home", place);
    stage.apply("controller:gated", "home", { ...place, through: 9 });
    expect(stage.registry.gated).toEqual(place);
    const other = new Registry();
    other.restore(stage.registry.encode());
    expect(other.gated).toEqual(place);
    stage.apply("controller:resumed", "home", { by: "me", renewed });
    stage.apply("controller:gated", "home", { ...place, through: 12 });
    stage.apply("controller:resumed", "home", { by: null, renewed: null });
    expect([stage.registry.gated, stage.registry.renewed]).toEqual([null, renewed]);
  });

  it("peers are those that registered here themselves, and are not evicted", () => {
    const stage = new Stage();
    for (const id of ["b", "c", "d"]) stage.register(asked(id, { shown: shown(ring(id, "k1")) }));
    stage.register(asked("e", { shown: shown(ring("e", "k1")), metadata: { vouchedBy: "b.1" } }));
    stage.apply("controller:evicted", "c", { by: "me", through: {} });
    stage.apply("controller:expired", "d", {});
    stage.apply("controller:approved", "unheard", { by: "me", ring: "r" });
    expect(stage.registry.peers()).toEqual(["b", "d"]);
  });
});

describe("written down", () => {
  it("is nothing where nothing happened, and comes back whole", () => {
    const stage = new Stage();
    stage.apply("build:submitted", "j1", {});
    expect(stage.registry.encode()).toBeNull();
    stage.own("k0");
    stage.register(asked("b", { shown: shown(ring("b", "k1")), metadata: { rack: 3 }, version: "1.2.3" }));
    stage.apply("controller:forked", "x", { line: "x.1", evidence: {} });
    stage.apply("controller:resumed", "home", {});
    const other = new Registry();
    other.restore(stage.registry.encode());
    expect(other.encode()).toBe(stage.registry.encode());
    expect([other.own, other.site("b"), other.forkOf("x.1"), other.resumedAt]).toEqual([
      stage.registry.own,
      stage.registry.site("b"),
      4,
      5,
    ]);
    other.restore(null);
    expect([other.encode(), other.size, other.own]).toEqual([null, 0, null]);
  });
});

describe("a site that leaves", () => {
  it("says so once, and joins once; before it has a line there is nothing to leave", () => {
    const stage = new Stage();
    expect(stage.leave()).toBe("BAD_REQUEST");
    expect(stage.join()).toBe("unchanged");
    stage.own("k1");
    expect([stage.leave(), stage.leave()]).toEqual(["write", "unchanged"]);
    expect(stage.registry.leftAt).toBe(2);
    const restored = new Registry();
    restored.restore(stage.registry.encode());
    expect(restored.leftAt).toBe(2);
    expect([stage.join(), stage.join()]).toEqual(["write", "unchanged"]);
    expect(stage.registry.leftAt).toBeNull();
  });

  it("hears those that are linked until their links end, and writes nothing of it; who has no link is refused as by a standalone site", () => {
    const stage = new Stage();
    stage.own("k1");
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    stage.leave();
    const beat = { id: "paris", url: "http://paris:2" };
    expect(decideHeartbeat(stage.registry, beat, true)).toEqual({ kind: "unchanged" });
    expect(decideHeartbeat(stage.registry, beat, false)).toMatchObject({ kind: "refused", code: "MESH_DISABLED" });
    expect(decideHeartbeat(stage.registry, { id: "oslo" }, true)).toMatchObject({ code: "MESH_DISABLED" });
    stage.join();
    expect(decideHeartbeat(stage.registry, beat, true)).toMatchObject({ kind: "write" });
  });

  it("a second word of two leaders changes nothing: the first place counts", () => {
    const stage = new Stage();
    stage.own("k1");
    stage.leave();
    stage.apply("controller:left", "home", { by: "ada" });
    expect(stage.registry.leftAt).toBe(2);
  });

  it("is waited for no more, expires no more, and is back when it registers", () => {
    const stage = new Stage();
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    expect(stage.registry.peers()).toEqual(["paris"]);
    expect(stage.says("paris", true, 9)).toBe("write");
    expect(stage.status("paris")).toBe("left");
    expect(stage.registry.peers()).toEqual([]);
    expect(decideExpire(stage.registry, ["paris"])).toEqual([]);
    expect(decideHeartbeat(stage.registry, { id: "paris" }, true)).toMatchObject({
      kind: "refused",
      code: "NOT_FOUND",
    });
    expect(stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }))).toBe("write");
    expect(stage.status("paris")).toBe("registered");
    expect(stage.registry.peers()).toEqual(["paris"]);
  });

  it("is waited for where its word comes while the own line is in doubt: it may have more of it than this disk", () => {
    const stage = new Stage();
    stage.own("k1");
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    stage.register(asked("oslo", { shown: shown(ring("oslo", "o1")) }));
    stage.says("oslo", true, 4);
    stage.apply("controller:gated", "home", { through: 4, hash: "h", frontier: "" });
    stage.says("paris", true, 9);
    expect(stage.status("paris")).toBe("left");
    expect(stage.registry.peers(), "oslo's word was here before").toEqual(["paris"]);
    const restored = new Registry();
    restored.restore(stage.registry.encode());
    expect(restored.peers()).toEqual(["paris"]);
    stage.apply("controller:resumed", "home", { by: "ada" });
    expect(stage.registry.peers()).toEqual([]);
    stage.apply("controller:gated", "home", { through: 7, hash: "h", frontier: "" });
    expect(stage.registry.peers(), "the next start has it on its disk").toEqual([]);
  });

  it("a word that comes again after it came back is stale", () => {
    const stage = new Stage();
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    stage.says("paris", true, 9);
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    expect(stage.says("paris", true, 9)).toBe("unchanged");
    expect(stage.status("paris")).toBe("registered");
    expect(stage.says("paris", true, 12)).toBe("write");
    expect(stage.status("paris")).toBe("left");
  });

  it("is back where only its line says so, and only by a later word", () => {
    const stage = new Stage();
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    expect(stage.says("paris", false, 3)).toBe("unchanged");
    stage.says("paris", true, 9);
    expect(stage.says("paris", false, 8)).toBe("unchanged");
    expect(stage.says("paris", false, 10)).toBe("write");
    expect(stage.status("paris")).toBe("registered");
    expect(stage.says("paris", true, 9)).toBe("unchanged");
  });

  it("a later generation says more than an earlier one, whatever the sequence; a line that is not known says nothing", () => {
    const stage = new Stage();
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    const first = stage.registry.site("paris")!.lines[0]!.line;
    stage.says("paris", true, 90);
    stage.register(asked("paris", { shown: shown(ring("paris", "p1", 2)) }));
    // Of a line that is new others may have vouched: that alone does not bring it back.
    expect(stage.status("paris")).toBe("left");
    expect(stage.says("paris", false, 5)).toBe("write");
    expect(stage.status("paris")).toBe("registered");
    expect(stage.says("paris", true, 95, first)).toBe("unchanged");
    expect(stage.says("paris", true, 95, "paris.unknown")).toBe("unchanged");
  });

  it("is evicted all the same, and forked before all", () => {
    const stage = new Stage();
    stage.register(asked("paris", { shown: shown(ring("paris", "p1")) }));
    stage.says("paris", true, 9);
    stage.evict("paris");
    expect(stage.status("paris")).toBe("evicted");
    stage.approve("paris");
    expect(stage.status("paris")).toBe("left");
  });
});

describe("a site that was recovered or renewed before", () => {
  const first = { line: "far.1", ring: ring("far", "k1") };
  const second = { line: "far.2", ring: ring("far", "k1", 2) };
  const third = { ...shown(ring("far", "k1", 3))!, earlier: [first, second] };

  it("is pinned with all of its lines where it is new: the newest can't be taken without those that it continues", () => {
    const stage = new Stage();
    expect(stage.register(asked("far", { shown: third }))).toBe("write");
    expect(stage.registry.site("far")!.lines.map(({ line }) => line)).toEqual(["far.1", "far.2", third.line]);
    expect(stage.registry.lineBefore("far", third.line, () => true)).toBe("far.2");
    expect(stage.register(asked("far", { shown: third }))).toBe("unchanged");
  });

  it("has proven nothing with a ring that an operator has approved: what it shows with it has no other keys", () => {
    const stage = new Stage();
    expect(stage.approve("far", third.ringHash)).toBe("write");
    const alien = { line: "far.alien", ring: ring("far", "k9", 2) };
    const shownBy = (key: string | null) =>
      asked("far", { shown: { ...third, earlier: [first, alien], provenBy: key } });
    expect(stage.register(shownBy(null))).toBe("write");
    expect(stage.registry.site("far")!.lines.map(({ line }) => line)).toEqual(["far.1", third.line]);
  });

  it("is pinned with those between, where it was away for more than one of them; what is pinned stays", () => {
    const stage = new Stage();
    const known = shown(ring("far", "k1"))!;
    expect(stage.register(asked("far", { shown: known }))).toBe("write");
    expect(stage.register(asked("far", { shown: third }))).toBe("write");
    expect(stage.registry.site("far")!.lines.map(({ line }) => line)).toEqual([known.line, "far.2", third.line]);
  });

  it("shows lines of its own, oldest first, each named by its ring; or nothing is taken", () => {
    const digest = systemDigest;
    const named = (made: Ring) => ({ line: lineIdOf(made, digest), ring: made });
    const key = Buffer.alloc(32, 1).toString("base64");
    const [one, two, now] = [1, 2, 3].map((generation) => ring("far", key, generation)) as [Ring, Ring, Ring];
    expect(earlierLines([named(one), named(two)], now, digest)).toEqual([named(one), named(two)]);
    expect(earlierLines([], now, digest)).toEqual([]);
    const wrong = [
      [named(two), named(one)],
      [named(now)],
      [named(ring("other", key))],
      [{ ...named(one), line: named(two).line }],
      [{ line: named(one).line }],
      [null],
      "far.1",
      Array.from({ length: LINES_PER_SITE_MAX }, (_, at) => named(ring("far", key, at + 1))),
    ];
    for (const lines of wrong) expect(earlierLines(lines, now, digest), JSON.stringify(lines)).toBeNull();
  });
});
