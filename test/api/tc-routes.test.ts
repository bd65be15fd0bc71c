// The routes of coordinators over TLS: what each answers, and each refusal by its cause. What the rules are is tested in core/lease; here, that nobody gets
// past them by what a body, a header or a certificate says.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { ERRORS } from "../../src/core/kit/errors.ts";
import type { PeerKey } from "../../src/core/kit/ids.ts";
import { EMPTY_LEDGER, type Ledger, type Roster, type VoterRequest } from "../../src/core/lease/index.ts";
import { LEASE_TTL_MS, MEMBERSHIP_TTL_MS, REGISTRY_ENTRIES_MAX } from "../../src/core/lease/limits.ts";
import { REFUSAL_CODES } from "../../src/core/lease/wire-answers.ts";
import { callOf } from "../../src/core/lease/wire-calls.ts";
import type { CoordinatorRequest, Coordinators } from "../../src/ports/coordinators.ts";
import type { TestApi } from "./test-api.ts";
import {
  type Asked,
  BACKEND,
  CLUSTER,
  type Got,
  SilentCalls,
  TestCoordinators,
  TestIsland,
} from "./test-coordinators.ts";

const N1 = "n1@a1" as PeerKey;
const N2 = "n2@b2" as PeerKey;
const N3 = "n3@c3" as PeerKey;
const OTHER = "f".repeat(64);
const endpointOf = (id: string): string => `https://${id}:1`;

let island: TestIsland;
beforeAll(async () => {
  island = await TestIsland.make();
});

interface Node extends AsyncDisposable {
  readonly api: TestApi;
  readonly coordinators: TestCoordinators;
  readonly calls: SilentCalls;
  ask(asked: Asked): Promise<Got>;
}

async function startNode(options: Partial<ConstructorParameters<typeof TestCoordinators>[0]> = {}): Promise<Node> {
  const calls = new SilentCalls();
  const coordinators = new TestCoordinators({ calls, ...options });
  const api = await island.start(coordinators, { limits: { adminPerWindow: 10_000 } });
  return {
    api,
    coordinators,
    calls,
    ask: (asked) => island.ask(api.port, asked),
    [Symbol.asyncDispose]: async () => {
      await coordinators.coordinator.stop();
      await api[Symbol.asyncDispose]();
    },
  };
}

/** In no cluster: it waits for a seed that never answers, and takes what the first leader sends. */
const startWaiting = (): Promise<Node> => startNode({ seeds: [endpointOf("n1"), "https://a-seed:1"] });

/** It has founded a cluster alone, and leads. */
async function startLeader(options: Parameters<typeof startNode>[0] = {}): Promise<Node> {
  const node = await startNode(options);
  await expect.poll(() => node.coordinators.coordinator.leads).not.toBe(null);
  return node;
}

function rosterOf(term: number, version: number, ...peers: readonly PeerKey[]): Roster {
  const voters = peers.map((peer) => ({ peer, endpoint: endpointOf(peer.split("@")[0]!) }));
  return { term, version, recoveredBy: null, voters, registry: [] };
}

const GENERATION = 2 ** 20;
const ROSTER = rosterOf(1, 1, N1, N2);
const ACQUIRE = {
  kind: "acquire",
  clusterId: CLUSTER,
  holder: N2,
  voter: N1,
  term: 2,
  ttlMs: LEASE_TTL_MS,
  roster: ROSTER,
} as const;
const RENEW = { ...ACQUIRE, kind: "renew", mark: null } as const;
const RELEASE = { kind: "release", clusterId: CLUSTER, holder: N2, voter: N1, term: 2 } as const;

/** As the driver sends it, with the certificate `as` and with these fields of the body instead. */
function sent(request: CoordinatorRequest, as = "server/n2", over: Readonly<Record<string, unknown>> = {}): Asked {
  const { method, path, headers, body } = callOf(request);
  return { as, method, path, headers, ...(body === null ? {} : { body: { ...body, ...over } }) };
}

