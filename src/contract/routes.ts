// Every route of the API: method, path, who may call it, what it takes, what it answers and which errors are its own.
// The server registers exactly these, docs/reference/api.md lists the same, and the tests fuzz each from its schemas.

import * as answers from "./answers.ts";
import { JOB_ROUTES } from "./jobs/routes.ts";
import { LINKS_ROUTES } from "./mesh/links-routes.ts";
import { MESH_LINES_ROUTES } from "./mesh/lines-routes.ts";
import { MESH_OPERATOR_ROUTES } from "./mesh/operator-routes.ts";
import { REGISTRY_ROUTES } from "./mesh/registry-routes.ts";
import { MESH_STATE_ROUTES } from "./mesh/state-routes.ts";
import * as requests from "./requests.ts";
import { READ, READ_ERRORS, type Route, WRITE_ERRORS } from "./route.ts";
import { shape } from "./shape.ts";
import { TC_ROUTES } from "./tc/routes.ts";
import { TXN_ROUTES } from "./txn/routes.ts";
import { VALUE_ROUTES } from "./values/routes.ts";

const MEMBER_ERRORS = [
  "MEMBER_UNKNOWN",
  "MEMBER_EXISTS",
  "NOT_CAUGHT_UP",
  "NOT_PROMOTABLE",
  "CONF_CHANGE_PENDING",
  "CONF_CHANGE_INVALID",
] as const;

/** NOT_SUPPORTED: what only Tenure's own servers have, asked of nodes on Postgres. */
const SCOPE_READ_ERRORS = [...READ_ERRORS, "NOT_SUPPORTED"] as const;

const noQuery = shape(requests.NoQuery);
const readQuery = shape(requests.ReadQuery);
const scopeParams = shape(requests.ScopeParams);
const holdBody = shape(requests.HoldBody);

const PROBE = { ...READ, query: noQuery, kind: "probe", isOwnView: true, errors: [] } as const;
const OWN_VIEW = { ...READ, query: readQuery, isOwnView: true } as const;
const SCOPE_READ = { ...READ, errors: SCOPE_READ_ERRORS } as const;
const ADMIN = {
  method: "POST",
  role: "operator",
  params: null,
  query: noQuery,
  isAdmin: true,
  limited: "admin",
  kind: "local",
} as const;
const ADMIN_WRITE = { ...ADMIN, kind: "write" } as const;
const ADMIN_READ = { ...ADMIN, method: "GET", body: null, errors: ["RATE_LIMITED"] } as const;
const BACKUP = { ...ADMIN, role: "backup" } as const;
const HOLD = {
  method: "POST",
  role: "client",
  params: scopeParams,
  query: noQuery,
  kind: "write",
  isAdmin: false,
} as const;

