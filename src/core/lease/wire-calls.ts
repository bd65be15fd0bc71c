// What coordinators ask of each other, as calls of /v1/tc in the names of the wire, and back. Both ends use these functions and those of wire-answers.ts:
// the routes read what the driver writes, and the other way around.
//
// Bodies are checked before they come here, and unknown fields refused (contract/tc): a roster is stored as it was understood.

import type { CoordinatorRequest } from "../../ports/coordinators.ts";
import { assert, assertNever } from "../kit/assert.ts";
import { incarnationOf, nodeIdOf, parsePeerKey, type PeerKey, peerKey } from "../kit/ids.ts";
import type { AcquireRequest, Position, ReleaseRequest, RenewRequest, Roster, VoterRequest } from "./model.ts";

export interface WireCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object | null;
}

interface RosterBody extends Position {
  readonly recovered_by?: string;
  readonly voters: readonly { readonly identity: string; readonly incarnation: string; readonly endpoint: string }[];
  readonly registry: readonly { readonly backend_hash: string; readonly endpoint: string }[];
}

interface HolderBody {
  readonly incarnation: string;
  readonly voter: string;
  readonly tc_cluster_id: string;
  readonly term: number;
}

export interface AcquireBody extends HolderBody {
  readonly candidate_id: string;
  /** As the roster has it. */
  readonly candidate_endpoint?: string;
  readonly ttl_ms: number;
  readonly roster?: RosterBody | null;
}

export interface RenewBody extends HolderBody {
  readonly leader_id: string;
  readonly ttl_ms: number;
  readonly roster?: RosterBody | null;
  readonly mark?: Position | null;
}

export interface ReleaseBody extends HolderBody {
  readonly leader_id: string;
}

/** In lower case, as they arrive. The second name is the specification's. */
export const LEAVE_FANOUT_HEADERS = ["x-tenure-tc-leave-fanout", "x-lockd-tc-leave-fanout"] as const;
/** A call with one of these is forwarded no further. A change of the registry reaches members by renewals, so a replicated call is one of them. */
export const FORWARDED_HEADERS = ["x-tenure-tc-forwarded", "x-tenure-tc-replicate", "x-lockd-tc-replicate"] as const;

export function callOf(request: CoordinatorRequest): WireCall {
  switch (request.kind) {
    case "acquire":
      return post("/v1/tc/lease/acquire", acquireBody(request));
    case "renew":
      return post("/v1/tc/lease/renew", renewBody(request));
    case "release":
      return post("/v1/tc/lease/release", { leader_id: nodeIdOf(request.holder), ...holderFields(request) });
    case "status":
      return { method: "GET", path: "/v1/tc/leader", headers: {}, body: null };
    case "announce":
      return post("/v1/tc/cluster/announce", { self_endpoint: request.endpoint });
    case "leave":
      return { ...post("/v1/tc/cluster/leave", null), headers: { [LEAVE_FANOUT_HEADERS[0]]: "1" } };
    case "registry": {
      const { change, entry, isForwarded } = request;
      const call = post(`/v1/tc/rm/${change}`, { backend_hash: entry.backendHash, endpoint: entry.endpoint });
      return isForwarded ? { ...call, headers: { [FORWARDED_HEADERS[0]]: "1" } } : call;
    }
    default:
      return assertNever(request, "callOf");
  }
}

export function acquireOf(body: AcquireBody): AcquireRequest {
  const { candidate_id: id, ttl_ms: ttlMs, roster = null } = body;
  return { kind: "acquire", ...holderOf(id, body), ttlMs, roster: roster && rosterOf(roster) };
}

export function renewOf(body: RenewBody): RenewRequest {
  const { leader_id: id, ttl_ms: ttlMs, roster = null, mark = null } = body;
  return { kind: "renew", ...holderOf(id, body), ttlMs, roster: roster && rosterOf(roster), mark };
}

export function releaseOf(body: ReleaseBody): ReleaseRequest {
  return { kind: "release", ...holderOf(body.leader_id, body) };
}

function post(path: string, body: object | null): WireCall {
  return { method: "POST", path, headers: {}, body };
}

function acquireBody(request: AcquireRequest): AcquireBody {
  const { holder, ttlMs, roster } = request;
  const endpoint = endpointIn(roster, holder);
  return {
    candidate_id: nodeIdOf(holder),
    ...(endpoint === null ? {} : { candidate_endpoint: endpoint }),
    ...holderFields(request),
    ttl_ms: ttlMs,
    ...(roster === null ? {} : { roster: rosterBody(roster) }),
  };
}

function renewBody(request: RenewRequest): RenewBody {
  const { holder, ttlMs, roster, mark } = request;
  return {
    leader_id: nodeIdOf(holder),
    ...holderFields(request),
    ttl_ms: ttlMs,
    ...(roster === null ? {} : { roster: rosterBody(roster) }),
    mark,
  };
}

function holderFields({ holder, voter, clusterId, term }: VoterRequest): HolderBody {
  return { incarnation: incarnationOf(holder), voter, tc_cluster_id: clusterId, term };
}

function holderOf(id: string, { incarnation, voter, tc_cluster_id: clusterId, term }: HolderBody) {
  return { holder: peerKey(id, incarnation), voter: checkedPeer(voter), clusterId, term };
}

function rosterBody({ term, version, recoveredBy, voters, registry }: Roster): RosterBody {
  return {
    term,
    version,
    ...(recoveredBy === null ? {} : { recovered_by: recoveredBy }),
    voters: voters.map(({ peer, endpoint }) => ({
      identity: nodeIdOf(peer),
      incarnation: incarnationOf(peer),
      endpoint,
    })),
    registry: registry.map(({ backendHash, endpoint }) => ({ backend_hash: backendHash, endpoint })),
  };
}

function rosterOf({ term, version, recovered_by: recoveredBy, voters, registry }: RosterBody): Roster {
  return {
    term,
    version,
    recoveredBy: recoveredBy === undefined ? null : checkedPeer(recoveredBy),
    voters: voters.map(({ identity, incarnation, endpoint }) => ({ peer: peerKey(identity, incarnation), endpoint })),
    registry: registry.map(({ backend_hash: backendHash, endpoint }) => ({ backendHash, endpoint })),
  };
}

function checkedPeer(text: string): PeerKey {
  const peer = parsePeerKey(text);
  assert(peer !== undefined, "a checked body names peers", () => text);
  return peer;
}

export function endpointIn(roster: Roster | null, peer: PeerKey): string | null {
  return roster?.voters.find((voter) => voter.peer === peer)?.endpoint ?? null;
}
