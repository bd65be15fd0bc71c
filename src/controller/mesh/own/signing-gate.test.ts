// The gate of signing on one node and on several of one site: what opens it, what is written before and after, and what a crash or a change of leaders
// in the middle of it leaves to the next one.

import { describe, expect, test } from "vitest";
import { TenureError } from "../../../core/kit/errors.ts";
import type { EventDraft } from "../../../core/events/index.ts";
import type { Renewal } from "../../../core/mesh/registry/index.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import type { JournalReign } from "../../journal/journal-reign.ts";
import { ControllersFold } from "../controllers-fold.ts";
import { GATE_ASK_MS } from "../limits.ts";
import { NO_PLACE, SigningGate } from "./signing-gate.ts";
import { OwnSiteStage } from "./test-own-site.ts";

const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };
const REQUEST = { caller: "ada", idempotencyKey: null, bodyHash: "" };

/** Two of these are equal: what a disk holds, and what a peer has of it. */
function history(...peers: string[]): OwnSiteStage {
  const stage = new OwnSiteStage(digest);
  stage.ring("n1", "n2", "n3");
  for (const id of peers) stage.write("controller:registered", { url: "", name: id, urls: [], version: null }, id);
  stage.grow(4);
  return stage;
}

function headOf(stage: OwnSiteStage): Promise<string> {
  return stage.lineAt("n1").checkpoint(stage.fold.lines!.generations.at(-1)!.line);
}

/** The site's log, as all of its nodes have it, and its nodes. */
class Site {
  readonly stage: OwnSiteStage;
  readonly clock = new ManualClock();
  readonly controllers = new ControllersFold();
  readonly nodes: Node[] = [];
  /** Writes wait for `commit`. */
  holds = false;
  /** The nodes have their keys. */
  canSign = true;
  /** Questions among the members are not answered. */
  isSilent = false;
  #held: (() => void)[] = [];

  constructor(stage: OwnSiteStage) {
    this.stage = stage;
    for (const { event } of stage.all) this.controllers.apply(event);
  }

  /** Of a process that starts. */
  start(): Node {
    const node = new Node(this);
    this.nodes.push(node);
    return node;
  }

  write(drafts: readonly EventDraft[], reign: { isOver: boolean }, author: string): Promise<void> {
    const done = Promise.withResolvers<void>();
    const apply = (): void => {
      if (reign.isOver) return done.reject(new TenureError("NOT_LEADER", "not any more"));
      if (author !== this.stage.author) this.stage.writeAs(author);
      for (const { eventType, payload, entityId } of drafts) {
        this.stage.write(eventType, payload, entityId);
        this.controllers.apply(this.stage.all.at(-1)!.event);
      }
      done.resolve();
    };
    if (this.holds) this.#held.push(apply);
    else apply();
    return done.promise;
  }

  register(id: string): void {
    const { event } = this.stage.all.at(-1)!;
    const payload = { url: "", name: id, urls: [], version: null };
    this.controllers.apply({ ...event, eventType: "controller:registered", entityId: id, payload });
  }

  /** The first one of its line. */
  ring(): void {
    const isPlaceDue = this.nodes.some(({ gate }) => gate.isPlaceDue);
    this.stage.ring("n1", "n2", "n3");
    this.controllers.apply(this.stage.all.at(-1)!.event);
    // As own-ring.ts does.
    if (isPlaceDue) this.stage.write("controller:gated", { ...NO_PLACE });
    this.controllers.apply(this.stage.all.at(-1)!.event);
  }

  async commit(): Promise<void> {
    this.holds = false;
    for (const apply of this.#held.splice(0)) apply();
    await settled();
  }

  /** What was written since. */
  types(since: number): string[] {
    return this.stage.all.slice(since).map(({ event }) => event.eventType);
  }
}

class Node {
  readonly gate: SigningGate;
  isUp = true;
  readonly #site: Site;
  #reign: { isOver: boolean } | null = null;
  #begin: (reign: JournalReign) => unknown = () => undefined;