const get = (path: string, as = "server/n2"): Asked => ({ as, path });
const post = (path: string, body?: unknown, as = "server/n2", headers: Record<string, string> = {}): Asked => ({
  as,
  path,
  method: "POST",
  headers,
  ...(body === undefined ? {} : { body }),
});
const announce = (id: string, endpoint = endpointOf(id)): Asked =>
  post("/v1/tc/cluster/announce", { self_endpoint: endpoint }, `server/${id}`);

function fits(id: RouteId, { status, json }: Got): void {
  expect([status, shape(ROUTES[id].answer as Exclude<Route["answer"], null>).check(json)]).toEqual([
    200,
    { ok: true, value: json },
  ]);
}

/** Status and code belong together, the route lists the code, and the form is that of these routes. */
function refused(got: Got, id: RouteId, code: keyof typeof ERRORS): void {
  expect(got).toMatchObject({
    status: ERRORS[code].http,
    json: { error: code, message: expect.any(String), detail: got.json["message"] },
  });
  expect((ROUTES[id] as Route).errors).toContain(code);
}

describe("GET /v1/tc/leader", () => {
  it("names the leader, its term and when its lease ends, and says who answers", async () => {
    await using node = await startLeader();
    const got = await node.ask(get("/v1/tc/leader", "tc/orders"));
    fits("tcLeader", got);
    const { leads, ledger } = node.coordinators.coordinator;
    expect(got.json).toEqual({
      leader_id: "n1",
      leader_incarnation: "a1",
      leader_endpoint: endpointOf("n1"),
      term: leads,
      expires_at: expect.any(Number),
      self: {
        identity: "n1",
        incarnation: "a1",
        tc_cluster_id: CLUSTER,
        backend_hash: BACKEND,
        term: leads,
        roster: { term: ledger.roster?.term, version: ledger.roster?.version },
        leaving: false,
        waits_for: [],
      },
    });
    const leftMs = (got.json["expires_at"] as number) - Date.now();
    expect(Math.abs(leftMs)).toBeLessThan(60_000);
  });

  it("names nobody where nobody leads, and says for whom a node waits that is in no cluster", async () => {
    await using node = await startWaiting();
    const got = await node.ask(get("/v1/tc/leader", "operator/ada"));
    fits("tcLeader", got);
    expect(got.json).toEqual({
      self: expect.objectContaining({ tc_cluster_id: null, roster: null, waits_for: ["https://a-seed:1"] }),
    });
  });

  it("is 503 tc_unavailable of a node that left, until it announces itself again with its own certificate", async () => {
    await using node = await startWaiting();
    expect((await node.ask(post("/v1/tc/cluster/leave", undefined, "server/n1"))).status).toBe(200);
    refused(await node.ask(get("/v1/tc/leader")), "tcLeader", "tc_unavailable");
    fits("tcMembers", await node.ask(get("/v1/tc/cluster/list")));
    const back = await node.ask(announce("n1"));
    fits("tcAnnounce", back);
    expect(back.json["endpoints"]).toEqual([endpointOf("n1")]);
    fits("tcLeader", await node.ask(get("/v1/tc/leader")));
  });
});

