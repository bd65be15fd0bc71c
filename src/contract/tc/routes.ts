// The routes of the transaction coordinators: who leads, leases of the leader, membership, the registry of islands. Every node answers for itself: a
// coordinator is one server, not its cluster. `identities` says whose certificates count; roles and API keys do not.

import { NoBody, NoQuery } from "../requests.ts";
import { codesOf, type FieldErrors, type Route } from "../route.ts";
import { shape } from "../shape.ts";
import { LEASE_BODY_BYTES_MAX, MEMBER_BODY_BYTES_MAX } from "./limits.ts";
import * as schemas from "./schemas.ts";

const SERVER_ERRORS = ["tc_server_required", "tc_forbidden", "tc_cluster_identity_missing", "tc_unavailable"] as const;
const CLIENT_ERRORS = ["tc_client_required", "tc_forbidden", "tc_unavailable"] as const;

const COMMON = { role: "viewer", params: null, query: shape(NoQuery), isAdmin: false, limited: null } as const;
const LOOK = {
  ...COMMON,
  method: "GET",
  kind: "read",
  body: null,
  isOwnView: true,
  identities: ["tc", "server", "operator"],
  errors: CLIENT_ERRORS,
} as const;
const CALL = { ...COMMON, method: "POST", kind: "local", identities: ["server"] } as const;

/** Where a field is missing, and where it is wrong. What has no such code is BAD_REQUEST, as everywhere; `field` names it in any case. */
const OF_TERM = { term: ["tc_term_required", "invalid_term"] } as const satisfies FieldErrors;
const OF_LEASE = {
  ...OF_TERM,
  ttl_ms: ["invalid_ttl", "invalid_ttl"],
  roster: ["missing_roster", "invalid_roster"],
} as const satisfies FieldErrors;
const OF_CANDIDATE = {
  candidate_id: ["missing_candidate_id", "invalid_candidate_id"],
  ...OF_LEASE,
} as const satisfies FieldErrors;
const OF_HOLDER = { leader_id: ["missing_leader_id", "invalid_leader_id"], ...OF_TERM } as const satisfies FieldErrors;
const OF_LEADER = { ...OF_HOLDER, ...OF_LEASE } as const satisfies FieldErrors;
const OF_MEMBER = { self_endpoint: ["missing_self_endpoint", "invalid_self_endpoint"] } as const satisfies FieldErrors;
const OF_BACKEND = {
  backend_hash: ["missing_backend_hash", "invalid_backend_hash"],
  endpoint: ["missing_endpoint", "invalid_endpoint"],
} as const satisfies FieldErrors;

const LEASE = { ...CALL, bodyBytesMax: LEASE_BODY_BYTES_MAX } as const;
const LEASE_ERRORS = [
  ...SERVER_ERRORS,
  "tc_identity_mismatch",
  "tc_cluster_mismatch",
  "tc_term_stale",
  "OUTCOME_UNKNOWN",
] as const;
const ROSTER_ERRORS = [...LEASE_ERRORS, "tc_roster_stale", "tc_lease_active"] as const;
const REGISTRY = {
  ...CALL,
  limited: "admin",
  bodyBytesMax: MEMBER_BODY_BYTES_MAX,
  answer: schemas.RegistryAnswer,
  headers: ["X-Tenure-TC-Forwarded", "X-Tenure-TC-Replicate"],
  fieldErrors: OF_BACKEND,
  errors: [
    ...SERVER_ERRORS,
    "tc_not_leader",
    "tc_rm_replication_failed",
    "OUTCOME_UNKNOWN",
    "RATE_LIMITED",
    ...codesOf(OF_BACKEND),
  ],
} as const;

export const TC_ROUTES = {
  tcLeader: {
    ...LOOK,
    path: "/v1/tc/leader",
    summary: "Which coordinator leads, and who this one is.",
    answer: schemas.TcLeaderAnswer,
  },
  tcAcquire: {
    ...LEASE,
    path: "/v1/tc/lease/acquire",
    summary: "A candidate asks this voter for a term.",
    body: shape(schemas.AcquireBody),
    answer: schemas.GrantedAnswer,
    fieldErrors: OF_CANDIDATE,
    errors: [...ROSTER_ERRORS, ...codesOf(OF_CANDIDATE)],
  },
  tcRenew: {
    ...LEASE,
    path: "/v1/tc/lease/renew",
    summary: "The leader renews its lease at this voter, and sends the roster.",
    body: shape(schemas.RenewBody),
    answer: schemas.RenewedAnswer,
    fieldErrors: OF_LEADER,
    errors: [...ROSTER_ERRORS, ...codesOf(OF_LEADER)],
  },
  tcRelease: {
    ...LEASE,
    bodyBytesMax: MEMBER_BODY_BYTES_MAX,
    path: "/v1/tc/lease/release",
    summary: "The leader gives its lease at this voter up.",
    body: shape(schemas.ReleaseBody),
    answer: schemas.ReleasedAnswer,
    fieldErrors: OF_HOLDER,
    errors: [...LEASE_ERRORS, ...codesOf(OF_HOLDER)],
  },
  tcAnnounce: {
    ...CALL,
    path: "/v1/tc/cluster/announce",
    summary: "The caller's membership lease, here; this node's own certificate: it is a member again.",
    body: shape(schemas.AnnounceBody),
    bodyBytesMax: MEMBER_BODY_BYTES_MAX,
    answer: schemas.AnnouncedAnswer,
    fieldErrors: OF_MEMBER,
    errors: [...SERVER_ERRORS, "OUTCOME_UNKNOWN", ...codesOf(OF_MEMBER)],
  },
  tcLeave: {
    ...CALL,
    limited: "admin",
    path: "/v1/tc/cluster/leave",
    summary: "Remove the caller's membership lease here; this node's own certificate: it leaves its cluster.",
    body: shape(NoBody),
    bodyBytesMax: MEMBER_BODY_BYTES_MAX,
    answer: schemas.LeftAnswer,
    headers: ["X-Tenure-TC-Leave-Fanout"],
    errors: [...SERVER_ERRORS, "tc_cluster_unavailable", "OUTCOME_UNKNOWN", "RATE_LIMITED"],
  },
  tcMembers: {
    ...LOOK,
    path: "/v1/tc/cluster/list",
    summary: "The members and voters of the cluster of coordinators.",
    answer: schemas.MembersListAnswer,
  },
  tcRegister: {
    ...REGISTRY,
    path: "/v1/tc/rm/register",
    body: shape(schemas.RegisterBody),
    summary: "An island takes part in transactions.",
    errors: [...REGISTRY.errors, "QUOTA_EXCEEDED"],
  },
  tcUnregister: {
    ...REGISTRY,
    path: "/v1/tc/rm/unregister",
    body: shape(schemas.UnregisterBody),
    summary: "An island takes part no more.",
  },
  tcBackends: {
    ...LOOK,
    path: "/v1/tc/rm/list",
    summary: "The islands that take part in transactions.",
    answer: schemas.BackendsAnswer,
  },
  islands: {
    ...COMMON,
    method: "GET",
    kind: "read",
    body: null,
    isOwnView: true,
    path: "/v1/islands",
    summary: "What this node knows of the islands and their coordinators.",
    answer: schemas.IslandsAnswer,
    errors: ["tc_unavailable"],
  },
} as const satisfies Readonly<Record<string, Route>>;
