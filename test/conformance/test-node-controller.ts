// The bodies of the conformance tests of specs/node-controller.md §9, against a cluster of three server processes. Three
// files run them: node-controller.test.ts and node-controller-postgres.test.ts on servers as they are, where all must pass, and
// node-controller-guards.test.ts on servers whose guard was taken out, where the one about it must fail.

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { OPERATOR_KEY as key, type TenureCluster, type TenureNode, waitFor } from "../servers/index.ts";

/** What a frozen leader costs on Postgres depends on it; the rest is fast. */
export const SERVER_TIMEOUT_MS = 3_000;

/** Longer than a lease that is lost takes to end, also on a busy machine. */
const LEASE_WAIT_MS = 20_000;

interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
}

async function leader(cluster: TenureCluster, not?: string): Promise<TenureNode> {
  return cluster.node(await cluster.waitForLeader(not));
}

async function standbys(cluster: TenureCluster): Promise<TenureNode[]> {
  const { id } = await leader(cluster);
  return cluster.nodes.filter((node) => node.id !== id);
}

/** A kind of its own for each test: its jobs are nobody else's. */
async function submitted(cluster: TenureCluster, kind: string): Promise<string> {
  const { status, body } = await (await leader(cluster)).call<{ id: string }>("/v1/jobs", { key, body: { kind } });
  expect(status).toBe(200);
  return body.id;
}

function agentCall(kind: string, session: string, ttlMs = 60_000): object {
  const agent = { name: `agent-${session}`, session, kinds: [kind], labels: {}, platform: "linux", capacity: 1 };
  return { agent, max: 1, wait_ms: LEASE_WAIT_MS, ttl_ms: ttlMs };
}

async function leased(node: TenureNode, kind: string, session: string): Promise<Lease> {
  const call = { key, body: agentCall(kind, session), limitMs: 2 * LEASE_WAIT_MS };
  const { body } = await node.call<{ leases: Lease[] }>("/v1/leases", call);
  expect(body.leases).toHaveLength(1);
  return body.leases[0]!;
}

function resultOf({ job_id, job_epoch, lease_id, leader_epoch }: Lease, session: string): object {
  return {
    session,
    results: [{ job_id, job_epoch, lease_id, leader_epoch, outcome: "completed", result: { by: session } }],
  };
}

async function jobOf(
  cluster: TenureCluster,
  id: string,
): Promise<{ state: string; result: unknown; job_epoch: number }> {
  const path = `/v1/jobs/${id}?consistency=linearizable`;
  return (await (await leader(cluster)).call<{ state: string; result: unknown; job_epoch: number }>(path, { key }))
    .body;
}

/** 1) */
export async function standbyRejects(cluster: TenureCluster): Promise<void> {
  const leading = await leader(cluster);
  const epoch = (await leading.call<{ leader_epoch: number }>("/role", { key })).body.leader_epoch;
  const kind = randomUUID();
  const mutations = [
    ["POST", "/v1/jobs", { kind }],
    ["POST", "/v1/leases", agentCall(kind, "s")],
    ["POST", "/v1/results", resultOf({ job_id: randomUUID(), job_epoch: 1, lease_id: "l", leader_epoch: 1 }, "s")],
    ["POST", `/v1/jobs/${randomUUID()}/cancel`, {}],
    ["POST", `/v1/jobs/${randomUUID()}/retry`, {}],
    ["DELETE", "/v1/agents/nobody", undefined],
  ] as const;
  for (const standby of await standbys(cluster)) {
    for (const [method, path, body] of mutations) {
      const answer = await standby.call(path, { method, key, ...(body === undefined ? {} : { body }) });
      expect({ path, ...answer }).toMatchObject({
        path,
        status: 409,
        body: {
          error: "NOT_LEADER",
          leader_id: leading.id,
          leader_url: leading.url,
          leader_epoch: epoch,
          node_id: standby.id,
          role: "STANDBY",
        },
      });
    }
  }
  const { body } = await leading.call<{ jobs: unknown[] }>(`/v1/jobs?kind=${kind}&consistency=linearizable`, { key });
  expect(body.jobs, "and nothing was written").toEqual([]);
}