describe("leases of the leader", () => {
  it("are granted, renewed and released; each answer has the voter, and a release no end", async () => {
    await using node = await startWaiting();
    const granted = await node.ask(sent(ACQUIRE));
    fits("tcAcquire", granted);
    const voter = {
      identity: "n1",
      incarnation: "a1",
      tc_cluster_id: CLUSTER,
      term: 2,
      roster: { term: 1, version: 1 },
      leaving: false,
      lasts_ms: expect.any(Number),
    };
    const held = { leader_id: "n2", leader_endpoint: endpointOf("n2"), term: 2, expires_at: expect.any(Number), voter };
    expect(granted.json).toEqual({ granted: true, ...held });
    const renewed = await node.ask(sent(RENEW));
    fits("tcRenew", renewed);
    expect(renewed.json).toEqual({ renewed: true, ...held });
    const released = await node.ask(sent(RELEASE));
    fits("tcRelease", released);
    expect(released.json).toEqual({ released: true, leader_id: "n2", term: 2, voter: { ...voter, lasts_ms: 0 } });
    expect(node.coordinators.coordinator.ledger.grant).toEqual({ term: 2, leader: N2, released: true });
  });

  it("hole 5: the leader's identity is the certificate's, whatever the body says, and nothing changes", async () => {
    await using node = await startWaiting();
    for (const request of [ACQUIRE, RENEW, RELEASE]) {
      const field = request.kind === "acquire" ? "candidate_id" : "leader_id";
      for (const [as, body] of [
        ["server/n2", { [field]: "n3" }],
        ["server/n2", { [field]: "n1", incarnation: "a1" }],
        ["server/n3", {}],
      ] as const) {
        const got = await node.ask(sent(request, as, body));
        refused(
          got,
          request.kind === "acquire" ? "tcAcquire" : request.kind === "renew" ? "tcRenew" : "tcRelease",
          "tc_identity_mismatch",
        );
        expect(got.json["reason"]).toBe("identity-mismatch");
      }
    }
    expect(node.coordinators.coordinator.ledger).toBe(EMPTY_LEDGER);
  });

  it("hole 5: a body's time may shorten a lease, and never lengthens it", async () => {
    await using node = await startWaiting();
    const lastsMs = ({ json }: Got): number => (json["voter"] as { lasts_ms: number }).lasts_ms;
    const short = await node.ask(sent({ ...ACQUIRE, ttlMs: 1 }));
    expect(lastsMs(short)).toBeLessThanOrEqual(1.001);
    for (const ttlMs of [LEASE_TTL_MS + 1, Number.MAX_SAFE_INTEGER]) {
      for (const request of [ACQUIRE, RENEW]) {
        const got = await node.ask(sent({ ...request, ttlMs }));
        expect(got.status).toBe(200);
        expect(lastsMs(got)).toBeLessThanOrEqual(LEASE_TTL_MS + 0.001);
        expect(got.json["expires_at"]).toBeLessThanOrEqual(Date.now() + LEASE_TTL_MS + 1);
      }
    }
  });

  /** The rule that refuses it, how it is called, and what is sent to a voter that holds term 2 of `n2`. */
  const REFUSALS: readonly (readonly [string, keyof typeof ERRORS, VoterRequest, string?])[] = [
    ["identity-mismatch", "tc_identity_mismatch", { ...ACQUIRE, holder: N3 }],
    ["other-voter", "tc_identity_mismatch", { ...RENEW, voter: "n1@a2" as PeerKey }],
    ["other-voter", "tc_identity_mismatch", { ...RELEASE, voter: N3 }],
    ["cluster-mismatch", "tc_cluster_mismatch", { ...ACQUIRE, clusterId: "c-2" }],
    ["cluster-mismatch", "tc_cluster_mismatch", { ...RENEW, roster: { ...ROSTER, recoveredBy: N3 } }],
    ["roster-missing", "missing_roster", { ...ACQUIRE, roster: null }],
    ["roster-missing", "missing_roster", { ...RENEW, roster: null }],
    ["impossible", "invalid_term", { ...ACQUIRE, term: GENERATION + 1 }],
    ["impossible", "invalid_term", { ...ACQUIRE, roster: rosterOf(3, 1, N1, N2) }],
    ["impossible", "invalid_term", { ...RENEW, roster: rosterOf(2, 2, N1, N3) }],
    ["term-stale", "tc_term_stale", { ...ACQUIRE, term: 1 }],
    [
      "term-stale",
      "tc_term_stale",
      { ...ACQUIRE, holder: "n2@b3" as PeerKey, roster: rosterOf(1, 1, "n2@b3" as PeerKey) },
    ],
    ["roster-stale", "tc_roster_stale", { ...ACQUIRE, term: 3, roster: rosterOf(0, 9, N1, N2) }],
    [
      "lease-active",
      "tc_lease_active",
      { ...ACQUIRE, holder: N3, term: 3, roster: rosterOf(1, 1, N1, N3) },
      "server/n3",
    ],
    ["not-holder", "tc_term_stale", { ...RENEW, term: 3 }],
    ["not-holder", "tc_term_stale", { ...RELEASE, term: 1 }],
    ["not-holder", "tc_term_stale", { ...RELEASE, holder: N3 }, "server/n3"],
  ];

  const rows = REFUSALS.map(([reason, code, request, as]) => ({ reason, code, request, as }));
  it.each(rows)("$reason of $request.kind is $code, with the voter and who leads there", async (row) => {
    const { reason, code, request, as } = row;
    await using node = await startWaiting();
    await node.ask(sent(ACQUIRE));
    const before = node.coordinators.coordinator.ledger;
    const got = await node.ask(sent(request, as));
    refused(got, { acquire: "tcAcquire", renew: "tcRenew", release: "tcRelease" }[request.kind] as RouteId, code);
    expect(got.json).toMatchObject({
      reason,
      voter: { identity: "n1", incarnation: "a1", tc_cluster_id: CLUSTER, term: 2, roster: { term: 1, version: 1 } },
      leader_endpoint: endpointOf("n2"),
    });
    expect(got.json["voter"]).not.toHaveProperty("lasts_ms");
    expect(node.coordinators.coordinator.ledger).toBe(before);
  });

  it("generation-over is tc_term_stale, at a voter that has heard of a recovery", async () => {
    await using node = await startWaiting();
    await node.ask(sent(ACQUIRE));
    const later = { ...rosterOf(GENERATION, 1, N3), recoveredBy: N3 };
    const recovered = { ...ACQUIRE, holder: N3, term: GENERATION + 1, roster: later };
    refused(await node.ask(sent(recovered, "server/n3")), "tcAcquire", "tc_lease_active");
    const got = await node.ask(sent(RENEW));
    refused(got, "tcRenew", "tc_term_stale");
    expect(got.json["reason"]).toBe("generation-over");
  });

  it("every refusal that there is has a row above", () => {
    const reasons = new Set(REFUSALS.map(([reason]) => reason));
    const without = ["generation-over", "invalid-ttl"];
    expect([...reasons, ...without].toSorted()).toEqual(Object.keys(REFUSAL_CODES).toSorted());
  });
});

