import { expect, test } from "vitest";
import type { PeerKey } from "../../../core/kit/ids.ts";
import type { Ring } from "../../../core/mesh/model.ts";
import { lineIdOf, ringKeyOf } from "../../../core/mesh/proof/index.ts";
import { fakeSigner } from "../../../core/mesh/test-signatures.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { ManualClock } from "../../../loops/test-clock.ts";
import type { Change } from "../../journal/journal-reign.ts";
import { OwnRing } from "./own-ring.ts";
import { OwnSiteStage } from "./test-own-site.ts";

function keyOf(name: string): string {
  return ringKeyOf("n", fakeSigner(name, digest).publicKey).key;
}

/** The leader n1 and its members, of which some answer. */
class Leader {
  readonly stage = new OwnSiteStage(digest);
  readonly clock = new ManualClock();
  leads = true;
  isPlaceDue = false;
  members: string[] = [];
  expected: string[] = [];
  unready: string[] = [];
  /** By node; who is not here does not answer. */
  readonly keys = new Map<string, string>();
  readonly ring: OwnRing;
  readonly errors: string[] = [];

  constructor(own = "n1") {
    this.ring = new OwnRing({
      journal: { change: (make: Change) => this.#change(make) },
      fold: this.stage.fold,
      leads: () => this.leads,
      author: () => this.stage.author,
      controller: "alpha",
      name: "A",
      urls: () => ["http://one"],
      own: { node: "n1", key: keyOf(own) },
      others: () => this.members.map((node) => `${node}@1` as PeerKey),
      expected: () => this.expected,
      unready: () => this.unready,
      isPlaceDue: () => this.isPlaceDue,
      askKey: (peer) => Promise.resolve(this.keys.get(peer.slice(0, peer.indexOf("@"))) ?? null),
      digest,
      clock: this.clock,
      logger: { info: () => undefined, warn: () => undefined, error: (_fields, text) => void this.errors.push(text) },
    });
  }

  async #change(make: Change): Promise<void> {
    const moment = { nowMs: 1_000, skippedMs: 0, leaderEpoch: 1, newId: () => "id" };
    for (const { eventType, payload, entityId } of make(moment)) this.stage.write(eventType, payload, entityId);
  }

  /** Of the last generation: nodes of each of its rings. */
  get rings(): string[] {
    const last = this.stage.fold.lines?.generations.at(-1);
    return (last?.rings ?? []).map(({ ring }) => ring.keys.map(({ node }) => node).join());
  }

  get inForce(): Ring | undefined {
    return this.stage.fold.lines?.generations.at(-1)?.rings.at(-1)?.ring;
  }
}

test("a single node writes its ring at once, and once", async () => {
  const leader = new Leader();
  await leader.clock.advance(30_000);
  expect(leader.rings).toEqual(["n1"]);
  expect(leader.stage.all).toHaveLength(1);
  const { event } = leader.stage.all[0]!;
  const ring = leader.inForce!;
  expect(event).toMatchObject({ eventType: "controller:registered", entityId: "alpha", entityType: "controller" });
  expect(event.payload).toEqual({
    name: "A",
    urls: ["http://one"],
    line: lineIdOf(ring, digest),
    generation: 1,
    author: "c-one",
    keys: [{ node: "n1", key: keyOf("n1") }],
  });
});

test("with the first ring, and no other, goes the place of a disk that may be from before it", async () => {
  const leader = new Leader();
  leader.isPlaceDue = true;
  await leader.clock.advance(30_000);
  leader.members = ["n2"];
  leader.keys.set("n2", keyOf("n2"));
  await leader.clock.advance(30_000);
  expect(leader.rings).toEqual(["n1", "n1,n2"]);
  const types = leader.stage.all.map(({ event }) => event.eventType);
  expect(types).toEqual(["controller:registered", "controller:gated", "controller:registered"]);
  expect(leader.stage.all[1]!.event).toMatchObject({
    entityId: "alpha",
    payload: { through: 0, hash: null, frontier: "" },
  });
});