  constructor(site: Site) {
    this.#site = site;
    const { stage, controllers, clock } = site;
    const own = stage.lineAt("n1");
    const current = (): JournalReign | null => this.#reign as JournalReign | null;
    const others = (): readonly Node[] => site.nodes.filter((one) => one !== this);
    this.gate = new SigningGate({
      clock,
      logger: NO_LOGGER,
      newId: () => `${stage.all.length}-0123456789ab`,
      journal: {
        change: () => Promise.reject(new Error("not used")),
        serve: (begin) => {
          this.#begin = begin;
          const serving = (): never => (current() ?? refuse()) as never;
          return {
            get current() {
              return current() as never;
            },
            now: serving,
            next: async () => serving(),
            serving,
          };
        },
      },
      registry: controllers.registry,
      own: () => ({
        partAt: (line, size) => own.partAt(line, size),
        hasSigned: (line, note) => own.hasSigned(line, note),
      }),
      head: () => {
        const { size: sequence, ...rest } = stage.point(stage.all.length);
        return { sequence, ...rest };
      },
      loggedAuthor: () => "c-one",
      canSign: () => site.canSign,
      hasOthers: () => others().length > 0,
      askOthers: async () => {
        if (site.isSilent) await new Promise(() => undefined);
        return others().some(({ isUp, gate }) => isUp && gate.isCompared);
      },
    });
  }

