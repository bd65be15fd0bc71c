// Three coordinators over real APIs with certificates: the production loop, the driver's calls and the routes together. What they decide is tested where it is
// decided; here, that it passes over HTTP whole, and that people and programs see it on every node.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CoordinatorService } from "../../src/controller/coordinators/index.ts";
import { peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { EMPTY_LEDGER } from "../../src/core/lease/index.ts";
import { coordinatorCalls, TcHttp } from "../../src/drivers/coordinators/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type { Coordinators } from "../../src/ports/coordinators.ts";
import type { TestApi } from "../api/test-api.ts";
import { BACKEND, type Got, TestIsland } from "../api/test-coordinators.ts";

const OTHER = "f".repeat(64);
const IDS = ["n1", "n2", "n3"];
const LIMIT_MS = 120_000;
const PATIENT = { timeout: 60_000 };

interface Node {
  readonly id: string;
  readonly api: TestApi;
  readonly url: string;
  readonly http: TcHttp;
  service: CoordinatorService;
}

let island: TestIsland;
let nodes: Node[];

async function startNode(id: string): Promise<Node> {
  const pair = await island.pair(`server/${id}`);
  const warn = (): void => {};
  const tls = { ...pair, ca: island.ca.cert };
  const options = {
    isLoopback: false,
    trustDomain: "tenure",
    isRevoked: () => false,
    clock: systemClock,
    logger: { warn },
  };
  const node = { id, http: new TcHttp({ tls, ...options }) } as { -readonly [Name in keyof Node]: Node[Name] };
  // The address is known when the API listens, and the API is made with its coordinator.
  const late = new Proxy({} as Coordinators, {
    get: (_, name: keyof Coordinators) => {
      const found: unknown = node.service[name];
      return typeof found === "function" ? (found.bind(node.service) as unknown) : found;
    },
  });
  node.api = await island.start(late, { nodeId: id, tls: { ...pair, clientCa: island.ca.cert } });
  node.url = `https://127.0.0.1:${node.api.port}`;
  return node;
}

/** Its files in memory. */
function serviceOf(id: string, more: Pick<ServiceOptions, "endpoint" | "seeds" | "calls">): CoordinatorService {
  const kept = { write: async (): Promise<void> => {} };
  const log = (): void => {};
  return new CoordinatorService({
    ...more,
    files: {
      self: peerKey(id, "a1"),
      ledger: EMPTY_LEDGER,
      ledgerFile: kept,
      leases: [],
      membershipFile: kept,
      setAside: null,
    },
    backendHash: BACKEND,
    clock: systemClock,
    random: seededRandom(id),
    logger: { info: log, warn: log, error: log },
    work: { begins: () => {}, ends: async () => {} },
    newClusterId: () => `c-${id}`,
    fatal: (error) => {
      throw error;
    },
  });
}

type ServiceOptions = ConstructorParameters<typeof CoordinatorService>[0];

beforeAll(async () => {
  island = await TestIsland.make();
  nodes = await Promise.all(IDS.map(startNode));
  const seeds = nodes.map(({ url }) => url);
  for (const node of nodes) {
    const { id, url: endpoint, http } = node;
    node.service = serviceOf(id, { endpoint, seeds, calls: coordinatorCalls(http) });
    node.service.start();
  }
}, LIMIT_MS);
afterAll(async () => {
  for (const { service, http, api } of nodes) {
    await service.coordinator.stop();
    http.close();
    await api[Symbol.asyncDispose]();
  }
});

const get = (node: Node, path: string): Promise<Got> => island.ask(node.api.port, { as: "tc/orders", path });
const post = (node: Node, as: string, path: string, body?: object): Promise<Got> =>
  island.ask(node.api.port, { as, method: "POST", path, ...(body === undefined ? {} : { body }) });

async function seenBy(among: readonly Node[], path: string, of: (json: Got["json"]) => unknown): Promise<unknown[]> {
  const all = await Promise.all(among.map((node) => get(node, path)));
  return [...new Set(all.map(({ json }) => JSON.stringify(of(json))))].map(
    (text) => JSON.parse(text ?? "null") as unknown,
  );
}

/** Whom all of these name as the leader, and who acts. */
async function leaderOf(among: readonly Node[]): Promise<Node> {
  let leader: Node | undefined;
  const look = async (): Promise<string> => {
    const named = await seenBy(among, "/v1/tc/leader", (json) => json["leader_id"] ?? null);
    const acting = among.filter(({ service }) => service.view().actsInTerm !== null);
    [leader] = acting;
    return [...named, ...acting.map(({ id }) => id)].join();
  };
  await expect.poll(look, PATIENT).toMatch(/^(n\d),\1$/);
  return leader!;
}

const votersOf = (json: Got["json"]): string[] =>
  (json["voters"] as { identity: string }[]).map(({ identity }) => identity);

describe("three coordinators over HTTP", () => {
  it("found one cluster, admit each other as voters, and name one leader", async () => {
    await expect.poll(() => seenBy(nodes, "/v1/tc/cluster/list", votersOf), PATIENT).toEqual([IDS]);
    const leader = await leaderOf(nodes);
    const clusters = await seenBy(nodes, "/v1/tc/leader", (json) => (json["self"] as Got["json"])["tc_cluster_id"]);
    expect(clusters).toHaveLength(1);
    const urls = nodes.map(({ url }) => url).toSorted();
    await expect.poll(() => seenBy(nodes, "/v1/tc/cluster/list", (json) => json["endpoints"]), PATIENT).toEqual([urls]);
    expect((await get(leader, "/v1/tc/cluster/list")).json["quorum"]).toBe(2);
  });

  it("a registration at a node that does not lead is forwarded, answered when all have stored it, and shown by all", async () => {
    const leader = await leaderOf(nodes);
    const follower = nodes.find((node) => node !== leader)!;
    const body = { backend_hash: OTHER, endpoint: "https://b:1" };
    await expect
      .poll(async () => (await post(follower, `server/${follower.id}`, "/v1/tc/rm/register", body)).status, PATIENT)
      .toBe(200);
    // The nodes have registered themselves meanwhile: one island, as far as they say.
    const urls = nodes.map(({ url }) => url).toSorted();
    const shown = [
      { backend_hash: BACKEND, endpoints: urls },
      { backend_hash: OTHER, endpoints: ["https://b:1"] },
    ];
    await expect.poll(() => seenBy(nodes, "/v1/tc/rm/list", (json) => json["backends"]), PATIENT).toEqual([shown]);
  });

  it("a leader that leaves with its own certificate is succeeded at once, and is in nobody's list; then it comes back", async () => {
    const leaving = await leaderOf(nodes);
    const others = nodes.filter((node) => node !== leaving);
    // On a busy machine a member may be late, and then it has not left.
    const leave = async (): Promise<number> =>
      (await post(leaving, `server/${leaving.id}`, "/v1/tc/cluster/leave")).status;
    await expect.poll(leave, PATIENT).toBe(200);
    expect((await get(leaving, "/v1/tc/leader")).json["error"]).toBe("tc_unavailable");
    const urls = others.map(({ url }) => url).toSorted();
    expect(await seenBy(others, "/v1/tc/cluster/list", (json) => json["endpoints"])).toEqual([urls]);
    await expect
      .poll(() => seenBy(others, "/v1/tc/cluster/list", votersOf), PATIENT)
      .toEqual([others.map(({ id }) => id)]);
    const next = await leaderOf(others);
    expect(next).not.toBe(leaving);
    const back = await post(leaving, `server/${leaving.id}`, "/v1/tc/cluster/announce", { self_endpoint: leaving.url });
    expect(back.status).toBe(200);
    await expect.poll(() => seenBy(nodes, "/v1/tc/cluster/list", votersOf), PATIENT).toEqual([IDS]);
  });

  it("hole 11: a server that sends its leave to another one takes out itself there, and nobody else anywhere", async () => {
    const leader = await leaderOf(nodes);
    const [one, other] = nodes.filter((node) => node !== leader) as [Node, Node];
    const got = await post(one, `server/${other.id}`, "/v1/tc/cluster/leave");
    expect([got.status, got.json["endpoints"]]).toEqual([200, [one.url, leader.url].toSorted()]);
    for (const node of nodes) expect(node.service.view().hasLeft).toBe(false);
    expect((await get(leader, "/v1/tc/cluster/list")).json["endpoints"]).toContain(other.url);
    expect(votersOf((await get(leader, "/v1/tc/cluster/list")).json)).toEqual(IDS);
  });
});
