// What is written on one side is read on the other: every request, every answer; and what is none is read as none.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LEASE_BODY_BYTES_MAX } from "../../contract/tc/limits.ts";
import { TC_ROUTES } from "../../contract/tc/routes.ts";
import type { Route } from "../../contract/route.ts";
import { shape } from "../../contract/shape.ts";
import type { CoordinatorRequest, RegistryAnswer } from "../../ports/coordinators.ts";
import { ERRORS } from "../kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import type { VoterAnswer, VoterRequest } from "./model.ts";
import {
  anyEndpoints,
  anyPeer,
  anyRegistryAnswer,
  anyRegistryRequest,
  anyRequest,
  anyView,
  anyVoterAnswer,
  anyVoterRequest,
  largestRoster,
  TOO_MANY_ENDPOINTS,
} from "./test-wire.ts";
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
  type AcquireBody,
  acquireOf,
  callOf,
  FORWARDED_HEADERS,
  LEAVE_FANOUT_HEADERS,
  type ReleaseBody,
  releaseOf,
  type RenewBody,
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
      return acquireOf(body as AcquireBody);
    case "tcRenew":
      return renewOf(body as RenewBody);
    case "tcRelease":
      return releaseOf(body as ReleaseBody);
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
    case "not-replicated":
      return failed("tc_rm_replication_failed");
    case "unknown":
      return failed("OUTCOME_UNKNOWN");
    case "not-leader": {
      const { leaderEndpoint } = answer;
      return failed("tc_not_leader", leaderEndpoint === null ? {} : { leader_endpoint: leaderEndpoint });
    }
  }
}

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
        const { self, clusterId, term, roster, isLeaving, leader } = view;
        const body = sent(statusBody(view));
        expect(leaderAnswer.check(body)).toEqual({ ok: true, value: body });
        expect(answerOf({ kind: "status" }, { status: 200, body })).toEqual({
          self,
          clusterId,
          term,
          roster,
          isLeaving,
          leader,
        });
      }),
    );
  });

  it("of announce and leave are the members' endpoints", () => {
    fc.assert(
      fc.property(anyEndpoints, (endpoints) => {
        const answer = { status: 200, body: { endpoints, updated_at_unix: 1 } };
        expect(answerOf({ kind: "leave" }, answer)).toEqual({ endpoints });
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
      expect(answerOf(release, ofVoter({ [name]: wrong })), String(wrong)).toBe(null);
      if (name !== "lasts_ms")
        expect(answerOf({ kind: "status" }, ofStatus({ [name]: wrong })), String(wrong)).toBe(null);
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
      for (const wrong of values) expect(read({ [name]: wrong }), String(wrong)).toBe(null);
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
