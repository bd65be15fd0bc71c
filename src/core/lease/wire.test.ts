// What is written on one side is read on the other: every request, every answer; and what is none is read as none.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LEASE_BODY_BYTES_MAX } from "../../contract/tc/limits.ts";
import { TC_ROUTES } from "../../contract/tc/routes.ts";
import type { Route } from "../../contract/route.ts";
import { shape } from "../../contract/shape.ts";
import type { CoordinatorRequest, CoordinatorView, RegistryAnswer } from "../../ports/coordinators.ts";
import { assertNever } from "../kit/assert.ts";
import { ERRORS } from "../kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { MEMBERS_MAX, REGISTRY_ENTRIES_MAX } from "../kit/limits.ts";
import { MEMBERSHIPS_KEPT } from "./limits.ts";
import type { LeaseRefusal, Position, Roster, VoterAnswer, VoterRequest } from "./model.ts";
import {
  answerOf,
  doneBody,
  REFUSAL_CODES,
  refusalFields,
  registryBody,
  statusBody,
  type WireAnswer,
} from "./wire-answers.ts";
import {
  acquireOf,
  callOf,
  FORWARDED_HEADERS,
  LEAVE_FANOUT_HEADERS,
  releaseOf,
  renewOf,
  type WireCall,
} from "./wire-calls.ts";

const PEER = "n1@a" as PeerKey;
/** What a voter says of itself: what none of its fields may be. */
const WRONG = {
  identity: [null, 1, "", "N1", "n1@a", "n".repeat(64), {}, ["n1"]],
  incarnation: [null, 1, "", "A", "a@b", "a".repeat(17), {}],
  tc_cluster_id: [1, "", "c".repeat(129), {}, false],
  term: [null, -1, 1.5, 2 ** 53, "1", {}],
  roster: [1, {}, [], { term: 1 }, { term: 1, version: "1" }, { term: -1, version: 1 }, { term: 1.5, version: 1 }],
  leaving: [null, 0, "false", {}],
  lasts_ms: [null, -1, "3000", 1e300, {}],
};
const WRONG_LEADER = {
  leader_id: [undefined, null, 1, "N2", ""],
  leader_incarnation: [undefined, null, "x", 1],
  leader_endpoint: [1, "", "n2:1", {}],
  term: [undefined, null, -1, "1"],
};
const leaderAnswer = shape(TC_ROUTES.tcLeader.answer);
const doneAnswers = {
  acquire: shape(TC_ROUTES.tcAcquire.answer),
  renew: shape(TC_ROUTES.tcRenew.answer),
  release: shape(TC_ROUTES.tcRelease.answer),
};
const NOW = 1_700_000_000_000.5;

function sent<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** As the route of this call reads it. */
function received(call: WireCall): CoordinatorRequest {
  const found = (Object.entries(TC_ROUTES) as [keyof typeof TC_ROUTES, Route][]).find(
    ([, { method, path }]) => method === call.method && path === call.path,
  );
  const [id, route] = found ?? [];
  if (call.body !== null) expect(route?.body?.check(sent(call.body))).toEqual({ ok: true, value: sent(call.body) });
  const body = sent(call.body) as never;
  const isForwarded = FORWARDED_HEADERS.some((name) => call.headers[name] === "1");
  switch (id) {
    case "tcAcquire":
      return acquireOf(body);
    case "tcRenew":
      return renewOf(body);
    case "tcRelease":
      return releaseOf(body);
    case "tcLeader":
      return { kind: "status" };
    case "tcAnnounce":
      return { kind: "announce", endpoint: (body as { self_endpoint: string }).self_endpoint };
    case "tcLeave":
      expect(call.headers[LEAVE_FANOUT_HEADERS[0]]).toBe("1");
      return { kind: "leave" };
    case "tcRegister":
    case "tcUnregister": {
      const { backend_hash: backendHash, endpoint } = body as { backend_hash: string; endpoint: string };
      const change = id === "tcRegister" ? "register" : "unregister";
      return { kind: "registry", change, entry: { backendHash, endpoint }, isForwarded };
    }
    default:
      throw new Error(`no route takes ${call.method} ${call.path}`);
  }
}

