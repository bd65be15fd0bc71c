// The routes of transactions over islands. What clients call works on every node: one that does not lead the coordinators forwards it to the one that does.
// What islands call is a write of one island, and its leader's. `identities` says whose certificates count; roles and API keys do not.

import { NoQuery, ReadQuery } from "../requests.ts";
import { codesOf, type FieldErrors, READ_ERRORS, type Route, WRITE_ERRORS } from "../route.ts";
import { shape } from "../shape.ts";
import {
  TXN_BATCH_BODY_BYTES_MAX,
  TXN_BODY_BYTES_MAX,
  TXN_CALL_BODY_BYTES_MAX,
  TXN_NOTE_BODY_BYTES_MAX,
} from "./limits.ts";
import * as schemas from "./schemas.ts";

const SERVER_ERRORS = ["tc_server_required", "tc_forbidden", "tc_cluster_identity_missing", "tc_unavailable"] as const;
const CLIENT_ERRORS = ["tc_client_required", "tc_forbidden", "tc_unavailable"] as const;

/** Where a field is missing, and where it is wrong. What has no such code is BAD_REQUEST, as everywhere; `field` names it in any case. */
const OF_ID = { txn_id: ["missing_txn_id", "invalid_txn_id"] } as const satisfies FieldErrors;
const OF_HOME = { home_backend_hash: ["invalid_home", "invalid_home"] } as const satisfies FieldErrors;
const OF_OPERATIONS = { operations: ["missing_operations", "invalid_operations"] } as const satisfies FieldErrors;
const OF_PARTICIPANTS = {
  participants: ["missing_participants", "invalid_participants"],
} as const satisfies FieldErrors;
const OF_STATE = { state: ["missing_state", "invalid_state"] } as const satisfies FieldErrors;
const OF_TARGET = {
  target_backend_hash: ["missing_backend_hash", "invalid_backend_hash"],
} as const satisfies FieldErrors;
const OF_HEADER = { ...OF_TARGET, txn: ["missing_header", "invalid_header"] } as const satisfies FieldErrors;
const OF_FENCE = { tc_term: ["tc_term_required", "invalid_term"] } as const satisfies FieldErrors;
const OF_TXN = {
  ...OF_ID,
  ...OF_PARTICIPANTS,
  home: ["invalid_home", "invalid_home"],
  timeout_ms: ["invalid_timeout", "invalid_timeout"],
  require: ["invalid_require", "invalid_require"],
} as const satisfies FieldErrors;
const OF_STAGED = {
  ...OF_ID,
  ...OF_HOME,
  ...OF_TARGET,
  ...OF_OPERATIONS,
  expires_in_ms: ["invalid_timeout", "invalid_timeout"],
} as const satisfies FieldErrors;
const OF_DECISION = {
  ...OF_ID,
  ...OF_HOME,
  ...OF_STATE,
  ...OF_PARTICIPANTS,
  expires_at_unix: ["invalid_timeout", "invalid_timeout"],
} as const satisfies FieldErrors;
const OF_PREPARE = { ...OF_HEADER, ...OF_FENCE, ...OF_OPERATIONS } as const satisfies FieldErrors;
const OF_COMMIT = { ...OF_PREPARE, require: ["invalid_require", "invalid_require"] } as const satisfies FieldErrors;
const OF_ROLLBACK = { ...OF_HEADER, ...OF_FENCE } as const satisfies FieldErrors;
const OF_SETTLED = {
  ...OF_TARGET,
  from_backend_hash: ["missing_backend_hash", "invalid_backend_hash"],
  ids: ["missing_txn_id", "invalid_txn_id"],
} as const satisfies FieldErrors;
const OF_RECOVER = { ...OF_TARGET, ...OF_FENCE } as const satisfies FieldErrors;
const OF_REPLAY = { ...OF_ID, force: ["invalid_state", "invalid_state"] } as const satisfies FieldErrors;

