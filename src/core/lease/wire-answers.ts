// What coordinators answer, in the names of the wire, and back.
//
// Invariant: an answer in which a field is missing or wrong is none. Fields that are not known here are passed over, so that a newer node is understood.

import type {
  AnswerTo,
  CoordinatorRequest,
  CoordinatorView,
  MemberEndpoints,
  RegistryAnswer,
} from "../../ports/coordinators.ts";
import { assertNever } from "../kit/assert.ts";
import { type ErrorCode, ERRORS } from "../kit/errors.ts";
import { incarnationOf, nodeIdOf, parsePeerKey, type PeerKey } from "../kit/ids.ts";
import { API_URL_LENGTH_MAX, CLUSTER_ID_BYTES_MAX, INTEGER_MAX } from "../kit/limits.ts";
import { MEMBERSHIPS_KEPT, REGISTRY_ENTRIES_MAX } from "./limits.ts";
import type {
  CoordinatorStatus,
  KnownLeader,
  LeaseRefusal,
  Position,
  RegistryEntries,
  VoterAnswer,
  VoterOutcome,
  VoterRequest,
} from "./model.ts";
import { endpointIn } from "./wire-calls.ts";

export interface WireAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** What an answer to a refused request is called; the answer has the refusal itself as `reason`. */
export const REFUSAL_CODES = {
  "identity-mismatch": "tc_identity_mismatch",
  "other-voter": "tc_identity_mismatch",
  "cluster-mismatch": "tc_cluster_mismatch",
  "not-holder": "tc_term_stale",
  "generation-over": "tc_term_stale",
  "term-stale": "tc_term_stale",
  "roster-stale": "tc_roster_stale",
  "roster-missing": "missing_roster",
  impossible: "invalid_term",
  "invalid-ttl": "invalid_ttl",
  "lease-active": "tc_lease_active",
} as const satisfies Readonly<Record<LeaseRefusal, ErrorCode>>;