/** As the routes answer it. */
function answered(request: VoterRequest, answer: VoterAnswer): WireAnswer {
  const { outcome } = answer;
  if (outcome.kind === "accepted") return { status: 200, body: sent(doneBody(request, answer, outcome.lastsMs, NOW)) };
  const error = REFUSAL_CODES[outcome.reason];
  const body = { error, message: "m", detail: "m", ...refusalFields(answer, outcome.reason) };
  return { status: ERRORS[error].http, body: sent(body) };
}

function registryAnswered(hash: string, answer: RegistryAnswer): WireAnswer {
  const failed = (error: keyof typeof ERRORS, more: object = {}): WireAnswer => ({
    status: ERRORS[error].http,
    body: { error, message: "m", ...more },
  });
  switch (answer.kind) {
    case "done":
      return { status: 200, body: sent(registryBody(hash, answer.registry, NOW)) };
    case "full":
      return failed("QUOTA_EXCEEDED");
    case "other-backend":
      return failed("invalid_backend_hash");
    case "not-replicated":
      return failed("tc_rm_replication_failed", { missing: answer.missing });
    case "unknown":
      return failed("OUTCOME_UNKNOWN");
    case "not-leader":
      return failed("tc_not_leader", answer.leaderEndpoint === null ? {} : { leader_endpoint: answer.leaderEndpoint });
    default:
      return assertNever(answer, "answer of the registry");
  }
}

// ---- any request, any answer ------------------------------------------------------------------------------

const MAX = Number.MAX_SAFE_INTEGER;

const nodeId = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const incarnation = fc.stringMatching(/^[0-9a-f]{1,16}$/);
const anyPeer = fc.tuple(nodeId, incarnation).map((parts) => parts.join("@") as PeerKey);
const clusterId = fc.stringMatching(/^[A-Za-z0-9._:@-]{1,128}$/);
const backendHash = fc.stringMatching(/^[0-9a-f]{64}$/);
const anyEndpoint = fc
  .tuple(
    fc.constantFrom("http", "https"),
    fc.stringMatching(/^[a-z][a-z0-9]{0,40}(\.[a-z][a-z0-9]{0,20}){0,3}$/),
    fc.integer({ min: 1_024, max: 65_535 }),
  )
  .map(([scheme, host, port]) => `${scheme}://${host}:${port}`);

const bounds = (min: number) => fc.oneof(fc.constantFrom(min, min + 1, MAX), fc.integer({ min, max: MAX }));
const term = bounds(1);
const position: fc.Arbitrary<Position> = fc.record({ term: bounds(0), version: bounds(1) });
const entry = fc.record({ backendHash, endpoint: anyEndpoint });

const anyRoster: fc.Arbitrary<Roster> = fc.record({
  term: bounds(0),
  version: bounds(1),
  recoveredBy: fc.option(anyPeer),
  voters: fc.uniqueArray(fc.record({ peer: anyPeer, endpoint: anyEndpoint }), {
    minLength: 1,
    maxLength: MEMBERS_MAX,
    selector: ({ peer }) => peer.split("@")[0],
  }),
  registry: fc.array(entry, { maxLength: 8 }),
});

const holder = { clusterId, holder: anyPeer, voter: anyPeer, term };
const lease = { ...holder, ttlMs: term, roster: fc.option(anyRoster) };
const anyVoterRequest = fc.oneof(
  fc.record({ kind: fc.constant("acquire" as const), ...lease }),
  fc.record({ kind: fc.constant("renew" as const), ...lease, mark: fc.option(position) }),
  fc.record({ kind: fc.constant("release" as const), ...holder }),
);
const anyRegistryRequest = fc
  .record({
    kind: fc.constant("registry" as const),
    change: fc.constantFrom("register" as const, "unregister" as const),
    entry,
    isForwarded: fc.boolean(),
  })
  // An island without TLS is registered on loopback only.
  .filter(({ change, entry: { endpoint } }) => change === "unregister" || endpoint.startsWith("https:"));
