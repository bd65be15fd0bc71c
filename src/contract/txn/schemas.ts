// What may be asked about transactions over islands and what is answered, as schemas. The same names, as types: core/txn/wire-operations.ts, wire-calls.ts
// and wire-answers.ts.

import { Type, type TSchema } from "typebox";
import * as limits from "../../core/kit/limits.ts";
import { JobBody } from "../jobs/requests.ts";
import { AcquireBody, CONSISTENCY, Epoch, Scope } from "../requests.ts";
import { integer, json, matching, nullable, oneOf, prose, strict, text } from "../schema-kit.ts";
import { oneOfKinds, shapeShown } from "../shape.ts";
import { BackendHash, ClusterId, Peer } from "../tc/schemas.ts";
import { ValueParams } from "../values/schemas.ts";
import { TXNS_SHOWN_PER_PAGE_MAX } from "./limits.ts";

const Text = Type.String();
const Texts = Type.Array(Text);
const TxnId = matching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  "the id of a transaction: a UUID of version 7, in lower case",
);
const Term = integer(1);
const TimeoutMs = integer(limits.TXN_TIMEOUT_MS_MIN, limits.TXN_TIMEOUT_MS_MAX);
const ValueName = ValueParams.properties.name;

// ---- operations ---------------------------------------------------------------------------------------

const { session, identity, metadata, ttl_ms } = AcquireBody.properties;
const IF_VERSION = { if_version: Type.Optional(integer(0)) };
const KINDS = [
  strict({ op: oneOf("value.put"), name: ValueName, value: json(limits.VALUE_BYTES_MAX), ...IF_VERSION }),
  strict({ op: oneOf("value.delete"), name: ValueName, ...IF_VERSION }),
  strict({ op: oneOf("value.check"), name: ValueName, if_version: integer(0) }),
  strict({ op: oneOf("scope.release"), scope: Scope, epoch: Epoch }),
  strict({ op: oneOf("scope.acquire"), scope: Scope, session, identity, metadata, ttl_ms }),
  strict({ op: oneOf("job.submit"), job: JobBody }),
] as const;
const Operation = oneOfKinds("op", ...KINDS);
/** As it is shown. */
const AnyOperation = Type.Union([...KINDS]);

interface Named {
  readonly name?: string;
  readonly scope?: string;
}

/** Of two operations of one value, which would be done? */
function operations<One extends TSchema>(one: One, minItems = 1) {
  return Type.Refine(
    Type.Array(one, { minItems, maxItems: limits.TXN_OPERATIONS_MAX }),
    (all) => isEachOnce((all as readonly Named[]).flatMap(({ name, scope }) => name ?? (scope ? `\0${scope}` : []))),
    () => "must have each value and each scope once",
  );
}

