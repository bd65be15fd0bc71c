// What the loop must stand: answers that come late, disks that hang, nodes with two disks, requests without end.

import { describe, expect, test } from "vitest";
import { LEASE_TRUST_MS, LEASE_TTL_MS } from "../../core/lease/limits.ts";
import { settled } from "../../loops/test-clock.ts";
import type { Coordinator } from "./coordinator.ts";
import { Bench } from "./test-bench.ts";

async function led(bench: Bench): Promise<Coordinator> {
  const coordinator = bench.start();
  await bench.clock.advance(10);
  expect(coordinator.leads).toBe(1);
  return coordinator;
}

describe("answers that are processed late (trap 29)", () => {
  test("time comes first: a stop that ended the leadership ends it before an answer can say anything else", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    bench.isKept = ({ request }) => request.kind === "renew";
    await bench.clock.advance(1_000);
    const leadership = coordinator.leadership!;
    const { committed } = leadership;
    leadership.changeRegistry(bench.clock.now, [{ backendHash: "h", endpoint: "e" }], []);
    coordinator.wake();
    await settled();
    // The process stops, and its answers wait in its sockets.
    bench.clock.stop(LEASE_TTL_MS);
    bench.deliver();
    await settled();
    expect(leadership.over).toBe("expired");
    expect(leadership.committed).toBe(committed);
  });

  test("trust counts from the sending, however late the answer is processed: the gate stays closed (trap 44)", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    bench.isKept = ({ request }) => request.kind === "renew";
    await bench.clock.advance(1_000);
    bench.clock.stop(LEASE_TRUST_MS);
    bench.deliver();
    await settled();
    expect(coordinator.leads).toBeNull();
  });
});
