import { describe, expect, it } from "vitest";
import { acquiredOf, introductionOf, leaderWordOf, renewedOf, scopePageOf, scopeStateOf } from "./answers.ts";

const MALFORMED = expect.objectContaining({ code: "BACKEND_UNSUPPORTED" });
const HOLDER = {
  epoch: 7,
  identity: "a",
  metadata: { zone: "x" },
  ttl_ms: 1,
  acquired_at_ms: 5,
  resign_requested: false,
};

describe("an answer", () => {
  it("may have fields that we do not know", () => {
    expect(acquiredOf({ granted: true, epoch: 7, ttl_ms: 6_000, more: 1 })).toEqual({
      granted: true,
      epoch: 7,
      ttlMs: 6_000,
    });
    expect(acquiredOf({ granted: false, holder: null })).toEqual({ granted: false });
  });

  it.each([
    [{}],
    [{ granted: "yes", epoch: 7, ttl_ms: 1 }],
    [{ granted: true, epoch: 0, ttl_ms: 1 }],
    [{ granted: true, epoch: 1.5, ttl_ms: 1 }],
    [{ granted: true, epoch: 2 ** 53, ttl_ms: 1 }],
    [{ granted: true, epoch: "7", ttl_ms: 1 }],
    [{ granted: true, epoch: 7 }],
    [{ granted: true, epoch: -7, ttl_ms: 1 }],
  ])("%j is no grant", (body) => {
    expect(() => acquiredOf(body)).toThrow(MALFORMED);
  });

  it("that renews says whether somebody wants us to resign", () => {
    expect(renewedOf({ epoch: 7, ttl_ms: 6, resign_requested: true })).toEqual({
      epoch: 7,
      ttlMs: 6,
      resignRequested: true,
    });
    expect(() => renewedOf({ epoch: 7, ttl_ms: 6 })).toThrow(/"resign_requested" is not true or false/);
  });

  it("about a scope has a holder or null, and nothing between", () => {
    expect(scopeStateOf({ epoch: 7, holder: HOLDER })).toEqual({
      epoch: 7,
      leader: { epoch: 7, identity: "a", metadata: { zone: "x" } },
    });
    expect(scopeStateOf({ epoch: 7, holder: null }).leader).toBeNull();
    for (const holder of [undefined, [], "a", {}, { ...HOLDER, metadata: { zone: 1 } }, { ...HOLDER, identity: "" }]) {
      expect(() => scopeStateOf({ epoch: 7, holder })).toThrow(MALFORMED);
    }
  });

  it("with a list has objects in it", () => {
    expect(scopePageOf({ scopes: [{ scope: "s", epoch: 7, holder: HOLDER }], next: "s" })).toEqual({
      records: [{ scope: "s", epoch: 7, identity: "a", metadata: { zone: "x" }, acquiredAtMs: 5, heartbeatAtMs: null }],
      next: "s",
    });
    for (const scopes of [undefined, {}, [1], [[]], [null]])
      expect(() => scopePageOf({ scopes, next: null })).toThrow(MALFORMED);
    for (const next of [undefined, "", 1]) expect(() => scopePageOf({ scopes: [], next })).toThrow(MALFORMED);
  });

  it("about the cluster names it, the node, the leader and the members", () => {
    const body = { cluster_id: "c", node_id: "n1", term: 3, leader: null, members: [{ node_id: "n1", url: null }] };
    expect(introductionOf(body)).toEqual({
      clusterId: "c",
      ancestors: [],
      isPaused: false,
      nodeId: "n1",
      leader: null,
      members: [{ nodeId: "n1", url: null }],
    });
    const leader = { node_id: "n2", address: null, url: "https://n2" };
    expect(introductionOf({ ...body, leader }).leader).toEqual({ nodeId: "n2", url: "https://n2", term: 3 });
    for (const wrong of [{ cluster_id: 1 }, { members: null }, { leader: {} }, { term: -1 }, { ancestors: [1] }]) {
      expect(() => introductionOf({ ...body, ...wrong })).toThrow(MALFORMED);
    }
    expect(() => leaderWordOf({ leader_id: null, leader_url: null, term: 1, node_id: "n1" })).toThrow(MALFORMED);
  });
});