test("who does not lead writes nothing", async () => {
  const leader = new Leader();
  leader.leads = false;
  await leader.clock.advance(30_000);
  expect([leader.rings, leader.ring.waits]).toEqual([[], null]);
});

test("nothing is written before every member reads it", async () => {
  const leader = new Leader();
  leader.unready = ["n2"];
  await leader.clock.advance(30_000);
  expect(leader.rings).toEqual([]);
  expect(leader.ring.waits).toContain("n2");
  leader.unready = [];
  await leader.clock.advance(1_000);
  expect([leader.rings, leader.ring.waits]).toEqual([["n1"], null]);
});

test("the first ring waits for members that do not answer and for nodes that are expected, but not for ever", async () => {
  const leader = new Leader();
  leader.members = ["n2"];
  leader.expected = ["n3"];
  await leader.clock.advance(8_000);
  expect(leader.rings).toEqual([]);
  expect(leader.ring.waits).toBe("waiting for the keys of n2, n3");
  leader.members = ["n2", "n3"];
  leader.expected = [];
  for (const node of leader.members) leader.keys.set(node, keyOf(node));
  await leader.clock.advance(1_000);
  expect(leader.rings).toEqual(["n1,n2,n3"]);
  const late = new Leader();
  late.members = ["n2"];
  await late.clock.advance(13_000);
  expect(late.rings).toEqual(["n1"]);
});

test("a new key changes the ring, a member that does not answer keeps its key, and one that was removed loses it", async () => {
  const leader = new Leader();
  leader.members = ["n2"];
  leader.keys.set("n2", keyOf("n2"));
  await leader.clock.advance(1_000);
  leader.keys.set("n2", keyOf("another"));
  await leader.clock.advance(1_000);
  expect(leader.inForce!.keys[1]).toEqual({ node: "n2", key: keyOf("another") });
  leader.keys.clear();
  leader.members = ["n2", "n3"];
  await leader.clock.advance(30_000);
  expect(leader.rings, "n3 has no key yet").toEqual(["n1,n2", "n1,n2"]);
  leader.members = [];
  await leader.clock.advance(1_000);
  expect(leader.rings).toEqual(["n1,n2", "n1,n2", "n1"]);
  expect(new Set(leader.stage.fold.lines!.generations.map(({ line }) => line)).size).toBe(1);
});

test("a change that nobody could sign is not written", async () => {
  const leader = new Leader("another key");
  leader.stage.ring("n1");
  await leader.clock.advance(30_000);
  expect(leader.rings).toEqual(["n1"]);
  expect(leader.ring.waits).toContain("no member has a key of the ring in force (n1)");
  leader.members = ["n2"];
  const other = new Leader("another key");
  other.stage.ring("n1", "n2");
  other.members = ["n2"];
  other.keys.set("n2", keyOf("n2"));
  await other.clock.advance(1_000);
  expect(other.inForce!.keys[0], "n2 signs the change").toEqual({ node: "n1", key: keyOf("another key") });
});

test("after a recovery the next generation has a line of its own", async () => {
  const leader = new Leader();
  await leader.clock.advance(1_000);
  const first = leader.stage.fold.lines!.generations[0]!.line;
  leader.stage.recover();
  await leader.clock.advance(1_000);
  expect(leader.inForce).toMatchObject({ controller: "alpha", generation: 2, author: "c-2" });
  const [before, after] = leader.stage.fold.lines!.generations;
  expect([before!.line, before!.end?.through, after!.after]).toEqual([first, 1, 1]);
  expect(after!.line).toBe(lineIdOf(leader.inForce!, digest));
  await leader.clock.advance(30_000);
  expect(leader.stage.fold.lines!.generations).toHaveLength(2);
});

test("an answer that is no key spoils nothing, and is reported", async () => {
  const leader = new Leader();
  leader.members = ["n2"];
  leader.keys.set("n2", "nonsense");
  await leader.clock.advance(30_000);
  expect(leader.rings).toEqual([]);
  expect(leader.ring.waits).toContain("32 bytes in base64");
});
