// A site's part in the mesh while it leaves: whoever is linked is heard until its link ends, and nobody's pages are taken (decision 63).

import { describe, expect, it } from "vitest";
import type { ChainEvent } from "../../core/events/index.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { fakeVerify } from "../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../core/mesh/test-site.ts";
import type { LineState } from "../../core/mesh/model.ts";
import { lineIdOf, recoveredPayload } from "../../core/mesh/proof/index.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock, settled } from "../../loops/test-clock.ts";
import type { JournalReign } from "../journal/journal-reign.ts";
import { ControllersFold } from "./controllers-fold.ts";
import { GENERATIONS_KEPT_MAX } from "./limits.ts";
import { MeshService, type MeshServiceOptions } from "./mesh.ts";

function stage(parents: readonly string[] = []) {
  const states = new Map<string, LineState>();
  const clock = new ManualClock();
  const heartbeats = new Map<string, number>();
  const controllers = new ControllersFold();
  const [home, paris] = ["home", "paris"].map((id) => new TestSite(ringOf(id, ["n1"], digest), digest)) as [
    TestSite,
    TestSite,
  ];
  paris.writeMany(3);
  let sequence = 0;
  const apply = (eventType: string, entityId: string, payload: object): void =>
    controllers.apply({ eventType, entityId, payload, sequence: ++sequence, timestamp: 1 } as unknown as ChainEvent);
  apply("controller:registered", "home", { name: "home", urls: [], line: home.line, ...home.ring });
  for (const id of ["paris", "oslo"]) {
    const ring = ringOf(id, ["n1"], digest);
    const line = new TestSite(ring, digest).line;
    apply("controller:registered", id, {
      url: `http://${id}:1`,
      name: id,
      urls: [],
      version: null,
      line,
      ring,
      metadata: {},
    });
  }
  const received: string[] = [];
  const heard: string[] = [];
  const own = {
    controller: "home",
    name: "home",
    urls: [],
    lines: [{ line: home.line, firstRing: home.ring, after: 0, size: 0 }],
  };
  const options = {
    clock,
    digest,
    verify: fakeVerify(digest),
    random: seededRandom(1),
    journal: {
      serve: (begin: (reign: JournalReign) => unknown) => {
        const current = begin({ watch: () => undefined } as unknown as JournalReign);
        return { current, serving: () => current };
      },
    },
    fold: { controllers, follow: () => () => undefined },
    lines: {
      own: () => own,
      status: () => ({ kind: "signing" }),
      prove: () => Promise.resolve({ key: "", signature: "" }),
      lines: () => [],
      has: () => false,
      size: () => 0,
      checkpoint: async () => "note",
      pages: async () => [],
    },
    gate: { heard: (controller: string) => void heard.push(controller) },
    controllers: {
      heardMsAgo: () => new Map(Array.from(heartbeats, ([id, atMs]) => [id, clock.monotonicMs() - atMs])),
    },
    receipts: {
      stateOf: (line: string) => states.get(line) ?? null,
      pointOf: (line: LineState) => Promise.resolve(line),
      receive: async ({ page }: { page: { line: string; items: readonly unknown[] } }) => {
        received.push(page.line);
        return { kind: "accepted", accepted: page.items.length, duplicates: 0 };
      },
      all: async function* () {},
      onGrown: () => () => undefined,
    },
    sites: { close: () => undefined, identify: () => new Promise(() => undefined) },
    settings: {
      accept: "vouched",
      parents,
      heartbeatMs: 1_000,
      url: () => "http://home:1",
      version: "1",
    },
  };
  const mesh = new MeshService(options as unknown as MeshServiceOptions);
  return {
    mesh,
    clock,
    apply,
    states,
    heartbeats,
    own,
    paris,
    received,
    heard,
    leave: () => apply("controller:left", "home", { by: "ada" }),
  };
}