/** 2) */
export async function onlyOneLeads(cluster: TenureCluster): Promise<void> {
  const roles = async () =>
    Promise.all(cluster.nodes.map(async (node) => (await node.call<{ role: string }>("/role", { key })).body.role));
  await waitFor("one leader", async () => (await roles()).filter((role) => role === "LEADER").length === 1);
  const kind = randomUUID();
  const answers = await Promise.all(cluster.nodes.map((node) => node.call("/v1/jobs", { key, body: { kind } })));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
}

/** 3) */
export async function epochIncrements(cluster: TenureCluster): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const old = await leader(cluster);
    const { body: before } = await old.call<{ leader_epoch: number }>("/role", { key });
    await old.kill9();
    const next = await leader(cluster, old.id);
    await submitted(cluster, randomUUID());
    const { body: after } = await next.call<{ leader_epoch: number }>("/role", { key });
    expect(after.leader_epoch).toBeGreaterThan(before.leader_epoch);
    old.start();
    await cluster.steady();
  }
}

/** 4) */
export async function oldLeaderCommitsNothing(cluster: TenureCluster): Promise<void> {
  const kind = randomUUID();
  const session = randomUUID();
  const id = await submitted(cluster, kind);
  const old = await leader(cluster);
  const lease = await leased(old, kind, session);
  try {
    old.stop();
    // In flight inside of the old leader: the kernel has taken it, and it is read when the process goes on.
    const inFlight = old.call("/v1/results", { key, body: resultOf(lease, session), limitMs: 60_000 });
    // Where this fails before it is awaited, nobody looks at it.
    inFlight.catch(() => undefined);
    const next = await leader(cluster, old.id);
    await waitFor("the next leader to serve", async () => (await next.call("/v1/stats", { key })).status === 200);
    const stale = await next.call<{ error?: string; results?: { error: string; leader_epoch: number }[] }>(
      "/v1/results",
      {
        key,
        body: resultOf(lease, session),
      },
    );
    const current = (await next.call<{ leader_epoch: number }>("/role", { key })).body.leader_epoch;
    expect(JSON.stringify(stale.body)).toContain("STALE_EPOCH");
    expect(JSON.stringify(stale.body)).toContain(`"leader_epoch":${current}`);
    old.cont();
    const { status, body } = await inFlight;
    expect({ status, body }, JSON.stringify(body)).not.toMatchObject({ status: 200 });
    expect(["NOT_LEADER", "OUTCOME_UNKNOWN", "STALE_EPOCH", "ERR_NO_LEADER"]).toContain(
      (body as { error: string }).error,
    );
  } finally {
    old.cont();
  }
  expect(await jobOf(cluster, id), "the job is as it was").toMatchObject({
    state: "assigned",
    job_epoch: lease.job_epoch,
  });
  await cluster.steady();
}

/** 5) */
export async function jobEpochRejects(cluster: TenureCluster): Promise<void> {
  const kind = randomUUID();
  const id = await submitted(cluster, kind);
  const node = await leader(cluster);
  const [first, second] = [randomUUID(), randomUUID()];
  const lost = await node.call<{ leases: Lease[] }>("/v1/leases", { key, body: agentCall(kind, first, 1_000) });
  const stale = lost.body.leases[0]!;
  // Nobody renews it: the job goes to another.
  const current = await leased(node, kind, second);
  expect(current).toMatchObject({ job_id: id });
  expect(current.job_epoch).toBeGreaterThan(stale.job_epoch);
  const { body } = await node.call("/v1/results", { key, body: resultOf(stale, first) });
  expect(JSON.stringify(body)).toContain("STALE_EPOCH");
  expect(await jobOf(cluster, id)).toMatchObject({ state: "assigned" });
  const done = await node.call("/v1/results", { key, body: resultOf(current, second) });
  expect(done.status).toBe(200);
  expect(await jobOf(cluster, id)).toMatchObject({ state: "completed", result: { by: second } });
}
