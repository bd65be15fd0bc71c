// What may be asked about jobs: bodies, queries and path parameters, each strict and bounded.

import { Type } from "typebox";
import { CATCH_UPS, JOB_STATES, OVERLAPS } from "../../core/jobs/model.ts";
import * as limits from "../../core/kit/limits.ts";
import { parseSpiffeId } from "../../core/kit/spiffe.ts";
import {
  CRON_BYTES_MAX,
  CURSOR_BYTES_MAX,
  EVENTS_PER_PAGE_MAX,
  JOBS_PER_PAGE_MAX,
  NAMES_PER_PAGE_MAX,
  SEARCH_BYTES_MAX,
  TIME_ZONE_BYTES_MAX,
  TYPES_BYTES_MAX,
} from "../limits.ts";
import { JOB_ID, JOB_NAME, KEY_NAME } from "../names.ts";
import { CONSISTENCY } from "../requests.ts";
import { RoleName } from "../roles.ts";
import { integer, json, matching, nullable, oneOf, prose, strict, text, texts } from "../schema-kit.ts";
import { LineName } from "../mesh/lines-routes.ts";

const Name = matching(
  JOB_NAME,
  `a name: letters, digits, '.', '_', ':' and -, at most ${limits.JOB_NAME_BYTES_MAX}, beginning with a letter or digit`,
);
const JobId = matching(JOB_ID, "the id of a job");
const LeaseId = matching(JOB_ID, "the id of a lease");
const Labels = texts(limits.JOB_LABELS_MAX, limits.JOB_LABELS_BYTES_MAX);
const Session = text(limits.SESSION_BYTES_MAX);
const Epoch = integer(1);
const Payload = json(limits.JOB_PAYLOAD_BYTES_MAX);
/** Node-controller specification §7.2: where it is given it must be the active one. */
const FENCED = { leader_epoch: Type.Optional(Epoch) };

export const JobIdParams = strict({ id: JobId });
export const NameParams = strict({ name: Name });
export const QueueParams = strict({ queue: Name });
export const SequenceParams = strict({ sequence: matching(/^\d{1,15}$/, "a sequence: a whole number from 0") });
const KeyName = Type.Refine(
  matching(KEY_NAME, `a key's name: letters, digits, '.', '_' and -, at most ${limits.API_KEY_NAME_BYTES_MAX}`),
  (name: string) => name !== "anonymous",
  () => 'must not be "anonymous", which stands for callers without a key',
);
export const KeyParams = strict({ name: KeyName });

// ---- reads --------------------------------------------------------------------------------------------

const OneState = oneOf(...JOB_STATES);
/** `pending,assigned`: lists in queries are one text. */
export const States = Type.String({
  pattern: `^(${JOB_STATES.join("|")})(,(${JOB_STATES.join("|")}))*$`,
  maxLength: 128,
  wanted: `one or several of ${JOB_STATES.join(", ")}, with commas between`,
});
export const JobsQuery = strict({
  ...CONSISTENCY,
  state: Type.Optional(States),
  kind: Type.Optional(Name),
  queue: Type.Optional(Name),
  agent: Type.Optional(Name),
  search: Type.Optional(text(SEARCH_BYTES_MAX)),
  cursor: Type.Optional(text(CURSOR_BYTES_MAX)),
  limit: Type.Optional(integer(1, JOBS_PER_PAGE_MAX)),
});
export const NamesQuery = strict({
  ...CONSISTENCY,
  after: Type.Optional(Name),
  limit: Type.Optional(integer(1, NAMES_PER_PAGE_MAX)),
});
export const LogsQuery = strict({
  ...CONSISTENCY,
  attempt: Type.Optional(integer(1)),
  offset: Type.Optional(integer(0)),
  follow: Type.Optional(Type.Boolean()),
});
const TYPE = "[a-z]{1,32}:([a-z]{1,32}|\\*)";
export const EventsQuery = strict({
  ...CONSISTENCY,
  since: Type.Optional(integer(0)),
  since_hash: Type.Optional(
    Type.String({ pattern: "^[0-9a-f]{64}$", wanted: "the hash of the event since, 64 hex digits" }),
  ),
  ids: Type.Optional(oneOf("plain", "chained")),
  type: Type.Optional(
    Type.String({
      pattern: `^${TYPE}(,${TYPE})*$`,
      maxLength: TYPES_BYTES_MAX,
      wanted: "types such as build:completed or build:*, with commas between",
    }),
  ),
  entity: Type.Optional(text(limits.JOB_NAME_BYTES_MAX)),
  entity_type: Type.Optional(oneOf("build", "worker", "queue", "schedule", "key", "certificate", "controller")),
});
/** Of a site that is distributed: its own events alone, by their own sequences. Elsewhere there are no others. */
const OWN_LINE = { line: Type.Optional(oneOf("own")) };
export const SinceQuery = strict({
  ...CONSISTENCY,
  ...OWN_LINE,
  limit: Type.Optional(integer(1, EVENTS_PER_PAGE_MAX)),
});
export const VerifyQuery = strict({ ...CONSISTENCY, ...OWN_LINE });
export const ProofQuery = strict({
  ...CONSISTENCY,
  sequence: Type.Optional(integer(1)),
  from_size: Type.Optional(integer(1)),
  tree_size: Type.Optional(integer(1)),
  line: Type.Optional(LineName),
});

// ---- mutations ----------------------------------------------------------------------------------------