describe("membership", () => {
  it("an announcement is the lease of the caller's certificate, for 9 s; it moves with the caller, and lists each endpoint once", async () => {
    await using node = await startLeader();
    const got = await node.ask(announce("n2", `${endpointOf("n2")}/`));
    fits("tcAnnounce", got);
    expect(got.json["endpoints"]).toEqual([endpointOf("n1"), endpointOf("n2")]);
    const [updated, expires] = [got.json["updated_at_unix"], got.json["expires_at_unix"]] as number[];
    expect(expires! - updated!).toBe(MEMBERSHIP_TTL_MS / 1_000);
    expect(Math.abs(updated! - Date.now() / 1_000)).toBeLessThan(60);
    await node.ask(announce("n3", endpointOf("n2")));
    const moved = await node.ask(announce("n2", "https://elsewhere:1"));
    expect(moved.json["endpoints"]).toEqual(["https://elsewhere:1", endpointOf("n1"), endpointOf("n2")]);
    expect(node.coordinators.members().leases.map(({ identity }) => identity)).toEqual(["n1", "n2", "n3"]);
  });

  it("this node's own certificate at another address is another process that has it: it is refused, and brings nobody back", async () => {
    await using node = await startWaiting();
    await node.ask(post("/v1/tc/cluster/leave", undefined, "server/n1"));
    const got = await node.ask(announce("n1", "https://twin:1"));
    refused(got, "tcAnnounce", "invalid_self_endpoint");
    expect(got.json["field"]).toBe("self_endpoint");
    expect(node.coordinators.view().hasLeft).toBe(true);
  });

  it("the list has the members, and the voters with what the leader knows of each", async () => {
    await using node = await startLeader();
    await node.ask(announce("n2"));
    const got = await node.ask(get("/v1/tc/cluster/list", "tc/orders"));
    fits("tcMembers", got);
    expect(got.json).toEqual({
      endpoints: [endpointOf("n1"), endpointOf("n2")],
      updated_at_unix: expect.any(Number),
      voters: [{ identity: "n1", incarnation: "a1", endpoint: endpointOf("n1"), state: "leads" }],
      quorum: 1,
      roster: expect.objectContaining({ version: expect.any(Number) }),
    });
  });

  it.each([
    ["with the fan-out's header", { "x-tenure-tc-leave-fanout": "1" }],
    ["with the specification's header", { "x-lockd-tc-leave-fanout": "1" }],
    ["without a header", {}],
  ])(
    "hole 11: another node's leave %s removes that node's lease here, and makes nobody else leave",
    async (_how, headers) => {
      await using node = await startLeader();
      for (const id of ["n2", "n3"]) await node.ask(announce(id));
      const got = await node.ask(post("/v1/tc/cluster/leave", undefined, "server/n2", headers));
      fits("tcLeave", got);
      expect(got.json["endpoints"]).toEqual([endpointOf("n1"), endpointOf("n3")]);
      expect(node.coordinators.view().hasLeft).toBe(false);
      expect(node.coordinators.coordinator.leads).not.toBe(null);
      expect(node.calls.asked.filter(({ request }) => request.kind === "leave")).toEqual([]);
    },
  );

  it("a leave that was fanned out is done here and sent no further, also with this node's own certificate", async () => {
    await using node = await startLeader();
    await node.ask(announce("n2"));
    for (const name of ["x-tenure-tc-leave-fanout", "X-Lockd-TC-Leave-Fanout"]) {
      const got = await node.ask(post("/v1/tc/cluster/leave", {}, "server/n1", { [name]: "1" }));
      expect([got.status, got.json["endpoints"]]).toEqual([200, [endpointOf("n2")]]);
    }
    expect(node.coordinators.view().hasLeft).toBe(false);
    expect(node.calls.asked.filter(({ request }) => request.kind === "leave")).toEqual([]);
  });

  it("a leave of its own is refused where a member does not answer, or where it is the only voter, and audited", async () => {
    await using waiting = await startWaiting();
    await waiting.ask(announce("n2"));
    const silent = await waiting.ask(post("/v1/tc/cluster/leave", undefined, "server/n1"));
    refused(silent, "tcLeave", "tc_cluster_unavailable");
    expect(silent.json["message"]).toContain("https://n2:1 did not answer");
    await using sole = await startLeader();
    const alone = await sole.ask(post("/v1/tc/cluster/leave", undefined, "server/n1"));
    refused(alone, "tcLeave", "tc_cluster_unavailable");
    expect(alone.json["message"]).toContain("only voter");
    for (const { coordinators } of [waiting, sole]) expect(coordinators.view().hasLeft).toBe(false);
    expect(sole.api.audited).toMatchObject([{ operation: "tcLeave", target: "n1", outcome: "tc_cluster_unavailable" }]);
  });
});

