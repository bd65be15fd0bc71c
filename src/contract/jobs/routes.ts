// The routes of jobs, agents, queues, schedules, events and keys. Reads work on every node; mutations are the leader's.

import * as answers from "./answers.ts";
import * as requests from "./requests.ts";
import { NoQuery, ReadQuery } from "../requests.ts";
import { READ, READ_ERRORS, type Route } from "../route.ts";
import { either, shape } from "../shape.ts";

const noQuery = shape(NoQuery);
const readQuery = shape(ReadQuery);
const namesQuery = shape(requests.NamesQuery);
const idParams = shape(requests.JobIdParams);
const nameParams = shape(requests.NameParams);
const queueParams = shape(requests.QueueParams);
const fencedBody = shape(requests.FencedBody);
const fencedQuery = shape(requests.FencedQuery);

const FENCED_ERRORS = [
  "NOT_LEADER",
  "STALE_EPOCH",
  "OUTCOME_UNKNOWN",
  "UNCOMMITTED_LIMIT",
  "ENTRY_TOO_LARGE",
  "DISK_FULL",
] as const;
/** Of those that take an Idempotency-Key. */
const KEYED_ERRORS = [...FENCED_ERRORS, "IDEMPOTENCY_MISMATCH"] as const;
const KEPT_ERRORS = [...READ_ERRORS, "LOG_COMPACTED", "EVENTS_LOST"] as const;

const FENCED = { query: noQuery, kind: "write", isAdmin: false, limited: null, isFenced: true } as const;
const KEYED = { ...FENCED, headers: ["Idempotency-Key"], errors: KEYED_ERRORS } as const;
const SUBMITTER = { ...KEYED, method: "POST", role: "submitter" } as const;
const AGENT = {
  ...FENCED,
  method: "POST",
  role: "agent",
  params: null,
  errors: FENCED_ERRORS,
  isLarge: true,
} as const;
const OPERATOR = { role: "operator", isAdmin: true, limited: "admin" } as const;
const STEER = {
  ...KEYED,
  ...OPERATOR,
  method: "POST",
  answer: answers.DoneAnswer,
  errors: [...KEYED_ERRORS, "RATE_LIMITED"],
} as const;
/** The very same once more is no error, so it takes no Idempotency-Key. */
const UNKEYED = { ...STEER, headers: [], errors: [...FENCED_ERRORS, "RATE_LIMITED"] } as const;
const OPERATOR_READ = { ...READ, ...OPERATOR, query: readQuery, errors: [...READ_ERRORS, "RATE_LIMITED"] } as const;
const BY_NAME = { ...READ, query: namesQuery } as const;
const STREAM = {
  ...READ,
  contentType: "text/event-stream",
  headers: ["Last-Event-ID", "X-Tenure-Event-Point"],
  errors: [...KEPT_ERRORS, "HISTORY_REWRITTEN"],
} as const;

const READS = {
  openapi: {
    ...READ,
    path: "/openapi.json",
    summary: "This API, as OpenAPI 3.1.",
    query: noQuery,
    answer: null,
    contentType: "application/json",
    errors: [],
    kind: "local",
    isOwnView: true,
  },
  jobs: {
    ...READ,
    path: "/v1/jobs",
    summary: "Jobs, newest first; by state, kind, queue, agent and words.",
    query: shape(requests.JobsQuery),
    answer: answers.JobsAnswer,
  },
  job: {
    ...READ,
    path: "/v1/jobs/:id",
    summary: "One job: its attempts with their epochs, what happened when, and why it is pending.",
    params: idParams,
    query: readQuery,
    answer: answers.JobAnswer,
    errors: [...READ_ERRORS, "EVENTS_LOST"],
  },
  jobLogs: {
    ...STREAM,
    path: "/v1/jobs/:id/logs",
    summary: "What an attempt has printed; with follow as a stream.",
    params: idParams,
    query: shape(requests.LogsQuery),
    answer: answers.LogsAnswer,
  },
  agents: { ...BY_NAME, path: "/v1/agents", summary: "Agents, by name.", answer: answers.AgentsAnswer },
  queues: { ...BY_NAME, path: "/v1/queues", summary: "Queues, by name.", answer: answers.QueuesAnswer },
  schedules: { ...BY_NAME, path: "/v1/schedules", summary: "Schedules, by name.", answer: answers.SchedulesAnswer },
  stats: { ...READ, path: "/v1/stats", summary: "Jobs, counted.", query: readQuery, answer: answers.StatsAnswer },
  events: {
    ...STREAM,
    path: "/v1/events",
    summary: "Events as they are committed, as a stream that any node can resume.",
    query: shape(requests.EventsQuery),
    answer: null,
  },
  eventsProof: {
    ...READ,
    path: "/v1/events/proof",
    summary: "That an event is in the log, or that the log only grew (RFC 6962).",
    query: shape(requests.ProofQuery),
    answer: answers.ProofAnswer,
    errors: [...KEPT_ERRORS, "MESH_DISABLED"],
  },
  eventsSince: {
    ...READ,
    path: "/api/events/since/:sequence",
    summary: "Events behind a sequence, in the bytes that are hashed.",
    params: shape(requests.SequenceParams),
    query: shape(requests.SinceQuery),
    answer: answers.SinceAnswer,
    errors: KEPT_ERRORS,
  },
  eventsVerify: {
    ...READ,
    path: "/api/events/verify",
    summary: "Read every stored event of this node and check it.",
    query: shape(requests.VerifyQuery),
    answer: answers.VerifyAnswer,
  },
} as const satisfies Readonly<Record<string, Route>>;

