// A site's part in the mesh while it leaves: whoever is linked is heard until its link ends, and nobody's pages are taken (decision 63).

import { expect, it } from "vitest";
import type { ChainEvent } from "../../core/events/index.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { fakeSigner, fakeVerify } from "../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock, settled } from "../../loops/test-clock.ts";
import type { JournalReign } from "../journal/journal-reign.ts";
import { ControllersFold } from "./controllers-fold.ts";
import { MeshService, type MeshServiceOptions } from "./mesh.ts";

function stage() {
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
    clock: new ManualClock(),
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
      lines: () => [],
      has: () => false,
      size: () => 0,
      checkpoint: async () => "note",
      pages: async () => [],
    },
    gate: { heard: (controller: string) => void heard.push(controller) },
    controllers: {},
    receipts: {
      stateOf: () => null,
      receive: async ({ page }: { page: { line: string; items: readonly unknown[] } }) => {
        received.push(page.line);
        return { kind: "accepted", accepted: page.items.length, duplicates: 0 };
      },
      all: async function* () {},
      onGrown: () => () => undefined,
    },
    sites: { close: () => undefined },
    settings: {
      accept: "vouched",
      parents: [],
      heartbeatMs: 1_000,
      url: () => "http://home:1",
      version: "1",
      signer: fakeSigner("home/n1", digest),
    },
  };
  const mesh = new MeshService(options as unknown as MeshServiceOptions);
  return { mesh, paris, received, heard, leave: () => apply("controller:left", "home", { by: "ada" }) };
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
