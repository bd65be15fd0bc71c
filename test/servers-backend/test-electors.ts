// What the tests of the servers backend share: clusters, electors and seats that are ended with the test.

import { onTestFinished } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { createElector, type Elector, type Transition } from "../../src/entry/index.ts";
import { type ServersBackend, servers, type ServersOptions } from "../../src/entry/servers.ts";
import type { Claim, LossReason, Seat } from "../../src/ports/backends/backend.ts";
import { startTestCluster, type TestCluster, type TestClusterOptions } from "./test-scope-server.ts";

export const never = new AbortController().signal;

let scopes = 0;

export function freshScope(): string {
  return `scope-${process.pid}-${++scopes}`;
}

export async function testCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const cluster = await startTestCluster(options);
  onTestFinished(() => cluster.end());
  return cluster;
}

/** Leases of 4 s: trusted for 3 s, a try is given up after 750 ms. */
export function quickServers(urls: string | readonly string[], options: ServersOptions = {}): ServersBackend {
  return servers(urls, { ttlMs: 4_000, heartbeatMs: 300, ...options });
}

export interface Running {
  readonly elector: Elector;
  readonly transitions: Transition[];
}

export function electorAt(backend: ServersBackend, scope: string, identity: string): Running {
  const transitions: Transition[] = [];
  const onTransition = (transition: Transition): void => void transitions.push(transition);
  const elector = createElector({ scope, identity, backend, onTransition });
  onTestFinished(() => elector.close());
  return { elector, transitions };
}

export interface TestSeat {
  readonly seat: Seat;
  readonly losses: [number, LossReason][];
}

export function seatAt(backend: ServersBackend, scope: string, identity = "someone"): TestSeat {
  const losses: [number, LossReason][] = [];
  const claim: Claim = {
    scope,
    identity,
    metadata: { zone: "a" },
    clock: systemClock,
    random: seededRandom(identity),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    lost: (epoch, reason) => losses.push([epoch, reason]),
  };
  const seat = backend.seat(claim);
  onTestFinished(() => seat.close());
  return { seat, losses };
}