it("while a site leaves, whoever is linked is heard and its pages are not wanted; whoever is not gets 501, as of a standalone site", async () => {
  const { mesh, paris, received, heard, leave } = stage();
  const opened = mesh.open("paris", []);
  if (opened.kind !== "open") throw new Error(opened.kind);
  const delivery = { controller: "paris", pages: [paris.page(0, 2)], heads: [] };
  expect(await mesh.deliver(delivery)).toMatchObject({ body: { pages: [{ accepted: 2 }] } });
  leave();
  heard.length = 0;
  const late = { ...delivery, pages: [paris.page(0, 3)] };
  expect(await mesh.deliver(late)).toMatchObject({ kind: "delivered", body: { pages: [{ error: "not_wanted" }] } });
  expect([received, heard]).toEqual([[paris.line], ["paris"]]);
  expect([mesh.isLinked("paris"), mesh.isLinked("oslo")]).toEqual([true, false]);
  const refusal = { code: "MESH_DISABLED" };
  await expect(mesh.deliver({ controller: "oslo", pages: [paris.page(0, 3)] })).rejects.toMatchObject(refusal);
  expect(() => mesh.open("oslo", [])).toThrow(expect.objectContaining(refusal));
  opened.stream.close();
  await settled();
  await expect(mesh.deliver(late)).rejects.toMatchObject(refusal);
  expect([received, mesh.isLinked("paris")]).toEqual([[paris.line], false]);
  mesh.close();
});

it("a site that had a link here and has none is cut off since it was heard; one that is known through others never had one", async () => {
  const { mesh, clock, apply, heartbeats, leave } = stage();
  apply("controller:registered", "lima", {
    url: "http://lima:1",
    name: "lima",
    urls: [],
    version: null,
    metadata: { vouchedBy: "paris.1" },
  });
  await clock.advance(5_000);
  // Both have registered with an earlier leader, and nothing was heard of them since.
  expect([...mesh.cutOff()]).toEqual([
    ["oslo", { ms: 5_000, heardMsAgo: null }],
    ["paris", { ms: 5_000, heardMsAgo: null }],
  ]);
  const opened = mesh.open("paris", []);
  if (opened.kind !== "open") throw new Error(opened.kind);
  // It sends heartbeats, and opens no stream.
  heartbeats.set("oslo", clock.monotonicMs());
  for (const days of [1, -1, 0]) {
    clock.skewMs = days * 86_400_000;
    expect([...mesh.cutOff()], "a wall clock that jumps").toEqual([]);
  }
  await clock.advance(2_000);
  await mesh.deliver({ controller: "paris", heads: [] });
  await clock.advance(3_000);
  opened.stream.close();
  await clock.advance(20_000);
  for (const days of [1, -1, 0]) {
    clock.skewMs = days * 86_400_000;
    expect([...mesh.cutOff()]).toEqual([["paris", { ms: 23_000, heardMsAgo: 23_000 }]]);
  }
  apply("controller:expired", "oslo", {});
  clock.skewMs = -86_400_000;
  expect(mesh.cutOff().get("oslo")).toEqual({ ms: 25_000, heardMsAgo: 25_000 });
  apply("controller:evicted", "oslo", { by: "ada" });
  expect(mesh.cutOff().has("oslo")).toBe(false);
  leave();
  expect([...mesh.cutOff()]).toEqual([]);
  mesh.close();
});

it("a configured parent is cut off where it is not connected, also where it is known through others alone", async () => {
  const { mesh, clock, apply } = stage(["http://lima:1"]);
  apply("controller:registered", "lima", {
    url: "http://lima:1",
    name: "lima",
    urls: [],
    version: null,
    metadata: { vouchedBy: "paris.1" },
  });
  await clock.advance(7_000);
  expect(mesh.cutOff().get("lima")).toEqual({ ms: 7_000, heardMsAgo: null });
  mesh.close();
});