const Backoff = Type.Refine(
  strict({ base_ms: integer(0, limits.JOB_BACKOFF_MS_MAX), max_ms: integer(0, limits.JOB_BACKOFF_MS_MAX) }),
  ({ base_ms: baseMs, max_ms: maxMs }) => baseMs <= maxMs,
  () => "must have a max_ms that is not below its base_ms",
);
export const JobBody = strict({
  kind: Name,
  payload: Type.Optional(Payload),
  queue: Type.Optional(Name),
  labels: Type.Optional(Labels),
  platform: Type.Optional(nullable(Name)),
  priority: Type.Optional(integer(-limits.JOB_PRIORITY_MAX, limits.JOB_PRIORITY_MAX)),
  not_before_ms: Type.Optional(nullable(integer(0, limits.WALL_MS_MAX))),
  attempts_max: Type.Optional(integer(1, limits.JOB_BUDGET_MAX)),
  losses_max: Type.Optional(integer(1, limits.JOB_BUDGET_MAX)),
  backoff: Type.Optional(Backoff),
  timeout_ms: Type.Optional(nullable(integer(1, limits.JOB_TIMEOUT_MS_MAX))),
  retention_ms: Type.Optional(integer(0, limits.JOB_RETENTION_MS_MAX)),
  concurrency: Type.Optional(nullable(strict({ key: Name, limit: integer(1, limits.JOB_CONCURRENCY_MAX) }))),
});
export const OneJobBody = strict({ ...JobBody.properties, ...FENCED });
export const ManyJobsBody = strict({
  jobs: Type.Array(JobBody, { minItems: 1, maxItems: limits.JOBS_PER_REQUEST_MAX }),
  ...FENCED,
});
export const FencedBody = strict(FENCED);
export const FencedQuery = strict(FENCED);

const LEASE_REF = { job_id: JobId, job_epoch: Epoch, lease_id: LeaseId };
export const LeasesBody = strict({
  agent: strict({
    name: Name,
    session: Session,
    kinds: Type.Array(Name, { minItems: 1, maxItems: limits.AGENT_KINDS_MAX }),
    labels: Type.Optional(Labels),
    platform: Name,
    capacity: integer(1, limits.AGENT_CAPACITY_MAX),
  }),
  max: integer(0, limits.AGENT_CAPACITY_MAX),
  ttl_ms: integer(limits.LEASE_TTL_MS_MIN, limits.LEASE_TTL_MS_MAX),
  wait_ms: Type.Optional(integer(0, limits.LEASE_WAIT_MS_MAX)),
  poll: Type.Optional(integer(1)),
  /** With `poll` only, and below it. */
  answered: Type.Optional(integer(0)),
  /** Of every call but the first of its process. */
  agent_epoch: Type.Optional(Epoch),
  renew: Type.Optional(Type.Array(strict(LEASE_REF), { maxItems: limits.AGENT_CAPACITY_MAX })),
  progress: Type.Optional(
    Type.Array(
      strict({
        ...LEASE_REF,
        share: Type.Optional(nullable(Type.Number({ minimum: 0, maximum: 1 }))),
        message: Type.Optional(nullable(prose(limits.JOB_PROGRESS_BYTES_MAX, 0))),
      }),
      { maxItems: limits.AGENT_CAPACITY_MAX },
    ),
  ),
  logs: Type.Optional(
    Type.Array(strict({ ...LEASE_REF, offset: integer(0), text: prose(limits.LOG_CHUNK_BYTES_MAX) }), {
      maxItems: limits.LOG_CHUNKS_PER_CALL_MAX,
    }),
  ),
  ...FENCED,
});

const RESULT = {
  ...LEASE_REF,
  leader_epoch: Epoch,
  outcome: oneOf("completed", "failed", "cancelled", "handed-back"),
  /** With `completed` only. */
  result: Type.Optional(Payload),
  /** With `failed` only, and always. */
  error: Type.Optional(strict({ message: prose(limits.JOB_ERROR_BYTES_MAX, 0), detail: Type.Optional(Payload) })),
  /** With `failed` only; default true. */
  retry: Type.Optional(Type.Boolean()),
};
export const ResultBody = strict(RESULT);
export const OneResultBody = strict({ session: Session, ...RESULT });
export const ManyResultsBody = strict({
  session: Session,
  results: Type.Array(ResultBody, { minItems: 1, maxItems: limits.RESULTS_PER_CALL_MAX }),
});

export const ScheduleBody = strict({
  cron: text(CRON_BYTES_MAX),
  time_zone: Type.Optional(text(TIME_ZONE_BYTES_MAX)),
  spec: JobBody,
  overlap: Type.Optional(oneOf(...OVERLAPS)),
  catch_up: Type.Optional(oneOf(...CATCH_UPS)),
  paused: Type.Optional(Type.Boolean()),
  ...FENCED,
});
export const DrainBody = strict({ drain: Type.Optional(Type.Boolean()), ...FENCED });
export const KeyBody = strict({
  name: KeyName,
  role: RoleName,
  sha256: matching(/^[0-9a-f]{64}$/, "the SHA-256 of the key as 64 lower-case hex digits, never the key itself"),
  ...FENCED,
});
const CallerId = Type.Refine(
  text(limits.SPIFFE_ID_BYTES_MAX),
  (id: string) => parseSpiffeId(id) !== undefined,
  () => "must be the SPIFFE id of the certificate",
);
export const RevokeCertificateBody = strict({
  sha256: matching(/^[0-9a-f]{64}$/, "the SHA-256 of the certificate (DER) as 64 lower-case hex digits"),
  id: CallerId,
  not_after_ms: integer(0, limits.WALL_MS_MAX),
  ...FENCED,
});

export { OneState as JobStateName };