const noQuery = shape(NoQuery);
const COMMON = { role: "viewer", params: null, query: noQuery, isAdmin: false, limited: null } as const;
/** Any node takes it; what comes of it is decided elsewhere. */
const CLIENT = {
  ...COMMON,
  method: "POST",
  kind: "local",
  identities: ["tc", "server"],
  headers: ["X-Tenure-TC-Forwarded", "X-Tenure-On-Behalf-Of"],
} as const;
/** No rate: a call that is refused for it would leave values locked. */
const CALL = {
  ...COMMON,
  method: "POST",
  kind: "write",
  identities: ["server"],
  answer: schemas.TxnStateAnswer,
} as const;
const LOOK = { ...COMMON, method: "GET", kind: "read", body: null, identities: ["tc", "operator"] } as const;

const RUN_ERRORS = [
  ...CLIENT_ERRORS,
  "tc_not_leader",
  "tc_rm_unavailable",
  "txn_conflict",
  "txn_expired",
  "txn_pending",
  "txn_fanout_failed",
  "OUTCOME_UNKNOWN",
  // Of home, before anything was begun.
  "UNCOMMITTED_LIMIT",
  "DISK_FULL",
  "NOT_SUPPORTED",
  "CLUSTER_PAUSED",
] as const;
const ISLAND_ERRORS = [...WRITE_ERRORS, "NOT_SUPPORTED", "CLUSTER_PAUSED", "txn_backend_mismatch"] as const;
const CALL_ERRORS = [...SERVER_ERRORS, ...ISLAND_ERRORS, "txn_conflict", "txn_expired", "invalid_txn_id"] as const;
const FENCE_ERRORS = ["tc_term_stale", "tc_cluster_mismatch"] as const;
/** Of what was prepared, or could not be. */
const EFFECT_ERRORS = [
  ...FENCE_ERRORS,
  "txn_locked",
  "txn_not_found",
  "VERSION_CONFLICT",
  "STALE_EPOCH",
  "QUOTA_EXCEEDED",
] as const;