describe("the registry", () => {
  const register = (endpoint: string, hash = BACKEND, headers: Record<string, string> = {}): Asked =>
    post("/v1/tc/rm/register", { backend_hash: hash, endpoint }, "server/n2", headers);
  const unregister = (endpoint: string, hash = BACKEND): Asked =>
    post("/v1/tc/rm/unregister", { backend_hash: hash, endpoint });

  it("takes and lists the endpoints of each backend; the same twice changes nothing; an endpoint moves with its backend", async () => {
    await using node = await startLeader();
    expect((await node.ask(get("/v1/tc/rm/list", "tc/orders"))).json["backends"]).toEqual([]);
    const first = await node.ask(register("https://b:1/"));
    fits("tcRegister", first);
    expect(first.json).toEqual({
      backend_hash: BACKEND,
      endpoints: ["https://b:1"],
      updated_at_unix: expect.any(Number),
    });
    await node.ask(register("https://f:1", OTHER));
    const version = node.coordinators.members().roster?.version;
    expect((await node.ask(register("https://b:1"))).json["endpoints"]).toEqual(["https://b:1"]);
    expect(node.coordinators.members().roster?.version).toBe(version);
    const list = await node.ask(get("/v1/tc/rm/list", "operator/ada"));
    fits("tcBackends", list);
    expect(list.json["backends"]).toEqual([
      { backend_hash: BACKEND, endpoints: ["https://b:1"] },
      { backend_hash: OTHER, endpoints: ["https://f:1"] },
    ]);
    expect((await node.ask(register("https://f:1"))).json["endpoints"]).toEqual(["https://b:1", "https://f:1"]);
    const gone = await node.ask(unregister("https://b:1"));
    fits("tcUnregister", gone);
    expect(gone.json["endpoints"]).toEqual(["https://f:1"]);
  });

  it("an endpoint whose server is of another island is invalid_backend_hash, and nothing has changed", async () => {
    await using node = await startLeader({ backendHash: BACKEND });
    const wrong = await node.ask(register("https://n1:1/", OTHER));
    refused(wrong, "tcRegister", "invalid_backend_hash");
    expect(wrong.json["detail"]).toContain("GET /v1/tc/leader");
    expect(JSON.stringify((await node.ask(get("/v1/tc/rm/list"))).json)).not.toContain(OTHER);
    expect((await node.ask(register("https://n1:1/"))).json["endpoints"]).toEqual(["https://n1:1"]);
  });

  it("a listed member that does not answer is 502 tc_rm_replication_failed, and nothing has changed", async () => {
    await using node = await startLeader();
    await node.ask(announce("n3"));
    for (const asked of [register("https://b:1"), unregister("https://b:1")]) {
      const answer = await node.ask(asked);
      refused(answer, "tcRegister", "tc_rm_replication_failed");
      expect(answer.json).toMatchObject({
        missing: ["https://n3:1"],
        detail: expect.stringContaining("https://n3:1 did not answer"),
      });
    }
    expect((await node.ask(get("/v1/tc/rm/list"))).json["backends"]).toEqual([]);
    await node.ask(post("/v1/tc/cluster/leave", undefined, "server/n3"));
    expect((await node.ask(register("https://b:1"))).status).toBe(200);
  });

  it("where nobody leads it is tc_not_leader; a leader that is known is named and asked, once", async () => {
    await using node = await startWaiting();
    const nobody = await node.ask(register("https://b:1"));
    refused(nobody, "tcRegister", "tc_not_leader");
    expect(nobody.json).not.toHaveProperty("leader_endpoint");
    await node.ask(sent(ACQUIRE));
    refused(await node.ask(register("https://b:1")), "tcRegister", "OUTCOME_UNKNOWN");
    const entry = { backendHash: BACKEND, endpoint: "https://b:1" };
    const forwarded = { kind: "registry", change: "register", entry, isForwarded: true };
    const changes = node.calls.asked.filter(({ request }) => request.kind === "registry");
    expect(changes).toEqual([{ endpoint: endpointOf("n2"), request: forwarded }]);
    node.calls.asked.length = 0;
    for (const name of ["x-tenure-tc-forwarded", "X-Tenure-TC-Replicate", "x-lockd-tc-replicate"]) {
      const got = await node.ask(register("https://b:1", BACKEND, { [name]: "1" }));
      refused(got, "tcRegister", "tc_not_leader");
      expect(got.json["leader_endpoint"]).toBe(endpointOf("n2"));
    }
    expect(node.calls.asked.filter(({ request }) => request.kind === "registry")).toEqual([]);
  });

  it("takes as many endpoints as it may, and then says so; whoever unregisters one makes room", async () => {
    const registry = Array.from({ length: REGISTRY_ENTRIES_MAX - 1 }, (_, at) => ({
      backendHash: OTHER,
      endpoint: `https://e${at}:1`,
    }));
    const roster = { ...rosterOf(0, 1, N1), registry };
    const ledger: Ledger = { ...EMPTY_LEDGER, clusterId: CLUSTER, roster };
    await using node = await startLeader({ ledger });
    expect((await node.ask(register("https://last:1"))).status).toBe(200);
    refused(await node.ask(register("https://one-more:1")), "tcRegister", "QUOTA_EXCEEDED");
    expect(node.coordinators.registry().entries).toHaveLength(REGISTRY_ENTRIES_MAX);
    expect((await node.ask(register("https://last:1", OTHER))).status).toBe(200);
    expect((await node.ask(unregister("https://e0:1", OTHER))).status).toBe(200);
    expect((await node.ask(register("https://one-more:1"))).status).toBe(200);
  });
});