function isEachOnce(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

const Islands = Type.Refine(
  Type.Array(BackendHash, { minItems: 1, maxItems: limits.TXN_PARTICIPANTS_MAX }),
  (hashes: readonly string[]) => isEachOnce(hashes),
  () => "must have each island once",
);

// ---- what clients ask ---------------------------------------------------------------------------------

const Requires = Type.Array(strict({ backend_hash: BackendHash, scope: Scope, epoch: Epoch }), {
  maxItems: limits.TXN_REQUIRES_MAX,
});

function txnBody<One extends TSchema>(one: One) {
  const Participants = Type.Refine(
    Type.Array(strict({ backend_hash: BackendHash, operations: operations(one) }), {
      minItems: 1,
      maxItems: limits.TXN_PARTICIPANTS_MAX,
    }),
    (all) => isEachOnce(all.map(({ backend_hash: hash }) => hash)),
    () => "must have each island once",
  );
  return strict({
    txn_id: TxnId,
    home: Type.Optional(nullable(BackendHash)),
    timeout_ms: Type.Optional(nullable(TimeoutMs)),
    require: Type.Optional(Requires),
    participants: Participants,
  });
}

function stageBody<One extends TSchema>(one: One) {
  return strict({
    txn_id: TxnId,
    home_backend_hash: BackendHash,
    target_backend_hash: BackendHash,
    operations: operations(one),
    expires_in_ms: integer(1, limits.TXN_STAGED_MS_MAX),
  });
}

export const txnShape = shapeShown(txnBody(Operation), txnBody(AnyOperation));
export const stageShape = shapeShown(stageBody(Operation), stageBody(AnyOperation));

export const DecideBody = strict({
  txn_id: TxnId,
  home_backend_hash: Type.Optional(nullable(BackendHash)),
  state: oneOf("pending", "commit", "rollback"),
  participants: Islands,
  expires_at_unix: Type.Optional(nullable(integer(0, limits.WALL_MS_MAX / 1_000))),
});
export const ReplayBody = strict({ txn_id: TxnId, force: Type.Optional(oneOf("committed", "rolled_back")) });
export const TxnParams = strict({ id: TxnId });
export const TxnsQuery = strict({
  ...CONSISTENCY,
  in_doubt: Type.Optional(Type.Boolean()),
  after: Type.Optional(TxnId),
  limit: Type.Optional(integer(1, TXNS_SHOWN_PER_PAGE_MAX)),
});

// ---- between islands ----------------------------------------------------------------------------------

const TARGET = { target_backend_hash: BackendHash };
const FENCE = { tc_term: Term, tc_cluster_id: ClusterId, recovered_by: Type.Optional(Peer) };
const Participants = Type.Refine(
  Type.Array(BackendHash, { minItems: 1, maxItems: limits.TXN_PARTICIPANTS_MAX }),
  (hashes: readonly string[]) => hashes.every((hash, at) => at === 0 || hash > (hashes[at - 1] ?? "")),
  () => "must have each island once, in order",
);
const TXN = {
  txn: strict({
    txn_id: TxnId,
    home_backend_hash: BackendHash,
    participants: Participants,
    digest: matching(/^[0-9a-f]{64}$/, "a SHA-256 in 64 lower-case hex digits"),
    timeout_ms: TimeoutMs,
    by: text(limits.TXN_BY_BYTES_MAX),
  }),
};
const Reason = strict({
  // A later release may have others.
  code: matching(/^[A-Za-z_]{1,64}$/, "a code of an error"),
  message: prose(limits.TXN_MESSAGE_BYTES_MAX, 0),
  backend_hash: Type.Optional(nullable(BackendHash)),
});

function prepareBody<One extends TSchema>(one: One) {
  return strict({ ...TARGET, ...FENCE, ...TXN, operations: Type.Optional(operations(one)) });
}

function commitBody<One extends TSchema>(one: One) {
  const require = Type.Array(strict({ scope: Scope, epoch: Epoch }), { maxItems: limits.TXN_REQUIRES_MAX });
  return strict({
    ...TARGET,
    ...FENCE,
    ...TXN,
    // None: home has no part in it but the decision.
    operations: Type.Optional(operations(one, 0)),
    require: Type.Optional(require),
  });
}

export const prepareShape = shapeShown(prepareBody(Operation), prepareBody(AnyOperation));
export const commitShape = shapeShown(commitBody(Operation), commitBody(AnyOperation));
export const RollbackBody = strict({ ...TARGET, ...FENCE, ...TXN, reason: Reason });
export const InquireBody = strict({ ...TARGET, ...TXN });
export const SettledBody = strict({
  ...TARGET,
  from_backend_hash: BackendHash,
  ids: Type.Array(TxnId, { minItems: 1, maxItems: limits.TXN_BATCH_MAX }),
});
export const RecoverBody = strict({ ...TARGET, ...FENCE, after: Type.Optional(nullable(TxnId)) });
/** Each body is what the route of its call takes, and is answered as that one would answer it. */
export const BatchBody = strict({
  ...TARGET,
  requests: Type.Array(
    strict({
      call: oneOf("prepare", "commit", "rollback", "inquire", "settled"),
      body: Type.Unsafe<object>(Type.Object({})),
    }),
    { minItems: 1, maxItems: limits.TXN_BATCH_MAX },
  ),
});

// ---- answers ------------------------------------------------------------------------------------------

const Results = Type.Array(
  strict({ version: Type.Optional(integer(0)), epoch: Type.Optional(integer(1)), job_id: Type.Optional(Text) }),
);
const ReasonShown = nullable(strict({ code: Text, message: Text, backend_hash: nullable(Text) }));
const State = oneOf("staged", "prepared", "committed", "rolled_back");
const StateAnswered = oneOf("staged", "prepared", "committed", "rolled_back", "unknown");

export const TxnDoneAnswer = strict({
  txn_id: Text,
  state: oneOf("committed", "rolled_back"),
  tc_term: integer(0),
  home: Text,
  reason: ReasonShown,
  participants: Type.Array(
    strict({ backend_hash: Text, state: oneOf("applied", "pending", "rolled_back"), results: Results }),
  ),
});
export const TxnDecidedAnswer = strict({ txn_id: Text, state: oneOf("pending", "commit", "rollback") });
export const TxnStateAnswer = strict({ txn_id: Text, state: StateAnswered, results: Results, reason: ReasonShown });
export const TxnReplayedAnswer = strict({ txn_id: Text, state: State });
export const TxnSettledAnswer = strict({ ids: Texts });
export const TxnRecoveredAnswer = strict({
  open: Type.Array(
    strict({
      txn: strict({
        txn_id: Text,
        home_backend_hash: Text,
        participants: Texts,
        digest: Text,
        timeout_ms: integer(0),
        by: Text,
      }),
      state: oneOf("prepared", "committed"),
      waits_for: Texts,
    }),
  ),
  next: nullable(Text),
  refuses_new: Type.Optional(strict({ code: Text, message: Text })),
});
export const TxnBatchAnswer = strict({
  answers: Type.Array(strict({ status: integer(200, 599), body: Type.Unsafe<object>(Type.Object({})) })),
});
export const TxnShownAnswer = strict({
  txn_id: Text,
  home: Text,
  participants: Texts,
  timeout_ms: integer(0),
  by: Text,
  state: State,
  at_ms: Type.Number({ minimum: 0 }),
  locks: Texts,
  results: Results,
  reason: ReasonShown,
  undelivered: integer(0),
  waits_for: Texts,
  settled: Type.Boolean(),
  in_doubt: Type.Boolean(),
});
export const TxnsAnswer = strict({ transactions: Type.Array(TxnShownAnswer), next: nullable(Text) });
