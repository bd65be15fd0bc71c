import { describe, expect, it } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock, settled } from "../../loops/test-clock.ts";
import type { LineState, Ring } from "../../core/mesh/model.ts";
import { lineIdOf, ringHashOf, ringKeyOf, toBase64 } from "../../core/mesh/proof/index.ts";
import { possessionText } from "../../core/mesh/registry/index.ts";
import { fakeSigner, fakeVerify } from "../../core/mesh/test-signatures.ts";
import type { ControllerMetadata } from "../../ports/mesh/controllers.ts";
import type { JournalReign } from "../journal/journal-reign.ts";
import { CommittedAtOnce } from "../keys/test-journal.ts";
import { ControllersFold } from "./controllers-fold.ts";
import { standalone } from "./own/own-view.ts";
import { RegistryService } from "./registry.ts";

const TTL_MS = 300_000;
const CHECK_MS = 60_000;
const REQUEST = { caller: "ada", idempotencyKey: null, bodyHash: "" };
const OWN = { controllerId: "home", name: "Home", url: () => "http://home:1", version: "1.0.0" };

function stage() {
  const fold = new ControllersFold();
  const clock = new ManualClock();
  const written = new CommittedAtOnce(fold);
  const reigns: ((reign: JournalReign) => unknown)[] = [];
  const world = { unready: [] as string[], lines: new Map<string, LineState>(), linked: new Set<string>() };
  let reign = { isOver: false };
  const service = new RegistryService({
    fold,
    journal: {
      change: (make) => written.change(make),
      serve: (begin) => {
        reigns.push(begin);
        return { current: null, now: () => null, next: async () => null!, serving: () => null! };
      },
    },
    clock,
    digest,
    verify: fakeVerify(digest),
    own: OWN,
    ttlMs: TTL_MS,
    checkMs: CHECK_MS,
    lineState: (line) => world.lines.get(line) ?? null,
    unready: () => world.unready,
    isLinked: (id) => world.linked.has(id),
  });
  const lead = (): void => {
    reign.isOver = true;
    reign = { isOver: false };
    for (const begin of reigns) begin(reign as unknown as JournalReign);
  };
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += CHECK_MS / 2) {
      await clock.advance(CHECK_MS / 2);
      await settled();
    }
  };
  const register = (id: string, metadata: ControllerMetadata = {}, url = `http://${id}:1`) =>
    service.register({ id, url, name: id, metadata });
  const types = (): string[] => written.events.map(({ eventType, entityId }) => `${eventType} ${entityId}`);
  const status = (id: string): string => fold.registry.status(fold.registry.site(id)!);
  lead();
  return { fold, clock, service, world, lead, pass, register, types, status };
}

function ringOf(controller: string, node = "n1"): Ring {
  const { publicKey } = fakeSigner(`${controller}/${node}`, digest);
  return { controller, generation: 1, author: controller, keys: [ringKeyOf(node, publicKey)] };
}

function proofOf(controller: string, { url = `http://${controller}:1`, receiver = "home", node = "n1" } = {}) {
  const signer = fakeSigner(`${controller}/${node}`, digest);
  const signature = signer.sign(possessionText({ id: controller, url, receiver }));
  return { key: toBase64(signer.publicKey), signature: toBase64(signature) };
}

it("a heartbeat to a site that leaves is answered for as long as the caller's link is open", async () => {
  const { service, register, world, types, fold } = stage();
  fold.apply({
    eventType: "controller:registered",
    entityId: "home",
    payload: { name: "home", urls: [], line: "home.1", ...ringOf("home") },
    sequence: 1,
  } as never);
  await register("far");
  await service.leave(REQUEST);
  const before = types().length;
  world.linked.add("far");
  await expect(service.heartbeat({ id: "far" })).resolves.toHaveProperty("expiresAtMs");
  expect(types()).toHaveLength(before);
  world.linked.clear();
  await expect(service.heartbeat({ id: "far" })).rejects.toMatchObject({ code: "MESH_DISABLED" });
});

