// What a job may ask for. The API checks the same and more before; what comes from elsewhere (a schedule, a transaction in
// the user's own database) meets it here, because what is in the log once is there for ever.

import { isJobVariable } from "../../kit/job-variables.ts";
import type { Json } from "../../kit/json.ts";
import * as limits from "../../kit/limits.ts";
import type { JobSpec } from "../model.ts";

const encoder = new TextEncoder();
/** The kind of jobs that are commands. */
const COMMANDS = "exec";

/** For people, as the rest of a sentence; null where nothing is wrong. */
export function specProblem(spec: JobSpec): string | null {
  const { concurrency } = spec;
  return (
    nameProblem("kind", spec.kind) ??
    nameProblem("queue", spec.queue) ??
    (spec.platform === null ? null : nameProblem("platform", spec.platform)) ??
    labelsProblem(spec.labels) ??
    numberProblem("priority", spec.priority, -limits.JOB_PRIORITY_MAX, limits.JOB_PRIORITY_MAX) ??
    (spec.notBeforeMs === null ? null : numberProblem("not_before_ms", spec.notBeforeMs, 0, limits.WALL_MS_MAX)) ??
    numberProblem("attempts_max", spec.attemptsMax, 1, limits.JOB_BUDGET_MAX) ??
    numberProblem("losses_max", spec.lossesMax, 0, limits.JOB_BUDGET_MAX) ??
    numberProblem("backoff.base_ms", spec.backoff.baseMs, 0, limits.JOB_BACKOFF_MS_MAX) ??
    numberProblem("backoff.max_ms", spec.backoff.maxMs, 0, limits.JOB_BACKOFF_MS_MAX) ??
    (spec.timeoutMs === null ? null : numberProblem("timeout_ms", spec.timeoutMs, 1, limits.JOB_TIMEOUT_MS_MAX)) ??
    numberProblem("retention_ms", spec.retentionMs, 0, limits.JOB_RETENTION_MS_MAX) ??
    (concurrency === null ? null : nameProblem("concurrency.key", concurrency.key)) ??
    (concurrency === null
      ? null
      : numberProblem("concurrency.limit", concurrency.limit, 1, limits.JOB_CONCURRENCY_MAX)) ??
    (spec.kind === COMMANDS ? variablesProblem(spec.payload) : null)
  );
}

/** All else in such a payload is the agent's to judge. */
function variablesProblem(payload: Json): string | null {
  const env = isObject(payload) ? payload["env"] : undefined;
  const name = isObject(env) ? Object.keys(env).find(isJobVariable) : undefined;
  return name === undefined ? null : `payload.env has ${name}, which Tenure sets itself; leave it out`;
}

function isObject(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Of a payload's canonical text. */
export function payloadProblem(text: string): string | null {
  const bytes = bytesOf(text, limits.JOB_PAYLOAD_BYTES_MAX);
  return bytes > limits.JOB_PAYLOAD_BYTES_MAX
    ? `payload has ${bytes} bytes, and ${limits.JOB_PAYLOAD_BYTES_MAX} are allowed`
    : null;
}

/** As the rest of a sentence. In bytes: it may become an event's entity, and those are counted so. */
export function nameProblem(field: string, value: string): string | null {
  const bytes = bytesOf(value, limits.JOB_NAME_BYTES_MAX);
  if (bytes === 0 || bytes > limits.JOB_NAME_BYTES_MAX)
    return `${field} has ${bytes} bytes; give it 1 to ${limits.JOB_NAME_BYTES_MAX}`;
  return value.isWellFormed() ? null : `${field} is not well-formed text`;
}

function labelsProblem(labels: JobSpec["labels"]): string | null {
  const names = Object.keys(labels);
  if (names.length === 0) return null;
  if (names.length > limits.JOB_LABELS_MAX)
    return `labels has ${names.length} entries, and ${limits.JOB_LABELS_MAX} are allowed`;
  let bytes = 0;
  for (const name of names) {
    const value = labels[name] as string;
    if (!name.isWellFormed() || !value.isWellFormed()) return "labels has text that is not well-formed";
    bytes += bytesOf(name, limits.JOB_LABELS_BYTES_MAX) + bytesOf(value, limits.JOB_LABELS_BYTES_MAX);
  }
  return bytes > limits.JOB_LABELS_BYTES_MAX
    ? `labels has ${bytes} bytes, and ${limits.JOB_LABELS_BYTES_MAX} are allowed`
    : null;
}

function numberProblem(field: string, value: number, from: number, to: number): string | null {
  if (Number.isSafeInteger(value) && value >= from && value <= to) return null;
  return `${field} must be a whole number from ${from} to ${to}, not ${value}`;
}

/** Exact only where it could matter: a UTF-16 code unit is three bytes at most. */
function bytesOf(text: string, bytesMax: number): number {
  return text.length * 3 <= bytesMax || text.length > bytesMax ? text.length : encoder.encode(text).length;
}
