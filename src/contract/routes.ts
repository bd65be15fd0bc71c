// Every route of the API: method, path, who may call it, what it takes, what it answers and which errors are its own.
// The server registers exactly these, docs/reference/api.md lists the same, and the tests fuzz each from its schemas.

import type { TSchema } from "typebox";
import type { ErrorCode } from "../core/kit/errors.ts";
import * as answers from "./answers.ts";
import * as requests from "./requests.ts";
import type { Role } from "./roles.ts";
import { shape, type Shape } from "./shape.ts";

export interface Route {
  readonly method: "GET" | "POST";
  /** `:scope` is a parameter, percent-encoded. */
  readonly path: string;
  readonly role: Role | "public";
  readonly params: Shape | null;
  readonly query: Shape;
  /** Null: it takes none, and what comes is refused. */
  readonly body: Shape | null;
  /** Null: it answers no JSON. */
  readonly answer: TSchema | null;
  /** Beside those that any route may answer (COMMON_ERRORS). */
  readonly errors: readonly ErrorCode[];
  /** `write`: only the leader does it; elsewhere 409 NOT_LEADER or 503 ERR_NO_LEADER. */
  readonly kind: "probe" | "read" | "write" | "local";
  /** Each call is written down: who, what, outcome. */
  readonly isAdmin: boolean;
  /** Counted for each caller, and refused past a rate. */
  readonly limited: "admin" | "acquire" | null;
}

/**
 * METHOD_NOT_ALLOWED and NOT_FOUND stand for paths that are no route. INTERNAL is a mistake of ours on a read; a write that
 * ends in one is OUTCOME_UNKNOWN. BACKEND_UNAVAILABLE: the node is stopping.
 */
export const COMMON_ERRORS = [
  "BAD_REQUEST",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "PAYLOAD_TOO_LARGE",
  "OVERLOADED",
  "BACKEND_UNAVAILABLE",
  "INTERNAL",
] as const satisfies readonly ErrorCode[];

const READ_ERRORS = ["TOO_STALE", "ERR_NO_LEADER"] as const;
const WRITE_ERRORS = [
  "NOT_LEADER",
  "ERR_NO_LEADER",
  "OUTCOME_UNKNOWN",
  "TRANSFER_IN_PROGRESS",
  "UNCOMMITTED_LIMIT",
  "DISK_FULL",
] as const;
const MEMBER_ERRORS = [
  "MEMBER_UNKNOWN",
  "MEMBER_EXISTS",
  "NOT_CAUGHT_UP",
  "NOT_PROMOTABLE",
  "CONF_CHANGE_PENDING",
  "CONF_CHANGE_INVALID",
] as const;

const noQuery = shape(requests.NoQuery);
const readQuery = shape(requests.ReadQuery);
const scopeParams = shape(requests.ScopeParams);
const holdBody = shape(requests.HoldBody);

const READ = { method: "GET", params: null, body: null, isAdmin: false, limited: null } as const;
const PROBE = { ...READ, query: noQuery, kind: "probe" } as const;
const ADMIN = { role: "operator", params: null, query: noQuery, isAdmin: true, limited: "admin" } as const;
const HOLD = {
  method: "POST",
  role: "client",
  params: scopeParams,
  query: noQuery,
  kind: "write",
  isAdmin: false,
} as const;