export const TXN_ROUTES = {
  txn: {
    ...CLIENT,
    path: "/v1/txn",
    summary: "Do all of this at these islands, or nothing.",
    body: schemas.txnShape,
    bodyBytesMax: TXN_BODY_BYTES_MAX,
    answer: schemas.TxnDoneAnswer,
    fieldErrors: OF_TXN,
    errors: [...RUN_ERRORS, ...codesOf(OF_TXN)],
  },
  stageTxn: {
    ...CLIENT,
    path: "/v1/txn/stage",
    summary: "Lay operations of a transaction down at one island, for a decision that comes later.",
    body: schemas.stageShape,
    bodyBytesMax: TXN_BODY_BYTES_MAX,
    answer: schemas.TxnStateAnswer,
    fieldErrors: OF_STAGED,
    errors: [
      ...CLIENT_ERRORS,
      ...ISLAND_ERRORS,
      "tc_rm_unavailable",
      "txn_conflict",
      "txn_expired",
      "QUOTA_EXCEEDED",
      ...codesOf(OF_STAGED),
    ],
  },
  decideTxn: {
    ...CLIENT,
    path: "/v1/txn/decide",
    summary: "Commit what was staged, or roll it back.",
    body: shape(schemas.DecideBody),
    bodyBytesMax: TXN_NOTE_BODY_BYTES_MAX,
    answer: schemas.TxnDecidedAnswer,
    fieldErrors: OF_DECISION,
    errors: [...RUN_ERRORS, ...codesOf(OF_DECISION)],
  },
  prepareTxn: {
    ...CALL,
    path: "/v1/txn/prepare",
    summary: "Promise this island's part of a transaction.",
    body: schemas.prepareShape,
    bodyBytesMax: TXN_CALL_BODY_BYTES_MAX,
    fieldErrors: OF_PREPARE,
    errors: [...CALL_ERRORS, ...EFFECT_ERRORS, ...codesOf(OF_PREPARE)],
  },
  commitTxn: {
    ...CALL,
    path: "/v1/txn/commit",
    summary: "At home: decide. Elsewhere: home has decided to commit.",
    body: schemas.commitShape,
    bodyBytesMax: TXN_CALL_BODY_BYTES_MAX,
    fieldErrors: OF_COMMIT,
    errors: [...CALL_ERRORS, ...EFFECT_ERRORS, ...codesOf(OF_COMMIT)],
  },
  rollbackTxn: {
    ...CALL,
    path: "/v1/txn/rollback",
    summary: "At home: decide. Elsewhere: a hint to ask home.",
    body: shape(schemas.RollbackBody),
    bodyBytesMax: TXN_NOTE_BODY_BYTES_MAX,
    fieldErrors: OF_ROLLBACK,
    errors: [...CALL_ERRORS, ...FENCE_ERRORS, ...codesOf(OF_ROLLBACK)],
  },
  inquireTxn: {
    ...CALL,
    path: "/v1/txn/inquire",
    summary: "Ask home what was decided; what it does not know is rolled back.",
    body: shape(schemas.InquireBody),
    bodyBytesMax: TXN_NOTE_BODY_BYTES_MAX,
    fieldErrors: OF_HEADER,
    errors: [...CALL_ERRORS, ...codesOf(OF_HEADER)],
  },
  settledTxns: {
    ...CALL,
    path: "/v1/txn/settled",
    summary: "Tell home that what was decided is done at another island.",
    body: shape(schemas.SettledBody),
    bodyBytesMax: TXN_NOTE_BODY_BYTES_MAX,
    answer: schemas.TxnSettledAnswer,
    fieldErrors: OF_SETTLED,
    errors: [...SERVER_ERRORS, ...ISLAND_ERRORS, ...codesOf(OF_SETTLED)],
  },
  recoverTxns: {
    ...CALL,
    path: "/v1/txn/recover",
    summary: "A new leader of the coordinators raises its term here, and reads what is open.",
    body: shape(schemas.RecoverBody),
    bodyBytesMax: TXN_NOTE_BODY_BYTES_MAX,
    answer: schemas.TxnRecoveredAnswer,
    fieldErrors: OF_RECOVER,
    errors: [...SERVER_ERRORS, ...ISLAND_ERRORS, ...FENCE_ERRORS, ...codesOf(OF_RECOVER)],
  },
  batchTxns: {
    ...CALL,
    path: "/v1/txn/batch",
    summary: "Several calls of one island to another, each answered by itself.",
    body: shape(schemas.BatchBody),
    bodyBytesMax: TXN_BATCH_BODY_BYTES_MAX,
    answer: schemas.TxnBatchAnswer,
    fieldErrors: OF_TARGET,
    errors: [...SERVER_ERRORS, "OUTCOME_UNKNOWN", "txn_backend_mismatch", ...codesOf(OF_TARGET)],
  },
  replayTxn: {
    ...COMMON,
    method: "POST",
    kind: "write",
    identities: ["tc", "operator"],
    isAdmin: true,
    limited: "admin",
    path: "/v1/txn/replay",
    summary: "Ask home about a transaction in doubt; or end it, where home is gone for good.",
    body: shape(schemas.ReplayBody),
    bodyBytesMax: TXN_NOTE_BODY_BYTES_MAX,
    answer: schemas.TxnReplayedAnswer,
    fieldErrors: OF_REPLAY,
    errors: [
      ...CLIENT_ERRORS,
      ...WRITE_ERRORS,
      "NOT_SUPPORTED",
      "CLUSTER_PAUSED",
      "txn_not_found",
      "txn_conflict",
      "txn_pending",
      "RATE_LIMITED",
      ...codesOf(OF_REPLAY),
    ],
  },
  txns: {
    ...LOOK,
    path: "/v1/txn",
    summary: "Transactions that this island has a part in, by id.",
    query: shape(schemas.TxnsQuery),
    answer: schemas.TxnsAnswer,
    errors: [...CLIENT_ERRORS, ...READ_ERRORS],
  },
  txnById: {
    ...LOOK,
    path: "/v1/txn/:id",
    summary: "One transaction, as this island knows it.",
    params: shape(schemas.TxnParams),
    query: shape(ReadQuery),
    answer: schemas.TxnShownAnswer,
    errors: [...CLIENT_ERRORS, ...READ_ERRORS, "txn_not_found"],
  },
} as const satisfies Readonly<Record<string, Route>>;
