// The conformance tests of specs/node-controller.md §9, under their own names, against three server processes: on their own
// consensus, and on Postgres. Mutations are real ones: jobs, leases, results, agents.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  OPERATOR_KEY as key,
  type PostgresServer,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";

interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
}

/** What a frozen leader costs depends on it; the rest is fast. */
const SERVER_TIMEOUT_MS = 3_000;

let cluster: TenureCluster;

interface Stage {
  readonly cluster: TenureCluster;
  end(): Promise<void>;
}

const STAGES: Readonly<Record<string, () => Promise<Stage>>> = {
  "their own consensus": async () => {
    const own = await startTenureCluster();
    return { cluster: own, end: () => own.end() };
  },
  Postgres: async () => {
    const server: PostgresServer = await startPostgres({ settings: { fsync: "off" } });
    const url = `${server.url()}?tenure_server_timeout_ms=${SERVER_TIMEOUT_MS}`;
    const site = await startTenureCluster({ backend: url });
    const end = async (): Promise<void> => {
      await site.end();
      await server.end();
    };
    return { cluster: site, end };
  },
};

async function leader(not?: string): Promise<TenureNode> {
  return cluster.node(await cluster.waitForLeader(not));
}

async function standbys(): Promise<TenureNode[]> {
  const { id } = await leader();
  return cluster.nodes.filter((node) => node.id !== id);
}

/** A kind of its own for each test: its jobs are nobody else's. */
async function submitted(kind: string): Promise<string> {
  const { status, body } = await (await leader()).call<{ id: string }>("/v1/jobs", { key, body: { kind } });
  expect(status).toBe(200);
  return body.id;
}

function agentCall(kind: string, session: string, ttlMs = 60_000): object {
  const agent = { name: `agent-${session}`, session, kinds: [kind], labels: {}, platform: "linux", capacity: 1 };
  return { agent, max: 1, wait_ms: 5_000, ttl_ms: ttlMs };
}

async function leased(node: TenureNode, kind: string, session: string): Promise<Lease> {
  const { body } = await node.call<{ leases: Lease[] }>("/v1/leases", { key, body: agentCall(kind, session) });
  expect(body.leases).toHaveLength(1);
  return body.leases[0]!;
}

function resultOf({ job_id, job_epoch, lease_id, leader_epoch }: Lease, session: string): object {
  return {
    session,
    results: [{ job_id, job_epoch, lease_id, leader_epoch, outcome: "completed", result: { by: session } }],
  };
}

async function jobOf(id: string): Promise<{ state: string; result: unknown; job_epoch: number }> {
  const path = `/v1/jobs/${id}?consistency=linearizable`;
  return (await (await leader()).call<{ state: string; result: unknown; job_epoch: number }>(path, { key })).body;
}

describe.each(Object.keys(STAGES))("specs/node-controller.md §9, on %s", (name) => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await STAGES[name]!();
    cluster = stage.cluster;
  }, 120_000);

  afterAll(() => stage?.end());

  test("1) Standby rejects mutating endpoints with 409 NOT_LEADER.", async () => {
    const leading = await leader();
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
    for (const standby of await standbys()) {
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
  });

  test("2) Only one node can hold leader lock at a time.", async () => {
    const roles = async () =>
      Promise.all(cluster.nodes.map(async (node) => (await node.call<{ role: string }>("/role", { key })).body.role));
    await waitFor("one leader", async () => (await roles()).filter((role) => role === "LEADER").length === 1);
    const kind = randomUUID();
    const answers = await Promise.all(cluster.nodes.map((node) => node.call("/v1/jobs", { key, body: { kind } })));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
  });

  test("3) leader_epoch increments on leadership acquisition.", async () => {
    for (let round = 0; round < 3; round++) {
      const old = await leader();
      const { body: before } = await old.call<{ leader_epoch: number }>("/role", { key });
      await old.kill9();
      const next = await leader(old.id);
      await submitted(randomUUID());
      const { body: after } = await next.call<{ leader_epoch: number }>("/role", { key });
      expect(after.leader_epoch).toBeGreaterThan(before.leader_epoch);
      old.start();
      await cluster.steady();
    }
  });

  test("4) Old leader cannot commit results after losing leadership (STALE_EPOCH).", async () => {
    const kind = randomUUID();
    const session = randomUUID();
    const id = await submitted(kind);
    const old = await leader();
    const lease = await leased(old, kind, session);
    onTestFinished(() => old.cont());
    old.stop();
    // In flight inside of the old leader: the kernel has taken it, and it is read when the process goes on.
    const inFlight = old.call("/v1/results", { key, body: resultOf(lease, session), limitMs: 60_000 });
    const next = await leader(old.id);
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
    expect({ status, body }).not.toMatchObject({ status: 200 });
    expect(["NOT_LEADER", "OUTCOME_UNKNOWN", "STALE_EPOCH", "ERR_NO_LEADER"]).toContain(
      (body as { error: string }).error,
    );
    expect(await jobOf(id), "the job is as it was").toMatchObject({ state: "assigned", job_epoch: lease.job_epoch });
    await cluster.steady();
  });

  test("5) job_epoch rejects stale work (STALE_EPOCH).", async () => {
    const kind = randomUUID();
    const id = await submitted(kind);
    const node = await leader();
    const [first, second] = [randomUUID(), randomUUID()];
    const lost = await node.call<{ leases: Lease[] }>("/v1/leases", { key, body: agentCall(kind, first, 1_000) });
    const stale = lost.body.leases[0]!;
    // Nobody renews it: the job goes to another.
    const current = await leased(node, kind, second);
    expect(current).toMatchObject({ job_id: id });
    expect(current.job_epoch).toBeGreaterThan(stale.job_epoch);
    const { body } = await node.call("/v1/results", { key, body: resultOf(stale, first) });
    expect(JSON.stringify(body)).toContain("STALE_EPOCH");
    expect(await jobOf(id)).toMatchObject({ state: "assigned" });
    const done = await node.call("/v1/results", { key, body: resultOf(current, second) });
    expect(done.status).toBe(200);
    expect(await jobOf(id)).toMatchObject({ state: "completed", result: { by: second } });
  });
});
