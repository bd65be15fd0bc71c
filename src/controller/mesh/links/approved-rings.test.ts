import { expect, test } from "vitest";
import type { ChainEvent } from "../../../core/events/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { Receipt } from "../../../core/mesh/receipts/index.ts";
import { Registry } from "../../../core/mesh/registry/index.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { ManualClock } from "../../../loops/test-clock.ts";
import { ApprovedRings } from "./approved-rings.ts";

const encoder = new TextEncoder();

function stage() {
  const registry = new Registry();
  const clock = new ManualClock();
  const hub = new TestSite(ringOf("hub", ["n1"], digest), digest);
  const taken: string[] = [];
  const warned: string[] = [];
  const world = { isBroken: false };
  const rings = new ApprovedRings({
    clock,
    logger: { info() {}, warn: (_fields, text) => void warned.push(text), error() {} },
    registry,
    receipts: async function* () {
      for (let at = 1; at <= hub.size; at++) {
        if (world.isBroken) throw new TenureError("EVENTS_LOST", "receipts 1 to 2 are lost.");
        const items = [{ bytes: encoder.encode(hub.text(at)) }, { hash: "0".repeat(64) }];
        yield { page: { line: hub.line, items } } as unknown as Receipt;
      }
    },
    take: async (line, events) =>
      void taken.push(...events.map(({ event }) => `${line === hub.line} ${event.entityId}`)),
  });
  const approve = (entityId: string, ring: string): void =>
    registry.apply({
      eventType: "controller:approved",
      entityId,
      payload: { by: "ada", ring },
      sequence: 1,
    } as unknown as ChainEvent);
  const pass = (): Promise<void> => clock.advance(1_000);
  return { hub, rings, approve, taken, warned, world, pass };
}

test("what was said of a site before its ring was approved is taken then, once, and after each change of leaders", async () => {
  const { hub, rings, approve, taken, pass } = stage();
  for (const entityId of ["b", "c", "b"]) hub.write({ eventType: "controller:registered", entityId });
  hub.write({ eventType: "controller:expired", entityId: "b", payload: { of: "controller:registered" } });
  rings.begin();
  await pass();
  expect(taken).toEqual([]);
  approve("b", "the hash");
  rings.look();
  rings.look();
  await pass();
  expect(taken).toEqual(["true b", "true b", "true b"]);
  rings.look();
  await pass();
  expect(taken).toHaveLength(3);
  rings.begin();
  await pass();
  expect(taken).toHaveLength(6);
});

test("where the archive has a hole, that is said, and the next leader looks again", async () => {
  const { hub, rings, approve, taken, warned, world, pass } = stage();
  hub.write({ eventType: "controller:registered", entityId: "b" });
  approve("b", "the hash");
  world.isBroken = true;
  rings.begin();
  await pass();
  expect([taken, warned]).toEqual([[], [expect.stringContaining("receipts 1 to 2 are lost")]]);
  world.isBroken = false;
  rings.begin();
  await pass();
  expect(taken).toEqual(["true b"]);
});