const anyRequest: fc.Arbitrary<CoordinatorRequest> = fc.oneof(
  { weight: 3, arbitrary: anyVoterRequest },
  { weight: 1, arbitrary: anyRegistryRequest },
  fc.constant({ kind: "status" as const }),
  fc.constant({ kind: "leave" as const }),
  fc.record({ kind: fc.constant("announce" as const), endpoint: anyEndpoint }),
);

const standing = {
  clusterId: fc.option(clusterId),
  term: bounds(0),
  roster: fc.option(position),
  isLeaving: fc.boolean(),
};
const anyVoterAnswer: fc.Arbitrary<VoterAnswer> = fc.record({
  voter: anyPeer,
  ...standing,
  outcome: fc.oneof(
    fc.record({ kind: fc.constant("accepted" as const), lastsMs: fc.double({ min: 0, max: 3_600, noNaN: true }) }),
    fc.record({
      kind: fc.constant("refused" as const),
      reason: fc.constantFrom(...(Object.keys(REFUSAL_CODES) as LeaseRefusal[])),
    }),
  ),
});
const wallMs = fc.double({ min: 0, max: 2 ** 42, noNaN: true });
const anyView: fc.Arbitrary<CoordinatorView> = fc.record({
  self: anyPeer,
  ...standing,
  leader: fc.option(fc.record({ peer: anyPeer, endpoint: fc.option(anyEndpoint), term: bounds(0) })),
  leaderExpiresAtMs: fc.option(wallMs),
  backendHash,
  actsInTerm: fc.option(term),
  waitsFor: fc.array(anyEndpoint),
  hasLeft: fc.boolean(),
});
const anyEndpoints = fc.array(anyEndpoint, { maxLength: 8 });

/** Of one backend: no other entry is on the wire. */
function anyRegistryAnswer(hash: string): fc.Arbitrary<RegistryAnswer> {
  return fc.oneof(
    anyEndpoints.map((all) => ({
      kind: "done" as const,
      registry: all.map((endpoint) => ({ backendHash: hash, endpoint })),
    })),
    fc.constantFrom({ kind: "full" as const }, { kind: "other-backend" as const }, { kind: "unknown" as const }),
    fc.record({ kind: fc.constant("not-replicated" as const), missing: anyEndpoints }),
    fc.record({ kind: fc.constant("not-leader" as const), leaderEndpoint: fc.option(anyEndpoint) }),
  );
}

/** As large as a roster gets. */
function largestRoster(): Roster {
  const endpoint = `https://${"a".repeat(512 - "https://:65535".length)}:65535`;
  const voters = Array.from({ length: MEMBERS_MAX }, (_, at) => ({ peer: longPeer(at), endpoint }));
  const registry = Array.from({ length: REGISTRY_ENTRIES_MAX }, () => ({ backendHash: "f".repeat(64), endpoint }));
  return { term: MAX, version: MAX, recoveredBy: voters[0]!.peer, voters, registry };
}

function longPeer(at: number): PeerKey {
  return `${"n".repeat(60)}${String(at).padStart(3, "0")}@${"f".repeat(16)}` as PeerKey;
}

/** One more member than a node lists. */
const TOO_MANY_ENDPOINTS = Array.from({ length: MEMBERSHIPS_KEPT + 1 }, (_, at) => `https://n${at}:1`);

// ---- the tests --------------------------------------------------------------------------------------------

describe("requests", () => {
  it("are read by their routes as they were written, whatever they are", () => {
    fc.assert(
      fc.property(anyRequest, (request) => {
        expect(received(callOf(request))).toEqual(request);
      }),
    );
  });

  it("the largest roster that there may be fits into the body that the routes take, and the bound is hardly larger", () => {
    const roster = largestRoster();
    const holder = roster.voters[0]!.peer;
    const big = Number.MAX_SAFE_INTEGER;
    const common = { clusterId: "c".repeat(128), holder, voter: holder, term: big, ttlMs: big, roster };
    const sizes = [
      callOf({ kind: "acquire", ...common }),
      callOf({ kind: "renew", ...common, mark: { term: big, version: big } }),
    ].map((call) => {
      received(call);
      return JSON.stringify(call.body).length;
    });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(LEASE_BODY_BYTES_MAX);
    expect(Math.max(...sizes)).toBeGreaterThan(LEASE_BODY_BYTES_MAX - 256);
  });
});