describe("GET /v1/islands", () => {
  it("shows what this node knows, to whoever may look", async () => {
    await using node = await startLeader();
    await node.ask(announce("n2"));
    await node.ask(post("/v1/tc/cluster/leave", undefined, "server/n2"));
    await node.ask(post("/v1/tc/rm/register", { backend_hash: BACKEND, endpoint: "https://b:1" }));
    const got = await node.ask({ as: null, path: "/v1/islands", headers: { "x-api-key": "viewer-key" } });
    fits("islands", got);
    const { leads } = node.coordinators.coordinator;
    expect(got.json).toMatchObject({
      self: { identity: "n1", incarnation: "a1", endpoint: endpointOf("n1"), tc_cluster_id: CLUSTER, term: leads },
      leader: { identity: "n1", incarnation: "a1", endpoint: endpointOf("n1"), term: leads },
      acts_in_term: leads,
      waits_for: [],
      left: false,
      members: [{ identity: "n1", endpoint: endpointOf("n1") }],
      voters: [{ identity: "n1", state: "leads" }],
      quorum: 1,
      registry: [{ backend_hash: BACKEND, endpoint: "https://b:1" }],
    });
  });

  it("fits its schema also where there is nothing to show", async () => {
    await using node = await startWaiting();
    const got = await node.ask(get("/v1/islands", "viewer/eve"));
    fits("islands", got);
    expect(got.json).toMatchObject({ leader: null, acts_in_term: null, quorum: 0, roster: null, registry: [] });
  });
});