export const ROUTES = {
  livez: { ...PROBE, path: "/livez", role: "public", answer: answers.LivezAnswer, errors: [] },
  readyz: { ...PROBE, path: "/readyz", role: "public", answer: answers.ReadyzAnswer, errors: [] },
  healthz: { ...PROBE, path: "/healthz", role: "viewer", answer: answers.HealthzAnswer, errors: [] },
  metrics: { ...PROBE, path: "/metrics", role: "viewer", answer: null, errors: [] },
  leader: {
    ...READ,
    path: "/leader",
    role: "viewer",
    query: readQuery,
    answer: answers.LeaderAnswer,
    errors: READ_ERRORS,
    kind: "read",
  },
  role: {
    ...READ,
    path: "/role",
    role: "viewer",
    query: readQuery,
    answer: answers.RoleAnswer,
    errors: READ_ERRORS,
    kind: "read",
  },
  cluster: {
    ...READ,
    path: "/v1/cluster",
    role: "viewer",
    query: readQuery,
    answer: answers.ClusterAnswer,
    errors: READ_ERRORS,
    kind: "read",
  },
  scopes: {
    ...READ,
    path: "/v1/scopes",
    role: "viewer",
    query: shape(requests.ScopesQuery),
    answer: answers.ScopesAnswer,
    errors: READ_ERRORS,
    kind: "read",
  },
  scope: {
    ...READ,
    path: "/v1/scopes/:scope",
    role: "viewer",
    params: scopeParams,
    query: shape(requests.WatchQuery),
    answer: answers.ScopeAnswer,
    errors: READ_ERRORS,
    kind: "read",
  },
  history: {
    ...READ,
    path: "/v1/scopes/:scope/history",
    role: "viewer",
    params: scopeParams,
    query: readQuery,
    answer: answers.HistoryAnswer,
    errors: READ_ERRORS,
    kind: "read",
  },
  acquire: {
    ...HOLD,
    path: "/v1/scopes/:scope/acquire",
    body: shape(requests.AcquireBody),
    answer: answers.AcquireAnswer,
    errors: [...WRITE_ERRORS, "RATE_LIMITED"],
    limited: "acquire",
  },
  renew: {
    ...HOLD,
    path: "/v1/scopes/:scope/renew",
    body: holdBody,
    answer: answers.RenewAnswer,
    errors: [...WRITE_ERRORS, "STALE_EPOCH"],
    // A renewal that is refused for its rate would end a healthy term.
    limited: null,
  },
  resign: {
    ...HOLD,
    path: "/v1/scopes/:scope/resign",
    body: holdBody,
    answer: answers.ResignAnswer,
    errors: [...WRITE_ERRORS, "STALE_EPOCH"],
    limited: null,
  },
  transfer: {
    ...ADMIN,
    method: "POST",
    path: "/v1/admin/transfer",
    body: shape(requests.TransferBody),
    answer: answers.TransferAnswer,
    errors: [...WRITE_ERRORS, "TRANSFER_TARGET_INVALID", "ERR_LEADER_TRANSFER_FAILED", "RATE_LIMITED"],
    kind: "write",
  },
  members: {
    ...ADMIN,
    method: "POST",
    path: "/v1/admin/members",
    body: shape(requests.MembersBody),
    answer: answers.MembersAnswer,
    errors: [...WRITE_ERRORS, ...MEMBER_ERRORS, "RATE_LIMITED"],
    kind: "write",
  },
  saveSnapshot: {
    ...ADMIN,
    method: "POST",
    path: "/v1/admin/snapshot",
    body: shape(requests.NoBody),
    answer: answers.SnapshotAnswer,
    errors: ["OUTCOME_UNKNOWN", "DISK_FULL", "RATE_LIMITED"],
    kind: "local",
  },
  readSnapshot: {
    ...ADMIN,
    method: "GET",
    path: "/v1/admin/snapshot",
    body: null,
    answer: null,
    errors: ["RATE_LIMITED"],
    kind: "local",
  },
  audit: {
    ...ADMIN,
    method: "GET",
    path: "/v1/admin/audit",
    body: null,
    answer: answers.AuditAnswer,
    errors: ["RATE_LIMITED"],
    kind: "local",
  },
  askResign: {
    ...ADMIN,
    method: "POST",
    path: "/v1/admin/scopes/:scope/resign",
    params: scopeParams,
    body: shape(requests.AskResignBody),
    answer: answers.AskResignAnswer,
    errors: [...WRITE_ERRORS, "RATE_LIMITED"],
    kind: "write",
  },
} as const satisfies Readonly<Record<string, Route>>;

export type RouteId = keyof typeof ROUTES;