const WORK = {
  submit: {
    ...SUBMITTER,
    path: "/v1/jobs",
    summary: "Submit a job, or many: all or none.",
    params: null,
    body: either(requests.OneJobBody, requests.ManyJobsBody, "jobs", "one job"),
    answer: answers.SubmitAnswer,
    errors: [...KEYED_ERRORS, "QUOTA_EXCEEDED"],
    isLarge: true,
  },
  cancelJob: {
    ...SUBMITTER,
    path: "/v1/jobs/:id/cancel",
    summary: "Cancel a job that is not finished.",
    params: idParams,
    body: fencedBody,
    answer: answers.JobAnswer,
    errors: [...KEYED_ERRORS, "JOB_FINISHED"],
  },
  retryJob: {
    ...SUBMITTER,
    path: "/v1/jobs/:id/retry",
    summary: "Run a finished job once more, with fresh budgets.",
    params: idParams,
    body: fencedBody,
    answer: answers.JobAnswer,
    errors: [...KEYED_ERRORS, "QUOTA_EXCEEDED", "EVENTS_LOST"],
  },
  lease: {
    ...AGENT,
    path: "/v1/leases",
    summary: "An agent's call: lease jobs, renew, report progress and logs, learn of cancellations.",
    body: shape(requests.LeasesBody),
    answer: answers.LeasesAnswer,
  },
  results: {
    ...AGENT,
    path: "/v1/results",
    summary: "Report how attempts ended, one or many, with an answer for each.",
    body: either(requests.OneResultBody, requests.ManyResultsBody, "results", "one result"),
    answer: answers.ResultsAnswer,
  },
  putSchedule: {
    ...SUBMITTER,
    method: "PUT",
    path: "/v1/schedules/:name",
    summary: "Make a schedule, or change it.",
    params: nameParams,
    body: shape(requests.ScheduleBody),
    answer: answers.DoneAnswer,
    errors: [...KEYED_ERRORS, "SCHEDULE_INVALID", "QUOTA_EXCEEDED"],
    isLarge: true,
  },
  deleteSchedule: {
    ...SUBMITTER,
    method: "DELETE",
    path: "/v1/schedules/:name",
    summary: "End a schedule.",
    params: nameParams,
    query: fencedQuery,
    body: null,
    answer: answers.DoneAnswer,
  },
} as const satisfies Readonly<Record<string, Route>>;

const STEERING = {
  removeAgent: {
    ...STEER,
    method: "DELETE",
    path: "/v1/agents/:name",
    summary: "Remove an agent; what it holds is lost to it.",
    params: nameParams,
    query: fencedQuery,
    body: null,
  },
  drainAgent: {
    ...STEER,
    path: "/v1/agents/:name/drain",
    summary: "Give an agent no new jobs, or give them again; what it has goes on.",
    params: nameParams,
    body: shape(requests.DrainBody),
  },
  pauseQueue: {
    ...STEER,
    path: "/v1/queues/:queue/pause",
    summary: "Lease no more jobs of a queue.",
    params: queueParams,
    body: fencedBody,
  },
  resumeQueue: {
    ...STEER,
    path: "/v1/queues/:queue/resume",
    summary: "Lease jobs of a queue again.",
    params: queueParams,
    body: fencedBody,
  },
  drain: {
    ...STEER,
    path: "/v1/admin/drain",
    summary: "Give no new leases, or give them again; of this leader's term.",
    params: null,
    body: shape(requests.DrainBody),
    answer: answers.DrainAnswer,
    headers: [],
    errors: ["NOT_LEADER", "STALE_EPOCH", "OUTCOME_UNKNOWN", "RATE_LIMITED"],
  },
  createKey: {
    ...UNKEYED,
    path: "/v1/keys",
    summary: "Let a key in; its hash is all that is kept.",
    params: null,
    body: shape(requests.KeyBody),
    answer: answers.KeyAnswer,
    errors: [...FENCED_ERRORS, "KEY_EXISTS", "RATE_LIMITED"],
  },
  keys: {
    ...OPERATOR_READ,
    path: "/v1/keys",
    summary: "Keys that were created through this API.",
    answer: answers.KeysAnswer,
  },
  revokeKey: {
    ...UNKEYED,
    method: "DELETE",
    path: "/v1/keys/:name",
    summary: "Let a key in no more.",
    params: shape(requests.KeyParams),
    query: fencedQuery,
    body: null,
  },
  revokeCertificate: {
    ...UNKEYED,
    path: "/v1/certificates/revoked",
    summary: "Let a client certificate in no more.",
    params: null,
    body: shape(requests.RevokeCertificateBody),
    answer: answers.RevokedCertificateAnswer,
    errors: [...FENCED_ERRORS, "NOT_SUPPORTED", "OVERLOADED", "RATE_LIMITED"],
  },
  revokedCertificates: {
    ...OPERATOR_READ,
    path: "/v1/certificates/revoked",
    summary: "Client certificates that were revoked and have not expired.",
    answer: answers.RevokedCertificatesAnswer,
  },
} as const satisfies Readonly<Record<string, Route>>;

export const JOB_ROUTES = { ...READS, ...WORK, ...STEERING };