it("a site names all lines that its newest one continues, as far as they fit into what it may say of itself", async () => {
  const introduced = async (generations: number, nodes: number) => {
    const { mesh, own } = stage();
    const names = Array.from({ length: nodes }, (_, at) => `node-${at}`);
    own.lines = Array.from({ length: generations }, (_, at) => {
      const firstRing = ringOf("home", names, digest, at + 1);
      return { line: lineIdOf(firstRing, digest), firstRing, after: at, size: at + 1 };
    });
    const opened = mesh.open("paris", []);
    if (opened.kind !== "open") throw new Error(opened.kind);
    const { hello } = (await opened.stream.next()) as { hello: { metadata: { earlier: { line: string }[] } } };
    mesh.close();
    const { earlier } = hello.metadata;
    expect(earlier.map(({ line }) => line)).toEqual(own.lines.slice(-1 - earlier.length, -1).map(({ line }) => line));
    // SITE_METADATA_BYTES_MAX of the contract.
    expect(JSON.stringify(hello.metadata).length).toBeLessThanOrEqual(16 * 1024);
    return earlier.length;
  };
  expect(await introduced(20, 3)).toBe(19);
  expect(await introduced(GENERATIONS_KEPT_MAX, 1)).toBe(GENERATIONS_KEPT_MAX - 1);
  expect(await introduced(GENERATIONS_KEPT_MAX, 32)).toBeGreaterThan(2);
});

describe("a line that continues another one", () => {
  /** A site with three events in its first line, of which all are here, and the next line with one event. */
  function continued() {
    const staged = stage();
    const { paris, states, apply } = staged;
    const old: LineState = {
      ...paris.start,
      size: 3,
      hash: paris.hash(3),
      timestamp: 1,
      frontier: paris.frontier(3).slice(),
      checkpoint: paris.head(3),
    };
    states.set(paris.line, old);
    const ring = { ...ringOf("paris", ["n1"], digest, 2), keys: paris.ring.keys };
    const line = lineIdOf(ring, digest);
    const next = new TestSite(ring, digest, {
      state: { ...old, line, ring, isStated: false, checkpoint: null },
      leaves: paris.leaves(3),
    });
    const pin = (id: string, of: typeof ring): void => {
      const site = { url: `http://${id}:1`, name: id, urls: [], version: null, metadata: {} };
      apply("controller:registered", id, { ...site, line: lineIdOf(of, digest), ring: of });
    };
    return { ...staged, old, next, pin };
  }

  it("is taken although somebody has vouched for another one of the same generation, of which nothing ever comes", async () => {
    const { mesh, old, next, pin } = continued();
    pin("paris", { ...next.ring, author: "made-up" });
    pin("paris", next.ring);
    next.write({ eventType: "controller:recovered", entityId: "paris", payload: recoveredPayload(old) });
    const delivery = { controller: "paris", pages: [next.page(3, 4)], heads: [] };
    expect(await mesh.deliver(delivery)).toMatchObject({ body: { pages: [{ accepted: 1 }] } });
    mesh.close();
  });

  it("begins with what its site wrote in the name of the line before, also where another site claims that name", async () => {
    const { mesh, next, paris, pin } = continued();
    pin("oslo", { ...ringOf("oslo", ["n1"], digest, 2), author: paris.ring.author });
    pin("paris", next.ring);
    const before = new TestSite({ ...next.ring, author: paris.ring.author }, digest, {
      state: next.start,
      leaves: paris.leaves(3),
    });
    before.write();
    const delivery = { controller: "paris", pages: [before.page(3, 4)], heads: [] };
    expect(await mesh.deliver(delivery)).toMatchObject({ body: { pages: [{ accepted: 1 }] } });
    mesh.close();
  });

  it("begins with nothing in the name of another site", async () => {
    const { mesh, next, paris, pin } = continued();
    pin("paris", next.ring);
    const before = new TestSite({ ...next.ring, author: ringOf("oslo", ["n1"], digest).author }, digest, {
      state: next.start,
      leaves: paris.leaves(3),
    });
    before.write();
    const delivery = { controller: "paris", pages: [before.page(3, 4)], heads: [] };
    expect(await mesh.deliver(delivery)).toMatchObject({ body: { pages: [{ error: "EVENT_INVALID" }] } });
    mesh.close();
  });
});
