// What the API answers about jobs and events, field by field. Names are those of ports/jobs.ts, ports/events.ts and
// core/jobs/model.ts in snake_case; under /api they are the specification's.

import { Type, type TSchema } from "typebox";
import { ATTEMPT_ENDS, CATCH_UPS, OVERLAPS } from "../../core/jobs/model.ts";
import type { Json } from "../../core/kit/json.ts";
import { JobStateName } from "./requests.ts";
import { RoleName } from "../roles.ts";
import { integer, nullable, oneOf, strict } from "../schema-kit.ts";

const Text = Type.String();
const Count = integer(0);
const Epoch = integer(1);
const WallMs = Type.Number({ minimum: 0 });
const AnyJson = Type.Unsafe<Json>(Type.Unknown());
const Texts = Type.Record(Text, Text);
const Hash = Type.String({ pattern: "^[0-9a-f]{64}$" });

const Spec = strict({
  kind: Text,
  payload: AnyJson,
  queue: Text,
  labels: Texts,
  platform: nullable(Text),
  priority: Type.Integer(),
  not_before_ms: nullable(WallMs),
  attempts_max: Count,
  losses_max: Count,
  backoff: strict({ base_ms: Count, max_ms: Count }),
  timeout_ms: nullable(Count),
  retention_ms: Count,
  concurrency: nullable(strict({ key: Text, limit: Count })),
});

/** Without the lease's id: it is what a result is taken for. */
const LEASE = { job_epoch: Epoch, leader_epoch: Epoch, attempt: Epoch, agent: Text, session: Text, ttl_ms: Count };
const Attempt = strict({
  ...LEASE,
  assigned_at_ms: WallMs,
  started_at_ms: nullable(WallMs),
  ended_at_ms: nullable(WallMs),
  end: nullable(oneOf(...ATTEMPT_ENDS)),
});
const Progress = strict({ share: nullable(Type.Number()), message: nullable(Text), at_ms: WallMs });
const Failure = strict({ message: Text, detail: AnyJson });
const why = <Reason extends string, Fields extends Record<string, TSchema>>(reason: Reason, fields: Fields) =>
  strict({ reason: Type.Literal(reason), ...fields });
const PendingReason = Type.Union([
  why("paused", { queue: Text }),
  why("not-before", { ready_at_ms: WallMs }),
  why("concurrency", { key: Text, limit: Count }),
  why("no-agent", { kind: Text, missing: Text }),
  why("agents-busy", { agents: Count }),
  why("draining", {}),
  why("cluster-paused", {}),
  why("next", {}),
]);
const TimelineEntry = strict({
  at_ms: WallMs,
  what: oneOf("submitted", "assigned", "started", "ended", "finished"),
  attempt: nullable(Epoch),
  job_epoch: nullable(Epoch),
  leader_epoch: nullable(Epoch),
  agent: nullable(Text),
  end: nullable(Text),
});
export const JobAnswer = strict({
  id: Text,
  spec: Spec,
  state: JobStateName,
  job_epoch: Count,
  failures: Count,
  losses: Count,
  submitted_at_ms: WallMs,
  submitted_sequence: Count,
  submitted_by: Text,
  ready_at_ms: WallMs,
  lease: nullable(strict(LEASE)),
  progress: nullable(Progress),
  attempts: Type.Array(Attempt),
  finished_at_ms: nullable(WallMs),
  result: AnyJson,
  error: nullable(Failure),
  pending_reason: nullable(PendingReason),
  timeline: Type.Array(TimelineEntry),
});
/** In lists: without what may be large. */
const JobBrief = strict({
  id: Text,
  kind: Text,
  queue: Text,
  labels: Texts,
  platform: nullable(Text),
  priority: Type.Integer(),
  state: JobStateName,
  job_epoch: Count,
  failures: Count,
  losses: Count,
  submitted_at_ms: WallMs,
  submitted_by: Text,
  ready_at_ms: WallMs,
  agent: nullable(Text),
  progress: nullable(Progress),
  finished_at_ms: nullable(WallMs),
  error_message: nullable(Text),
});
export const JobsAnswer = strict({ jobs: Type.Array(JobBrief), next: nullable(Text), position: Count });
export const LogsAnswer = strict({
  job_id: Text,
  attempt: Epoch,
  offset: Count,
  text: Text,
  next_offset: Count,
  is_complete: Type.Boolean(),
});