describe("the time to live of a registration", () => {
  it("is renewed by heartbeats, which are not events, and ends in one event", async () => {
    const { service, clock, pass, register, types, status } = stage();
    expect(await register("b")).toEqual({ expiresAtMs: clock.wallMs() + TTL_MS });
    for (let beat = 0; beat < 5; beat++) {
      await pass(120_000);
      expect(await service.heartbeat({ id: "b" })).toEqual({ expiresAtMs: clock.wallMs() + TTL_MS });
    }
    await pass(TTL_MS - CHECK_MS);
    expect(types()).toEqual(["controller:registered b"]);
    await pass(3 * CHECK_MS);
    expect([types(), status("b")]).toEqual([["controller:registered b", "controller:expired b"], "expired"]);
    expect([service.list(false).length, service.list(true).length]).toEqual([1, 2]);
  });

  it("has ended, or never began: the heartbeat says so, and registering again heals it", async () => {
    const { service, pass, register, status } = stage();
    await expect(service.heartbeat({ id: "b" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await register("b");
    await pass(TTL_MS + CHECK_MS);
    await expect(service.heartbeat({ id: "b" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await register("b");
    await service.heartbeat({ id: "b" });
    expect(status("b")).toBe("registered");
  });

  it("starts anew with each leader, and is not counted by one that does not lead any more", async () => {
    const { pass, lead, register, status, types } = stage();
    await register("b");
    await pass(TTL_MS - CHECK_MS);
    lead();
    await pass(TTL_MS - CHECK_MS);
    expect(status("b")).toBe("registered");
    await pass(2 * CHECK_MS);
    expect(types()).toEqual(["controller:registered b", "controller:expired b"]);
  });

  it("is counted on the monotonic clock: a jump of the wall clock ends nothing", async () => {
    const { clock, service, pass, register, status } = stage();
    await register("b");
    clock.skewMs += 10 * TTL_MS;
    await pass(CHECK_MS);
    expect([status("b"), service.silent()]).toEqual(["registered", []]);
  });

  it("is counted where a site sends its heartbeats: one that is known by the word of others does not expire here", async () => {
    const { fold, service, pass, register, types, status } = stage();
    const { line, ring } = { line: lineIdOf(ringOf("far"), digest), ring: ringOf("far") };
    const payload = {
      url: "http://far:1",
      name: "far",
      urls: [],
      version: null,
      line,
      ring,
      metadata: { vouchedBy: "b.1" },
    };
    fold.apply({ eventType: "controller:registered", entityId: "far", payload, timestamp: 1, sequence: 2 } as never);
    await register("b");
    await pass(3 * TTL_MS);
    expect(types()).toEqual(["controller:registered b", "controller:expired b"]);
    expect(status("far")).toBe("registered");
    // What a release before this one wrote of it.
    fold.apply({ eventType: "controller:expired", entityId: "far", payload: {}, sequence: 9 } as never);
    expect(status("far")).toBe("registered");
    const far = service.list(false).find(({ id }) => id === "far");
    expect(far?.isActive).toBe(true);
    expect(far?.expiresAtMs).toBeGreaterThan(0);
    // From the day on which it registers here itself it has to be heard here.
    await register("far", { line, ring, proof: proofOf("far") });
    await pass(2 * TTL_MS);
    expect(status("far")).toBe("expired");
  });

  it("is shown with what this node knows: a heartbeat that says something new is written", async () => {
    const { service, clock, pass, register, types } = stage();
    await register("b", { version: "1.0.0", rack: 3 });
    await pass(120_000);
    await service.heartbeat({ id: "b", url: "http://b:2", version: "1.1.0", urls: ["http://b:3"] });
    const [own, b] = service.list(false);
    expect(own).toMatchObject({ id: "home", status: "own", isActive: true, url: "http://home:1" });
    expect(b).toMatchObject({
      url: "http://b:2",
      lastHeartbeatAtMs: clock.wallMs(),
      expiresAtMs: clock.wallMs() + TTL_MS,
      metadata: { version: "1.1.0", rack: 3, urls: ["http://b:3"] },
    });
    expect(types()).toEqual(["controller:registered b", "controller:registered b"]);
  });
});

describe("the ring that a site shows", () => {
  it("is pinned with its line, by a proof for this id, this URL and this receiver", async () => {
    const { fold, register } = stage();
    const ring = ringOf("b");
    const wrong = [
      proofOf("b", { url: "http://elsewhere:1" }),
      proofOf("b", { receiver: "other" }),
      proofOf("c"),
      { ...proofOf("b"), signature: "AAAA" },
    ];
    for (const proof of wrong) {
      await expect(register("b", { ring, proof })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    }
    await expect(register("b", { ring })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await register("b", { line: lineIdOf(ring, digest), ring, proof: proofOf("b") });
    expect(fold.registry.site("b")!.lines).toEqual([{ line: lineIdOf(ring, digest), ring }]);
    expect(fold.registry.site("b")!.metadata).toEqual({});
  });

  it("is shown again by whoever registers again: without it nothing that is known of the site changes", async () => {
    const { service, register, types } = stage();
    await register("b", { ring: ringOf("b"), proof: proofOf("b") });
    const other = { id: "b", url: "http://elsewhere:1", name: "mallory", metadata: {} };
    await expect(service.register(other)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(service.list(false)[1]).toMatchObject({ name: "b", url: "http://b:1" });
    expect(types()).toEqual(["controller:registered b"]);
  });

  it("must be a ring, of the id that registers, and of the line that is named", async () => {
    const { register } = stage();
    const ring = ringOf("b");
    for (const [field, metadata] of [
      ["metadata.ring", { ring: { ...ring, extra: 1 }, proof: proofOf("b") }],
      ["metadata.ring", { line: "b.1234" }],
      ["metadata.ring", { ring: ringOf("c"), proof: proofOf("b") }],
      ["metadata.line", { ring, line: lineIdOf(ringOf("b", "n2"), digest), proof: proofOf("b") }],
    ] as const) {
      const registered = register("b", metadata);
      await expect(registered).rejects.toMatchObject({ code: "BAD_REQUEST", field });
    }
  });

  it("conflicts with another one under the same id, until an operator approves it", async () => {
    const { service, register } = stage();
    await register("b", { ring: ringOf("b"), proof: proofOf("b") });
    const other = ringOf("b", "n2");
    const again = () => register("b", { ring: other, proof: proofOf("b", { node: "n2" }) });
    await expect(again()).rejects.toMatchObject({ code: "CONTROLLER_CONFLICT" });
    await service.approve(REQUEST, "b", ringHashOf(other, digest));
    await again();
    expect(service.list(false)[1]).toMatchObject({ status: "approved", metadata: { line: lineIdOf(other, digest) } });
    // Approved before it has registered: that is no registration, and has no end.
    const before = await service.approve(REQUEST, "later", ringHashOf(ringOf("later"), digest));
    expect(before).toMatchObject({ status: "approved", isActive: false });
  });
});

describe("an operator", () => {
  it("evicts a site, with what this site has of its line, in the leader epoch that the request names", async () => {
    const { service, fold, world, register } = stage();
    const ring = ringOf("b");
    await register("b", { ring, proof: proofOf("b") });
    world.lines.set(lineIdOf(ring, digest), { size: 7, ring } as LineState);
    await expect(service.evict({ ...REQUEST, leaderEpoch: 2 }, "b")).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(await service.evict(REQUEST, "b")).toMatchObject({ status: "evicted", isActive: false });
    await expect(service.heartbeat({ id: "b" })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await expect(register("b")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(await service.approve(REQUEST, "b", null)).toMatchObject({ status: "approved" });
    await service.heartbeat({ id: "b" });
    expect(fold.registry.size).toBe(1);
  });
});

it("nothing is written before every node is known to read it; where there is a record, all have", async () => {
  const { world, register, types } = stage();
  world.unready = ["n3"];
  await expect(register("b")).rejects.toMatchObject({ code: "NOT_SUPPORTED", message: expect.stringContaining("n3") });
  expect(types()).toEqual([]);
  world.unready = [];
  await register("b");
  world.unready = ["n3"];
  await register("c");
  expect(types()).toHaveLength(2);
});

it("a standalone site lists itself, and registers nobody", async () => {
  const service = standalone(OWN, TTL_MS, new ManualClock());
  const asked = { id: "b", url: "http://b:1", name: "b", metadata: {} };
  await expect(service.register(asked)).rejects.toMatchObject({ code: "MESH_DISABLED" });
  await expect(service.heartbeat({ id: "b" })).rejects.toMatchObject({ code: "MESH_DISABLED" });
  expect(service.list(true)).toMatchObject([
    { id: "home", name: "Home", isActive: true, metadata: { version: "1.0.0" } },
  ]);
});

it("whoever listens hears of each change, and of nothing else", async () => {
  const { fold, register, service } = stage();
  let heard = 0;
  fold.onChanged(() => heard++);
  await register("b");
  await service.heartbeat({ id: "b" });
  fold.apply({ eventType: "build:submitted" } as never);
  expect(heard).toBe(1);
  fold.restore(fold.snapshot());
  expect([heard, fold.registry.size]).toEqual([2, 1]);
});