  async lead(): Promise<void> {
    for (const node of this.#site.nodes) node.end();
    const site = this.#site;
    let author = site.controllers.registry.renewed?.author ?? "c-one";
    const reign = {
      isOver: false,
      epoch: 3,
      nowMs: 5,
      write: (drafts: readonly EventDraft[]) => site.write(drafts, reign, author),
      writeAs: (next: string) => void (author = next),
    };
    this.#reign = reign;
    this.#begin(reign as unknown as JournalReign);
    await settled();
  }

  end(): void {
    if (this.#reign !== null) this.#reign.isOver = true;
    this.#reign = null;
  }

  crash(): void {
    this.end();
    this.isUp = false;
    this.gate.stop();
    this.#site.nodes.splice(this.#site.nodes.indexOf(this), 1);
  }

  async hear(peer: string, ...notes: string[]): Promise<void> {
    this.gate.heard(peer, notes, true);
    await settled();
  }

  get state(): string {
    return this.gate.view().state;
  }
}

function refuse(): never {
  throw new TenureError("NOT_LEADER", "not here");
}

describe("one node", () => {
  test("signs at once where nobody has registered, and writes where it is, once", async () => {
    const site = new Site(history());
    const node = site.start();
    await node.lead();
    expect([node.state, node.gate.held, site.types(5)]).toEqual(["open", null, ["controller:gated"]]);
    node.crash();
    const next = site.start();
    await next.lead();
    expect([next.state, next.gate.held, site.types(6)]).toEqual(["open", null, []]);
  });

  test("of a new site signs at once, and writes nothing", async () => {
    const site = new Site(new OwnSiteStage(digest));
    const node = site.start();
    await node.lead();
    site.ring();
    await site.clock.advance(3 * GATE_ASK_MS);
    expect([node.state, node.gate.held, site.types(1)]).toEqual(["open", null, []]);
  });

  test("compares the first peer that registers: its disk may be older than that peer", async () => {
    const site = new Site(history());
    const node = site.start();
    await node.lead();
    await site.clock.advance(10 * GATE_ASK_MS);
    expect(node.gate.isCompared, "not for good, however long it is alone").toBe(false);
    const before = history();
    before.grow(3);
    site.register("b");
    expect(node.gate.view()).toMatchObject({ state: "comparing", missing: ["b"] });
    await node.hear("b", await headOf(before));
    expect(node.state).toBe("behind");
  });

  test.each(["controller:left", "controller:evicted"] as const)(
    "compares the first peer that registers also where it knows one that does not count: %s",
    async (eventType) => {
      const site = new Site(history("old"));
      const { event } = site.stage.all.at(-1)!;
      const line = `old.${"0".repeat(32)}`;
      site.controllers.apply({ ...event, eventType, entityId: "old", payload: { line, sequence: 1 } });
      expect([site.controllers.registry.peers(), site.controllers.registry.size]).toEqual([[], 1]);
      const node = site.start();
      await node.lead();
      await site.clock.advance(10 * GATE_ASK_MS);
      expect([node.gate.held, node.gate.isCompared], "not for good, however long it is alone").toEqual([null, false]);
      const before = history("old");
      before.grow(3);
      site.register("b");
      expect(node.gate.view()).toMatchObject({ state: "comparing", missing: ["b"] });
      await node.hear("b", await headOf(before));
      expect(node.state).toBe("behind");
    },
  );

  test("signs for good when the first peer has no more than it has", async () => {
    const site = new Site(history());
    const node = site.start();
    await node.lead();
    site.register("b");
    await node.hear("b", await headOf(history()));
    expect(node.gate.isCompared).toBe(true);
    site.register("late");
    expect(node.gate.held).toBeNull();
  });

  test("writes where it is, and signs when every peer has a part of its history", async () => {
    const site = new Site(history("b", "c"));
    const node = site.start();
    await node.lead();
    expect(site.types(7)).toEqual(["controller:gated"]);
    expect(site.controllers.registry.gated).toMatchObject({ through: 7, hash: site.stage.all[6]!.event.eventHash });
    await node.hear("b", await headOf(history("b", "c")));
    expect(node.gate.view()).toMatchObject({ state: "comparing", missing: ["c"] });
    expect(node.gate.held).toContain("what c has of its line is not compared yet");
    await node.hear("c");
    expect([node.state, site.controllers.registry.gated]).toEqual(["open", null]);
    expect(site.types(7)).toEqual(["controller:gated", "controller:resumed"]);
  });

  test("signs when the peer that is missing is evicted, and does not stop when that is approved again", async () => {
    const site = new Site(history("b"));
    const node = site.start();
    await node.lead();
    await site.clock.advance(10 * GATE_ASK_MS);
    expect(node.state).toBe("comparing");
    const [event] = [site.stage.all.at(-1)!.event];
    site.controllers.apply({ ...event, eventType: "controller:evicted", entityId: "b", payload: {} });
    await site.clock.advance(GATE_ASK_MS);
    expect([node.gate.isCompared, site.controllers.registry.gated]).toEqual([true, null]);
    site.controllers.apply({ ...event, eventType: "controller:approved", entityId: "b", payload: { ring: null } });
    expect(site.controllers.registry.peers()).toEqual(["b"]);
    expect([node.state, node.gate.held]).toEqual(["open", null]);
    // The next process compares with it again.
    node.crash();
    const next = site.start();
    await next.lead();
    expect(next.gate.view()).toMatchObject({ state: "comparing", missing: ["b"] });
  });

  test("does not sign before it has led: until then it may not know its peers", async () => {
    const site = new Site(history());
    const node = site.start();
    await site.clock.advance(3 * GATE_ASK_MS);
    expect(node.gate.isCompared).toBe(false);
  });

  test("that crashes after it began and before the place is written: the next one writes the same place", async () => {
    const site = new Site(history("b"));
    site.holds = true;
    const node = site.start();
    await node.lead();
    node.crash();
    await site.commit();
    expect(site.types(6)).toEqual([]);
    const next = site.start();
    await next.lead();
    expect(site.controllers.registry.gated?.through).toBe(6);
    // A crash after it: what was written meanwhile does not move it.
    site.stage.grow(3);
    next.crash();
    await site.start().lead();
    expect(site.controllers.registry.gated?.through).toBe(6);
    expect(site.types(6).filter((type) => type === "controller:gated")).toHaveLength(1);
  });

  test("that is compared while the place is being written takes it back", async () => {
    const site = new Site(history("b"));
    site.holds = true;
    const node = site.start();
    await node.lead();
    await node.hear("b");
    expect(node.gate.isCompared).toBe(true);
    await site.commit();
    expect([site.types(6), site.controllers.registry.gated]).toEqual([
      ["controller:gated", "controller:resumed"],
      null,
    ]);
  });

  test("neither signs nor is accused where a peer shows what no key of this site has signed", async () => {
    const site = new Site(history("b"));
    const node = site.start();
    await node.lead();
    const other = history("b");
    other.grow(2);
    const note = await headOf(other);
    const changed = `${note.slice(0, -6)}${note.at(-6) === "A" ? "B" : "A"}${note.slice(-5)}`;
    await node.hear("b", changed);
    expect(node.gate.view()).toMatchObject({ state: "comparing", missing: ["b"] });
    expect(node.gate.held).toContain("shows something of this site that this disk does not know");
  });
});

describe("a disk that is an older copy", () => {
  async function restored(grown: number): Promise<{ site: Site; node: Node }> {
    const ahead = history("b");
    ahead.grow(5);
    const site = new Site(history("b"));
    const node = site.start();
    await node.lead();
    site.stage.grow(grown);
    await node.hear("b", await headOf(ahead));
    return { site, node };
  }

  test("is noticed whether it is shorter or has gone on; it goes on in a new line only", async () => {
    const short = await restored(1);
    expect(short.node.gate.held).toMatch(/^b has 11 events of alpha\..*, and this disk has 8: it is an older copy$/);
    const long = await restored(9);
    expect(long.node.gate.held).toMatch(/^b has another history of alpha\./);
    await expect(long.node.gate.resume(REQUEST, false)).rejects.toMatchObject({ code: "BAD_REQUEST" });
    await long.node.hear("b");
    expect(long.node.state, "an operator decides").toBe("behind");
  });

  test("the new line continues the place that was written, as another author", async () => {
    const { site, node } = await restored(2);
    const { line } = site.stage.fold.lines!.generations[0]!;
    expect(await node.gate.resume(REQUEST, true)).toMatchObject({ state: "open" });
    expect(site.types(9)).toEqual(["controller:resumed", "controller:recovered"]);
    const [, last] = [site.stage.all.at(-2)!.event, site.stage.all.at(-1)!.event];
    expect(last).toMatchObject({ sourceControllerId: expect.stringMatching(/^c-one\+/) as string });
    expect(last.payload).toMatchObject({ line, through: 6, hash: site.stage.all[5]!.event.eventHash });
  });

  test("from before its first peer that went on alone: a crash once that peer has registered does not move the place", async () => {
    const ahead = history();
    ahead.grow(20);
    const site = new Site(history());
    await site.start().lead();
    site.stage.grow(3);
    site.register("b");
    site.nodes[0]!.crash();
    const node = site.start();
    await node.lead();
    await node.hear("b", await headOf(ahead));
    expect(node.state).toBe("behind");
    await node.gate.resume(REQUEST, true);
    // What the copy wrote alone is no part of what b has, although that is longer.
    expect(site.stage.all.at(-1)!.event.payload).toMatchObject({
      through: 5,
      hash: site.stage.all[4]!.event.eventHash,
    });
  });

  test("from before its line that went on alone: the peers get everything again, also after a crash", async () => {
    const ahead = new OwnSiteStage(digest);
    ahead.grow(2);
    ahead.ring("n1", "n2", "n3");
    ahead.grow(20);
    const stage = new OwnSiteStage(digest);
    stage.grow(2);
    const site = new Site(stage);
    await site.start().lead();
    stage.grow(3);
    site.ring();
    stage.grow(2);
    site.register("b");
    site.nodes[0]!.crash();
    const node = site.start();
    await node.lead();
    await node.hear("b", await headOf(ahead));
    expect(node.state).toBe("behind");
    await node.gate.resume(REQUEST, true);
    expect(site.stage.all.at(-1)!.event.payload).toMatchObject({ through: 0, hash: null });
  });

  test("of a new site whose keys are older: it is said at once that nothing of it is common", async () => {
    const ahead = history();
    ahead.grow(20);
    const site = new Site(new OwnSiteStage(digest));
    const node = site.start();
    await node.lead();
    site.ring();
    site.register("b");
    await node.hear("b", await headOf(ahead));
    expect([node.state, site.controllers.registry.gated]).toMatchObject(["behind", { through: 0 }]);
  });

  test("asked for twice before its ring is written, it is one new line", async () => {
    const { site, node } = await restored(2);
    await Promise.all([node.gate.resume(REQUEST, true), node.gate.resume(REQUEST, true)]);
    await node.gate.resume(REQUEST, true);
    expect(site.types(9)).toEqual(["controller:resumed", "controller:recovered"]);
    expect(site.stage.fold.lines!.generations.at(-1)!.end).toMatchObject({ through: 6 });
  });

  test("with a place after the one where the histories part, the peers get everything again", async () => {
    // The copy went on for a life whose place was lost in a crash.
    const site = new Site(history("b"));
    site.stage.grow(1);
    site.stage.write("queue:resumed");
    const ahead = history("b");
    ahead.grow(2);
    const node = site.start();
    await node.lead();
    expect(site.controllers.registry.gated?.through).toBe(8);
    await node.hear("b", await headOf(ahead));
    expect(node.state).toBe("behind");
    await node.gate.resume(REQUEST, true);
    expect(site.stage.all.at(-1)!.event.payload).toMatchObject({ through: 0, hash: null });
  });

  test("with lost keys the peers get everything again: what they lack of the old line nobody can sign", async () => {
    const { site, node } = await restored(2);
    site.canSign = false;
    await node.gate.resume(REQUEST, true);
    expect(site.stage.all.at(-1)!.event.payload).toMatchObject({ through: 0, hash: null });
  });

  test("with an open gate the new line begins from nothing; once more, when it has its ring, is the next one", async () => {
    const site = new Site(history());
    const node = site.start();
    await node.lead();
    await node.gate.resume(REQUEST, true);
    const renewal = site.controllers.registry.renewed as Renewal;
    expect(renewal).toMatchObject({ through: 0, before: "c-one" });
    site.stage.generation = 2;
    site.stage.ring("n1", "n2", "n3");
    site.controllers.apply(site.stage.all.at(-1)!.event);
    await node.gate.resume(REQUEST, true);
    const again = site.controllers.registry.renewed as Renewal;
    expect(again.line).toBe(site.stage.fold.lines!.generations[1]!.line);
    expect(new Set([renewal.author, again.author, "c-one"]).size).toBe(3);
  });

  test("a change of leaders in the middle of it: what was committed is gone on with, what was not is asked for again", async () => {
    const { site, node } = await restored(2);
    const other = site.start();
    site.holds = true;
    const asked = node.gate.resume(REQUEST, true);
    await settled();
    await other.lead();
    await site.commit();
    await expect(asked).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect([node.state, site.types(9), site.controllers.registry.renewed]).toEqual(["behind", [], null]);
    expect(site.controllers.registry.gated?.through, "the place stays").toBe(6);
    await expect(node.gate.resume(REQUEST, true)).rejects.toMatchObject({ code: "NOT_LEADER" });
    await other.gate.resume(REQUEST, true);
    expect(site.stage.all.at(-1)!.event.payload).toMatchObject({ through: 6 });
    await site.clock.advance(2 * GATE_ASK_MS);
    expect(node.state, "the other member has an open gate").toBe("open");
  });
});

describe("a site of three nodes", () => {
  async function started(): Promise<{ site: Site; nodes: readonly [Node, Node, Node] }> {
    const site = new Site(history("b", "c"));
    const nodes = [site.start(), site.start(), site.start()] as const;
    await nodes[0].lead();
    return { site, nodes };
  }

  const states = (nodes: readonly Node[]): string[] => nodes.map(({ state }) => state);

  test("after a whole start the leader compares, and the others follow within one question", async () => {
    const { site, nodes } = await started();
    await site.clock.advance(20 * GATE_ASK_MS);
    expect(states(nodes), "nobody opens it for himself, nor for each other").toEqual(Array(3).fill("comparing"));
    for (const peer of ["b", "c"]) await nodes[0].hear(peer);
    expect(states(nodes)).toEqual(["open", "comparing", "comparing"]);
    await site.clock.advance(GATE_ASK_MS);
    expect(states(nodes)).toEqual(["open", "open", "open"]);
    expect(site.types(7)).toEqual(["controller:gated", "controller:resumed"]);
  });

  test("a new leader in the middle compares from the beginning, and does not move the place", async () => {
    const { site, nodes } = await started();
    await nodes[0].hear("b");
    site.stage.grow(2);
    await nodes[1].lead();
    expect(nodes[1].gate.view()).toMatchObject({ state: "comparing", missing: ["b", "c"] });
    await nodes[1].hear("c");
    expect(states(nodes)).toEqual(["comparing", "comparing", "comparing"]);
    // Whoever does not lead any more opens nothing.
    await nodes[0].hear("c");
    expect(nodes[0].gate.isCompared).toBe(false);
    await nodes[1].hear("b");
    expect(nodes[1].state).toBe("open");
    expect(site.types(7).filter((type) => type.startsWith("controller:"))).toEqual([
      "controller:gated",
      "controller:resumed",
    ]);
  });

  test("a leader that has compared and is gone before it wrote that: whoever has heard of it writes it", async () => {
    const { site, nodes } = await started();
    site.holds = true;
    for (const peer of ["b", "c"]) await nodes[0].hear(peer);
    await site.clock.advance(GATE_ASK_MS);
    expect(states(nodes)).toEqual(["open", "open", "open"]);
    nodes[0].crash();
    await site.commit();
    expect(site.controllers.registry.gated?.through).toBe(7);
    await nodes[1].lead();
    expect(site.controllers.registry.gated).toBeNull();
  });

  test("the place is written before anybody is asked: a crash meanwhile does not move it", async () => {
    const site = new Site(history("b"));
    site.isSilent = true;
    const node = site.start();
    site.start();
    await node.lead();
    expect(site.types(6)).toEqual(["controller:gated"]);
  });

  test("one node that is started again is opened by the others, also where it leads at once", async () => {
    const { site, nodes } = await started();
    for (const peer of ["b", "c"]) await nodes[0].hear(peer);
    await site.clock.advance(GATE_ASK_MS);
    nodes[2].crash();
    const back = site.start();
    expect(back.state).toBe("comparing");
    await back.lead();
    expect([back.state, site.controllers.registry.gated]).toEqual(["open", null]);
  });
});