export const AgentsAnswer = strict({
  agents: Type.Array(
    strict({
      name: Text,
      session: Text,
      kinds: Type.Array(Text),
      labels: Texts,
      platform: Text,
      capacity: Count,
      state: oneOf("online", "draining", "offline"),
      registered_at_ms: WallMs,
      running: Count,
      epoch: Type.Optional(Epoch),
      owner: Type.Optional(Text),
    }),
  ),
  next: nullable(Text),
});
export const QueuesAnswer = strict({
  queues: Type.Array(strict({ queue: Text, paused: Type.Boolean(), pending: Count, running: Count })),
  next: nullable(Text),
});
export const SchedulesAnswer = strict({
  schedules: Type.Array(
    strict({
      name: Text,
      cron: Text,
      time_zone: Text,
      spec: Spec,
      overlap: oneOf(...OVERLAPS),
      catch_up: oneOf(...CATCH_UPS),
      paused: Type.Boolean(),
      last_at_ms: nullable(WallMs),
      next_at_ms: nullable(WallMs),
    }),
  ),
  next: nullable(Text),
});
export const StatsAnswer = strict({
  by_state: Type.Record(JobStateName, Count),
  submitted: Count,
  finished: Count,
  agents_online: Count,
  stale_rejected: Count,
  first_sequence: Epoch,
  last_sequence: Count,
});

export const SubmitAnswer = Type.Union([strict({ id: Text }), strict({ ids: Type.Array(Text) })]);
const LEASE_REF = { job_id: Text, job_epoch: Epoch, lease_id: Text };
export const LeasesAnswer = strict({
  leader_epoch: Epoch,
  agent_epoch: Type.Optional(Epoch),
  renewed: Type.Array(
    strict({
      ...LEASE_REF,
      outcome: oneOf("renewed", "cancelled", "committed", "lost"),
      state: nullable(JobStateName),
    }),
  ),
  leases: Type.Array(strict({ ...LEASE_REF, leader_epoch: Epoch, attempt: Epoch, ttl_ms: Count, spec: Spec })),
  log_ends: Type.Array(nullable(Count)),
  is_draining: Type.Boolean(),
});
const Accepted = strict({ ok: Type.Literal(true), state: JobStateName, is_repeated: Type.Boolean() });
const Rejected = strict({
  ok: Type.Literal(false),
  error: oneOf("STALE_EPOCH", "NOT_FOUND"),
  message: Text,
  leader_epoch: Epoch,
});
export const ResultsAnswer = Type.Union([Accepted, strict({ results: Type.Array(Type.Union([Accepted, Rejected])) })]);
export const DoneAnswer = strict({});
export const DrainAnswer = strict({ is_draining: Type.Boolean(), leader_epoch: Epoch });

const Key = strict({ name: Text, role: RoleName, created_at_ms: WallMs, created_by: Text });
export const KeyAnswer = Key;
export const KeysAnswer = strict({ keys: Type.Array(Key) });

const RevokedCertificate = strict({
  sha256: Hash,
  id: Text,
  not_after_ms: WallMs,
  revoked_at_ms: WallMs,
  revoked_by: Text,
});
export const RevokedCertificateAnswer = RevokedCertificate;
export const RevokedCertificatesAnswer = strict({ certificates: Type.Array(RevokedCertificate) });

/** The specification's event, and `leaderEpoch`. */
const EVENT = {
  id: Text,
  sequence: Epoch,
  timestamp: WallMs,
  eventType: Text,
  entityId: Text,
  entityType: Text,
  payload: AnyJson,
  sourceControllerId: Text,
  previousHash: nullable(Hash),
  eventHash: Hash,
  leaderEpoch: Epoch,
};
const Event = strict(EVENT);
const Place = { line: nullable(Text), lineSequence: Epoch };
/** Of a site that is distributed: `sequence` is the arrival number. */
const ArrivedEvent = strict({ ...EVENT, ...Place });
const WithheldEvent = strict({ sequence: Epoch, eventHash: Hash, ...Place, withheld: Type.Literal(true) });
const OwnSinceAnswer = strict({ events: Type.Array(Event), throughSequence: Count });
export const SinceAnswer = Type.Union([
  OwnSinceAnswer,
  strict({
    events: Type.Array(Type.Union([ArrivedEvent, WithheldEvent])),
    throughSequence: Count,
    withheld: Count,
    logId: nullable(Text),
  }),
]);
export const VerifyAnswer = Type.Union([
  strict({
    valid: Type.Literal(true),
    firstSequence: Epoch,
    throughSequence: Count,
    headHash: nullable(Hash),
    root: Hash,
  }),
  strict({
    valid: Type.Literal(false),
    firstSequence: Epoch,
    firstBrokenSequence: Epoch,
    reason: Text,
    line: Type.Optional(nullable(Text)),
    lineSequence: Type.Optional(nullable(Epoch)),
  }),
]);
const Path = Type.Array(Hash);
export const ProofAnswer = Type.Union([
  strict({
    kind: Type.Literal("inclusion"),
    sequence: Epoch,
    tree_size: Epoch,
    leaf_hash: Hash,
    root: Hash,
    path: Path,
  }),
  strict({
    kind: Type.Literal("consistency"),
    from_size: Epoch,
    tree_size: Epoch,
    from_root: Hash,
    root: Hash,
    path: Path,
  }),
]);