/** Under which name an answer says that it was done. */
const DONE = { acquire: "granted", renew: "renewed", release: "released" } as const;
/** Of SHA-256, in hex. */
const BACKEND_HASH_LETTERS = 64;
const ENDPOINT = /^https?:\/\/[^\s/?#@\\]+$/;

/** Null: no answer to this request. */
export function answerOf<R extends CoordinatorRequest>(request: R, answer: WireAnswer): AnswerTo<R> | null {
  return answerTo(request, answer) as AnswerTo<R> | null;
}

function answerTo(request: CoordinatorRequest, { status, body }: WireAnswer): AnswerTo<CoordinatorRequest> | null {
  if (!isObject(body)) return null;
  switch (request.kind) {
    case "acquire":
    case "renew":
    case "release":
      return voterAnswerOf(request.kind, status, body);
    case "status":
      return status === 200 ? statusOf(body) : null;
    case "announce":
    case "leave":
      return status === 200 ? membersOf(body) : null;
    case "registry":
      return registryAnswerOf(request.entry.backendHash, status, body);
    default:
      return assertNever(request, "answerOf");
  }
}

export function statusBody(view: CoordinatorView): object {
  const { self, backendHash, leader, leaderExpiresAtMs, waitsFor } = view;
  const own = { ...standingFields({ ...view, peer: self }), backend_hash: backendHash, waits_for: waitsFor };
  if (leader === null) return { self: own };
  return {
    leader_id: nodeIdOf(leader.peer),
    leader_incarnation: incarnationOf(leader.peer),
    ...(leader.endpoint === null ? {} : { leader_endpoint: leader.endpoint }),
    term: leader.term,
    ...(leaderExpiresAtMs === null ? {} : { expires_at: Math.floor(leaderExpiresAtMs) }),
    self: own,
  };
}

/** `wallMs`: of the node that answers, now. What was released lasts for no time, and has no endpoint any more. */
export function doneBody(request: VoterRequest, answer: VoterAnswer, lastsMs: number, wallMs: number): object {
  const { kind, holder, term } = request;
  const voter = { ...standingFields({ ...answer, peer: answer.voter }), lasts_ms: lastsMs };
  const common = { [DONE[kind]]: true, leader_id: nodeIdOf(holder) };
  if (kind === "release") return { ...common, term, voter };
  const endpoint = endpointIn(request.roster, holder);
  const where = endpoint === null ? {} : { leader_endpoint: endpoint };
  return { ...common, ...where, term, expires_at: Math.floor(wallMs + lastsMs), voter };
}

/** Fields of an error's body, from which the whole answer is made again. */
export function refusalFields(answer: VoterAnswer, reason: LeaseRefusal): Readonly<Record<string, unknown>> {
  return { reason, voter: standingFields({ ...answer, peer: answer.voter }) };
}

/** Of one backend: that is what its caller asked for. */
export function registryBody(backendHash: string, registry: RegistryEntries, wallMs: number): object {
  const endpoints = registry.filter((entry) => entry.backendHash === backendHash).map(({ endpoint }) => endpoint);
  return { backend_hash: backendHash, endpoints, updated_at_unix: unixSeconds(wallMs) };
}

/** What is called `…_unix` is in seconds, as the specification's other times are. */
export function unixSeconds(wallMs: number): number {
  return Math.floor(wallMs / 1_000);
}

/** What a voter says of itself, in each of its answers. */
interface Standing {
  readonly peer: PeerKey;
  readonly clusterId: string | null;
  readonly term: number;
  readonly roster: Position | null;
  readonly isLeaving: boolean;
}

function standingFields({ peer, clusterId, term, roster, isLeaving }: Standing): object {
  const identity = { identity: nodeIdOf(peer), incarnation: incarnationOf(peer) };
  return { ...identity, tc_cluster_id: clusterId, term, roster, leaving: isLeaving };
}

function standingOf(value: unknown): Standing | null {
  if (!isObject(value)) return null;
  const { tc_cluster_id: clusterId, term, leaving: isLeaving } = value;
  const peer = peerIn(value["identity"], value["incarnation"]);
  const roster = value["roster"] === null ? null : positionIn(value["roster"]);
  if (peer === null || roster === undefined || !isCount(term) || typeof isLeaving !== "boolean") return null;
  if (clusterId !== null && !isText(clusterId, CLUSTER_ID_BYTES_MAX)) return null;
  return { peer, clusterId, term, roster, isLeaving };
}

function voterAnswerOf(kind: VoterRequest["kind"], status: number, body: Fields): VoterAnswer | null {
  const standing = standingOf(body["voter"]);
  const outcome = outcomeOf(kind, status, body);
  if (standing === null || outcome === null) return null;
  const { peer: voter, clusterId, term, roster, isLeaving } = standing;
  return { voter, clusterId, term, roster, isLeaving, outcome };
}

function outcomeOf(kind: VoterRequest["kind"], status: number, body: Fields): VoterOutcome | null {
  if (status === 200) {
    const lastsMs = (body["voter"] as Fields | undefined)?.["lasts_ms"];
    if (body[DONE[kind]] !== true || typeof lastsMs !== "number" || !(lastsMs >= 0 && lastsMs <= INTEGER_MAX))
      return null;
    return { kind: "accepted", lastsMs };
  }
  const { reason, error } = body;
  if (typeof reason !== "string" || !Object.hasOwn(REFUSAL_CODES, reason)) return null;
  const code = REFUSAL_CODES[reason as LeaseRefusal];
  if (error !== code || status !== ERRORS[code].http) return null;
  return { kind: "refused", reason: reason as LeaseRefusal };
}

function statusOf(body: Fields): CoordinatorStatus | null {
  const standing = standingOf(body["self"]);
  const leader = leaderOf(body);
  if (standing === null || leader === undefined) return null;
  const { peer: self, clusterId, term, roster, isLeaving } = standing;
  const hash = (body["self"] as Fields)["backend_hash"];
  const backend = isText(hash, BACKEND_HASH_LETTERS) ? { backendHash: hash } : {};
  return { self, clusterId, term, roster, isLeaving, leader, ...backend };
}

/** Undefined: what is said of a leader makes no sense. */
function leaderOf(body: Fields): KnownLeader | null | undefined {
  const { leader_id: id, leader_incarnation: incarnation, leader_endpoint: endpoint = null, term } = body;
  const isNone = id === undefined && incarnation === undefined && endpoint === null && term === undefined;
  if (isNone) return null;
  const peer = peerIn(id, incarnation);
  if (peer === null || !isCount(term) || !(endpoint === null || isEndpoint(endpoint))) return undefined;
  return { peer, endpoint, term };
}

function membersOf({ endpoints }: Fields): MemberEndpoints | null {
  return isEndpoints(endpoints, MEMBERSHIPS_KEPT) ? { endpoints } : null;
}

function registryAnswerOf(backendHash: string, status: number, body: Fields): RegistryAnswer | null {
  const { error, endpoints, leader_endpoint: leaderEndpoint = null } = body;
  if (status === 200) {
    if (body["backend_hash"] !== backendHash || !isEndpoints(endpoints, REGISTRY_ENTRIES_MAX)) return null;
    return { kind: "done", registry: endpoints.map((endpoint) => ({ backendHash, endpoint })) };
  }
  const is = (code: ErrorCode): boolean => error === code && status === ERRORS[code].http;
  if (is("tc_rm_replication_failed")) {
    const { missing } = body;
    return { kind: "not-replicated", missing: isEndpoints(missing, MEMBERSHIPS_KEPT) ? missing : [] };
  }
  if (is("QUOTA_EXCEEDED")) return { kind: "full" };
  if (is("invalid_backend_hash")) return { kind: "other-backend" };
  if (is("OUTCOME_UNKNOWN")) return { kind: "unknown" };
  if (!is("tc_not_leader") || !(leaderEndpoint === null || isEndpoint(leaderEndpoint))) return null;
  return { kind: "not-leader", leaderEndpoint };
}

type Fields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= lengthMax;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isEndpoint(value: unknown): value is string {
  return isText(value, API_URL_LENGTH_MAX) && ENDPOINT.test(value);
}

function isEndpoints(value: unknown, countMax: number): value is readonly string[] {
  return Array.isArray(value) && value.length <= countMax && value.every(isEndpoint);
}

function peerIn(identity: unknown, incarnation: unknown): PeerKey | null {
  if (typeof identity !== "string" || typeof incarnation !== "string") return null;
  return parsePeerKey(`${identity}@${incarnation}`) ?? null;
}

/** Undefined: it is none. */
function positionIn(value: unknown): Position | undefined {
  if (!isObject(value)) return undefined;
  const { term, version } = value;
  return isCount(term) && isCount(version) ? { term, version } : undefined;
}