describe("without a coordinator", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await island.start();
  });
  afterAll(() => api[Symbol.asyncDispose]());

  it.each([
    ["tcLeader", get("/v1/tc/leader")],
    ["tcAcquire", sent(ACQUIRE)],
    ["tcRenew", sent(RENEW)],
    ["tcRelease", sent(RELEASE)],
    ["tcAnnounce", announce("n2")],
    ["tcLeave", post("/v1/tc/cluster/leave")],
    ["tcMembers", get("/v1/tc/cluster/list")],
    ["tcRegister", post("/v1/tc/rm/register", { backend_hash: BACKEND, endpoint: "https://b:1" })],
    ["tcUnregister", post("/v1/tc/rm/unregister", { backend_hash: BACKEND, endpoint: "https://b:1" })],
    ["tcBackends", get("/v1/tc/rm/list")],
  ] as const)("%s is 503 tc_unavailable, with the reason", async (id, asked) => {
    const got = await island.ask(api.port, asked);
    refused(got, id, "tc_unavailable");
    expect(got.json["message"]).toContain("[tc] join");
  });

  it("islands are 503 tc_unavailable too, in the form of every other route", async () => {
    const { status, json } = await island.ask(api.port, get("/v1/islands", "viewer/eve"));
    expect([status, json["error"], "detail" in json]).toEqual([503, "tc_unavailable", false]);
  });
});

it("what nobody foresaw is OUTCOME_UNKNOWN where something may have been written, and INTERNAL where nothing was", async () => {
  const broken = (): never => {
    throw new Error("secret detail");
  };
  const coordinators = {
    self: N1,
    endpoint: endpointOf("n1"),
    view: broken,
    answer: broken,
  } as unknown as Coordinators;
  await using api = await island.start(coordinators);
  refused(await island.ask(api.port, sent(ACQUIRE)), "tcAcquire", "OUTCOME_UNKNOWN");
  const look = await island.ask(api.port, get("/v1/tc/leader"));
  expect([look.status, look.json["error"]]).toEqual([500, "INTERNAL"]);
  expect(JSON.stringify(look)).not.toContain("secret");
});
