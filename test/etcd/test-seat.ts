// What the tests with a real etcd share: claims that remember, seats and sessions that are closed afterwards, and etcd's
// JSON API as anybody else would use it.

import { onTestFinished } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { httpWire } from "../../src/drivers/etcd/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { type EtcdBackend, type EtcdTerm } from "../../src/electors/etcd/index.ts";
import { EtcdSession } from "../../src/electors/etcd/session.ts";
import { etcd, type EtcdOptions } from "../../src/entry/etcd.ts";
import type { Claim, Hold, LossReason, Seat } from "../../src/ports/backends/backend.ts";
import { etcdPath } from "../servers/index.ts";

export const noEtcd = etcdPath() === undefined;
if (noEtcd) console.warn("etcd is not on PATH: the tests with a real etcd are skipped (Debian: etcd-server)");

/** Elections in half a second, and leases from 1 s on. */
export const QUICK = ["--heartbeat-interval=50", "--election-timeout=500"];

export const LEASE_SECONDS = 4;

let scopes = 0;

export function freshScope(): string {
  return `scope-${process.pid}-${++scopes}`;
}

export interface Loss {
  readonly epoch: number;
  readonly reason: LossReason;
  readonly atMs: number;
}

export interface TestSeat {
  readonly seat: Seat<EtcdTerm>;
  readonly losses: Loss[];
}

/** Tests that run next to each other give the hook of their own context. */
export type Finished = (close: () => Promise<void>) => void;

export function seatAt(
  backend: EtcdBackend,
  scope: string,
  identity = "someone",
  finished: Finished = onTestFinished,
): TestSeat {
  const losses: Loss[] = [];
  const claim: Claim = {
    scope,
    identity,
    metadata: { zone: "a" },
    clock: systemClock,
    random: seededRandom(identity),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    lost: (epoch, reason) => losses.push({ epoch, reason, atMs: performance.now() }),
  };
  const seat = backend.seat(claim);
  finished(() => seat.close());
  return { seat, losses };
}

/** Leases of 4 s: a request is given up after 750 ms, which an etcd that syncs on a busy machine answers in. */
export function quickEtcd(endpoints: string | readonly string[], options: Partial<EtcdOptions> = {}): EtcdBackend {
  return etcd({ ttlSeconds: LEASE_SECONDS, ...options, endpoints });
}

/** A hold whose gate is always open, as a process sees it that was stopped and does not know it yet. */
export function blindHold(scope: string, epoch: number, lost: LossReason[] = []): Hold {
  return { scope, epoch, check: () => epoch, lost: (reason) => lost.push(reason) };
}

export function sessionAt(endpoint: string): EtcdSession {
  const session = new EtcdSession(httpWire({ endpoints: [new URL(endpoint)], headers: {}, tls: {} }), undefined, 5_000);
  onTestFinished(() => session.close());
  return session;
}

export const never = new AbortController().signal;

/** One call of the JSON API, past all of our code. */
export async function api(endpoint: string, path: string, body: object, token?: string): Promise<Answer> {
  const headers = token === undefined ? {} : { authorization: token };
  const response = await fetch(`${endpoint}/v3/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as Answer;
}

export interface Answer {
  readonly succeeded?: boolean;
  readonly token?: string;
  readonly message?: string;
  readonly header?: { readonly revision: string; readonly member_id: string };
  readonly leader?: string;
  readonly kvs?: readonly { key: string; value: string; create_revision: string; lease?: string }[];
  readonly count?: string;
}

export async function leaderKey(endpoint: string, scope: string): Promise<NonNullable<Answer["kvs"]>[number] | null> {
  const { kvs } = await api(endpoint, "kv/range", { key: btoa(`tenure/${scope}/leader`) });
  return kvs?.[0] ?? null;
}