export const ROUTES = {
  livez: {
    ...PROBE,
    path: "/livez",
    summary: "The process answers.",
    role: "public",
    answer: answers.LivezAnswer,
  },
  readyz: {
    ...PROBE,
    path: "/readyz",
    summary: "This node serves.",
    role: "public",
    answer: answers.ReadyzAnswer,
  },
  healthz: {
    ...PROBE,
    path: "/healthz",
    summary: "What an operator should know about this node.",
    answer: answers.HealthzAnswer,
  },
  metrics: {
    ...PROBE,
    path: "/metrics",
    summary: "Metrics for Prometheus.",
    answer: null,
    contentType: "text/plain",
  },
  leader: {
    ...OWN_VIEW,
    path: "/leader",
    summary: "Who leads, from memory.",
    answer: answers.LeaderAnswer,
  },
  role: {
    ...OWN_VIEW,
    path: "/role",
    summary: "This node's role, and who leads.",
    answer: answers.RoleAnswer,
  },
  cluster: {
    ...OWN_VIEW,
    path: "/v1/cluster",
    summary: "The cluster as this node sees it.",
    answer: answers.ClusterAnswer,
  },
  scopes: {
    ...SCOPE_READ,
    path: "/v1/scopes",
    summary: "Scopes, by name.",
    query: shape(requests.ScopesQuery),
    answer: answers.ScopesAnswer,
  },
  scope: {
    ...SCOPE_READ,
    path: "/v1/scopes/:scope",
    summary: "One scope; waits until it differs.",
    params: scopeParams,
    query: shape(requests.WatchQuery),
    answer: answers.ScopeAnswer,
  },
  history: {
    ...SCOPE_READ,
    path: "/v1/scopes/:scope/history",
    summary: "Who led a scope, newest first.",
    params: scopeParams,
    query: readQuery,
    answer: answers.HistoryAnswer,
  },
  acquire: {
    ...HOLD,
    path: "/v1/scopes/:scope/acquire",
    summary: "Campaign for a scope.",
    body: shape(requests.AcquireBody),
    answer: answers.AcquireAnswer,
    errors: [...WRITE_ERRORS, "NOT_SUPPORTED", "CLUSTER_PAUSED", "RATE_LIMITED"],
    limited: "acquire",
  },
  renew: {
    ...HOLD,
    path: "/v1/scopes/:scope/renew",
    summary: "Renew a hold.",
    body: holdBody,
    answer: answers.RenewAnswer,
    errors: [...WRITE_ERRORS, "NOT_SUPPORTED", "STALE_EPOCH"],
    // A renewal that is refused for its rate would end a healthy term.
    limited: null,
  },
  resign: {
    ...HOLD,
    path: "/v1/scopes/:scope/resign",
    summary: "Give a hold up.",
    body: holdBody,
    answer: answers.ResignAnswer,
    errors: [...WRITE_ERRORS, "NOT_SUPPORTED", "STALE_EPOCH"],
    limited: null,
  },
  transfer: {
    ...ADMIN_WRITE,
    path: "/v1/admin/transfer",
    summary: "Hand leadership to another node.",
    body: shape(requests.TransferBody),
    answer: answers.TransferAnswer,
    errors: [...WRITE_ERRORS, "NOT_SUPPORTED", "TRANSFER_TARGET_INVALID", "ERR_LEADER_TRANSFER_FAILED", "RATE_LIMITED"],
  },
  drainNode: {
    ...ADMIN,
    path: "/v1/admin/nodes/:node_id/drain",
    summary: "Take this node out, or in again: another leads.",
    params: shape(requests.NodeParams),
    body: shape(requests.DrainNodeBody),
    answer: answers.DrainNodeAnswer,
    errors: [
      "MEMBER_UNKNOWN",
      "ERR_NO_LEADER",
      "OUTCOME_UNKNOWN",
      "TRANSFER_IN_PROGRESS",
      "TRANSFER_TARGET_INVALID",
      "ERR_LEADER_TRANSFER_FAILED",
      "RATE_LIMITED",
    ],
  },
  resume: {
    ...ADMIN_WRITE,
    path: "/v1/admin/resume",
    summary: "Let a cluster act that was restored paused.",
    body: shape(requests.NoBody),
    answer: answers.ResumeAnswer,
    errors: [...WRITE_ERRORS, "RATE_LIMITED"],
  },
  members: {
    ...ADMIN_WRITE,
    path: "/v1/admin/members",
    summary: "Add, promote, replace or remove a node.",
    body: shape(requests.MembersBody),
    answer: answers.MembersAnswer,
    errors: [...WRITE_ERRORS, "NOT_SUPPORTED", ...MEMBER_ERRORS, "RATE_LIMITED"],
  },
  saveSnapshot: {
    ...BACKUP,
    path: "/v1/admin/snapshot",
    summary: "Save a snapshot of this node now.",
    body: shape(requests.NoBody),
    answer: answers.SavedSnapshotAnswer,
    errors: ["NOT_SUPPORTED", "OUTCOME_UNKNOWN", "DISK_FULL", "RATE_LIMITED"],
  },
  readSnapshot: {
    ...ADMIN_READ,
    role: "backup",
    path: "/v1/admin/snapshot",
    summary: "The newest snapshot as a file.",
    answer: null,
    contentType: "application/octet-stream",
    errors: ["NOT_SUPPORTED", "RATE_LIMITED"],
  },
  storedSnapshot: {
    ...BACKUP,
    path: "/v1/admin/snapshot/stored",
    summary: "The snapshot that was fetched from this node is checked and stored elsewhere.",
    body: shape(requests.StoredSnapshotBody),
    answer: answers.StoredSnapshotAnswer,
    errors: ["NOT_SUPPORTED", "RATE_LIMITED"],
  },
  diagnostics: {
    ...ADMIN_READ,
    path: "/v1/admin/diagnostics",
    summary: "This node's configuration without secrets, and its last log lines.",
    answer: answers.DiagnosticsAnswer,
  },
  audit: {
    ...ADMIN_READ,
    path: "/v1/admin/audit",
    summary: "The last calls of operators on this node.",
    answer: answers.AuditAnswer,
  },
  askResign: {
    ...ADMIN_WRITE,
    path: "/v1/admin/scopes/:scope/resign",
    summary: "Ask the holder of a scope to go, or take it away.",
    params: scopeParams,
    body: shape(requests.AskResignBody),
    answer: answers.AskResignAnswer,
    errors: [...WRITE_ERRORS, "NOT_SUPPORTED", "RATE_LIMITED"],
  },
  ...VALUE_ROUTES,
  ...JOB_ROUTES,
  ...LINKS_ROUTES,
  ...MESH_LINES_ROUTES,
  ...MESH_OPERATOR_ROUTES,
  ...REGISTRY_ROUTES,
  ...MESH_STATE_ROUTES,
  ...TC_ROUTES,
  ...TXN_ROUTES,
} as const satisfies Readonly<Record<string, Route>>;

export type RouteId = keyof typeof ROUTES;