describe("answers", () => {
  it("of voters are rebuilt whole, from a grant and from a refusal", () => {
    fc.assert(
      fc.property(anyVoterRequest, anyVoterAnswer, (request, answer) => {
        const wire = answered(request, answer);
        if (wire.status === 200)
          expect(doneAnswers[request.kind].check(wire.body)).toEqual({ ok: true, value: wire.body });
        expect(answerOf(request, wire)).toEqual(answer);
      }),
    );
  });

  it("GET /v1/tc/leader is rebuilt as the status that it is made of", () => {
    fc.assert(
      fc.property(anyView, (view) => {
        const { self, clusterId, term, roster, isLeaving, leader, backendHash: hash } = view;
        const body = sent(statusBody(view));
        expect(leaderAnswer.check(body)).toEqual({ ok: true, value: body });
        expect(answerOf({ kind: "status" }, { status: 200, body })).toEqual({
          self,
          clusterId,
          term,
          roster,
          isLeaving,
          leader,
          backendHash: hash,
        });
      }),
    );
  });

  it("of announce and leave are the members' endpoints", () => {
    fc.assert(
      fc.property(anyEndpoints, (endpoints) => {
        const answer = { status: 200, body: { endpoints, updated_at_unix: 1 } };
        expect(answerOf({ kind: "leave" }, answer)).toEqual({ endpoints });
        for (const status of [201, 403, 503]) expect(answerOf({ kind: "leave" }, { ...answer, status })).toBe(null);
        expect(answerOf({ kind: "announce", endpoint: "http://a:1" }, answer)).toEqual({ endpoints });
      }),
    );
  });

  it("of the registry are rebuilt, with the entries of the backend that was asked about", () => {
    const asked = anyRegistryRequest.chain((request) =>
      fc.record({ request: fc.constant(request), answer: anyRegistryAnswer(request.entry.backendHash) }),
    );
    fc.assert(
      fc.property(asked, ({ request, answer }) => {
        expect(answerOf(request, registryAnswered(request.entry.backendHash, answer))).toEqual(answer);
      }),
    );
  });

  it("are none where they are garbage, whatever the status is", () => {
    const status = fc.constantFrom(200, 200, 200, 400, 403, 409, 502, 503, 204, 500);
    const body = fc.oneof(fc.anything(), fc.jsonValue(), fc.constantFrom(null, undefined, "", [], {}, { voter: {} }));
    fc.assert(
      fc.property(anyRequest, status, body, (request, is, garbage) => {
        expect(answerOf(request, { status: is, body: garbage })).toBe(null);
      }),
    );
  });

  it.each(Object.entries(WRONG))("with %s missing or wrong are none", (name, values) => {
    const voter = {
      identity: "n1",
      incarnation: "a",
      tc_cluster_id: "c",
      term: 1,
      roster: null,
      leaving: false,
      lasts_ms: 1,
    };
    const release = { kind: "release", clusterId: "c", holder: PEER, voter: PEER, term: 1 } as const;
    const { lasts_ms: _, ...self } = voter;
    const ofVoter = (over: object): WireAnswer => ({
      status: 200,
      body: { released: true, voter: { ...voter, ...over } },
    });
    const ofStatus = (over: object): WireAnswer => ({ status: 200, body: { self: { ...self, ...over } } });
    expect(answerOf(release, ofVoter({ more: 1 }))).not.toBe(null);
    expect(answerOf({ kind: "status" }, ofStatus({ more: 1 }))).not.toBe(null);
    for (const wrong of [undefined, ...values]) {
      expect(answerOf(release, ofVoter({ [name]: wrong })), JSON.stringify(wrong)).toBe(null);
      if (name !== "lasts_ms")
        expect(answerOf({ kind: "status" }, ofStatus({ [name]: wrong })), JSON.stringify(wrong)).toBe(null);
    }
  });

  it.each(Object.entries(WRONG_LEADER))(
    "of GET /v1/tc/leader with a leader whose %s is missing or wrong are none",
    (name, values) => {
      const self = { identity: "n1", incarnation: "a", tc_cluster_id: null, term: 1, roster: null, leaving: false };
      const leader = { leader_id: "n2", leader_incarnation: "b", leader_endpoint: "https://n2:1", term: 1 };
      const read = (over: object) => answerOf({ kind: "status" }, { status: 200, body: { ...leader, self, ...over } });
      expect(read({})?.leader).toEqual({ peer: "n2@b", endpoint: "https://n2:1", term: 1 });
      expect(read({ leader_endpoint: undefined })?.leader).toEqual({ peer: "n2@b", endpoint: null, term: 1 });
      for (const wrong of values) expect(read({ [name]: wrong }), JSON.stringify(wrong)).toBe(null);
    },
  );

  it("name no more members than a node lists", () => {
    const answer = (count: number): WireAnswer => ({
      status: 200,
      body: { endpoints: TOO_MANY_ENDPOINTS.slice(0, count) },
    });
    expect(answerOf({ kind: "leave" }, answer(TOO_MANY_ENDPOINTS.length))).toBe(null);
    expect(answerOf({ kind: "leave" }, answer(TOO_MANY_ENDPOINTS.length - 1))).not.toBe(null);
  });

  it("of another kind, or about another backend, are none", () => {
    const roster = largestRoster();
    const self = roster.voters[0]!.peer;
    const request = { kind: "release", clusterId: "c", holder: self, voter: self, term: 1 } as const;
    const outcome = { kind: "accepted", lastsMs: 0 } as const;
    const good = answered(request, { voter: self, clusterId: "c", term: 1, roster: null, isLeaving: false, outcome });
    expect(answerOf(request, good)).not.toBe(null);
    expect(answerOf({ ...request, kind: "renew", ttlMs: 1, roster, mark: null }, good)).toBe(null);
    expect(answerOf(request, { ...good, status: 201 })).toBe(null);
    const entry = { backendHash: "a".repeat(64), endpoint: "http://a:1" };
    const change = { kind: "registry", change: "register", entry, isForwarded: false } as const;
    expect(answerOf(change, { status: 200, body: registryBody("b".repeat(64), [entry], NOW) })).toBe(null);
  });

  it("a refusal whose code, status and reason do not belong together is none", () => {
    const peer = PEER;
    const request = { kind: "release", clusterId: "c", holder: peer, voter: peer, term: 1 } as const;
    const outcome = { kind: "refused", reason: "not-holder" } as const;
    const good = answered(request, { voter: peer, clusterId: "c", term: 1, roster: null, isLeaving: false, outcome });
    const body = good.body as object;
    expect(answerOf(request, good)).toMatchObject({ outcome });
    expect(answerOf(request, { ...good, status: 503 })).toBe(null);
    expect(answerOf(request, { ...good, body: { ...body, error: "tc_lease_active" } })).toBe(null);
    expect(answerOf(request, { ...good, body: { ...body, reason: "constructor" } })).toBe(null);
    expect(answerOf(request, { ...good, body: { ...body, reason: "lease-active" } })).toBe(null);
  });

  it("an address with another scheme, a path or a password is none", () => {
    for (const endpoint of [
      "ftp://a:1",
      "http://a:1/x",
      "http://u:p@a:1",
      "http://a:1?x",
      "http:// a",
      `http://${"a".repeat(512)}`,
    ])
      expect(answerOf({ kind: "leave" }, { status: 200, body: { endpoints: [endpoint] } }), endpoint).toBe(null);
  });
});

describe("peers", () => {
  it("are made of both halves that the wire has, and no text passes for two", () => {
    fc.assert(
      fc.property(anyPeer, (peer) => {
        const [identity, incarnation] = peer.split("@");
        const self = { identity, incarnation, tc_cluster_id: null, term: 0, roster: null, leaving: false };
        const read = (over: object) =>
          answerOf({ kind: "status" }, { status: 200, body: { self: { ...self, ...over } } });
        expect(read({})?.self).toBe(peer);
        expect(nodeIdOf(read({})!.self)).toBe(identity);
        expect(read({ identity: peer, incarnation: "" })).toBe(null);
        expect(read({ identity: `${identity}@0`, incarnation })).toBe(null);
        expect(read({ incarnation: `${incarnation}@0` })).toBe(null);
      }),
    );
  });
});
