// What is to be done, as flags: from the command line of `tenure job submit` to a JobRequest. Pure; a payload that is in a file
// is read elsewhere (files/payload.ts). The bounds are the servers' own, checked here so that the message names the flag.

import { JOB_NAME } from "../../contract/names.ts";
import {
  JOB_BACKOFF_MS_MAX,
  JOB_BUDGET_MAX,
  JOB_CONCURRENCY_MAX,
  JOB_PRIORITY_MAX,
  JOB_RETENTION_MS_MAX,
  JOB_TIMEOUT_MS_MAX,
} from "../../core/kit/limits.ts";
import type { JobRequest, Json } from "../../client/index.ts";
import { parseJson } from "../../contract/parse-json.ts";
import { jsonFaultAt } from "../files/json-fault.ts";
import { parseDuration, type ParsedFlags, UsageError } from "../kit/flags.ts";
import { DELAY_MS_MAX } from "../limits.ts";

const EXEC = "exec";

/** The flags that say what a job is: the first of help.ts, and with another text of schedule/help.ts. */
export const SPEC_FLAGS = [
  "payload",
  "payload-file",
  "queue",
  "priority",
  "label",
  "platform",
  "not-before",
  "attempts",
  "losses",
  "backoff",
  "timeout",
  "retention",
  "concurrency",
  "env",
  "cwd",
] as const;
export type SpecFlag = (typeof SPEC_FLAGS)[number];
export type SpecFlags = Pick<ParsedFlags<SpecFlag>, "values" | "lists">;

export interface Spec {
  readonly request: JobRequest;
  /** The payload is in this file, or comes from stdin where it is "-"; null: it is in the request. */
  readonly payloadFile: string | null;
}

/** `words`: what is after the verb. `command`: what is after `--`. */
export function readSpec(
  words: readonly string[],
  command: readonly string[] | undefined,
  { values, lists }: SpecFlags,
  nowMs: number,
): Spec {
  const kind = kindOf(words, command, values);
  const payload = payloadOf(kind, command, { values, lists });
  const number = (flag: "priority" | "attempts" | "losses", min: number, max: number): number | undefined =>
    values[flag] === undefined ? undefined : wholeNumber(`--${flag}`, values[flag], min, max);
  const name = (flag: "queue" | "platform"): string | undefined =>
    values[flag] === undefined ? undefined : nameOf(`--${flag}`, values[flag]);
  const request: JobRequest = {
    kind,
    payload,
    queue: name("queue"),
    labels: lists.label === undefined ? undefined : pairs("--label", lists.label),
    platform: name("platform"),
    priority: number("priority", -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX),
    notBeforeMs: values["not-before"] === undefined ? undefined : timeOf("--not-before", values["not-before"], nowMs),
    attemptsMax: number("attempts", 1, JOB_BUDGET_MAX),
    lossesMax: number("losses", 1, JOB_BUDGET_MAX),
    backoff: values.backoff === undefined ? undefined : backoffOf(values.backoff),
    timeoutMs: values.timeout === undefined ? undefined : timeoutOf(values.timeout),
    retentionMs:
      values.retention === undefined
        ? undefined
        : Math.round(parseDuration("--retention", values.retention, JOB_RETENTION_MS_MAX)),
    concurrency: values.concurrency === undefined ? undefined : concurrencyOf(values.concurrency),
  };
  return { request: withoutGaps(request), payloadFile: values["payload-file"] ?? null };
}

/** What was not given is not there at all: it is the servers that know the defaults. */
function withoutGaps(request: JobRequest): JobRequest {
  return Object.fromEntries(
    Object.entries(request).filter(([, value]) => value !== undefined),
  ) as unknown as JobRequest;
}

function kindOf(words: readonly string[], command: readonly string[] | undefined, values: SpecFlags["values"]): string {
  const [word, more] = words;
  if (more !== undefined)
    throw new UsageError(`submit takes one kind, not ${words.length}; a command stands behind --`);
  if (command === undefined) {
    if (word === undefined) {
      throw new UsageError(
        "submit needs a kind: tenure job submit KIND, or a command: tenure job submit -- COMMAND ARG…",
      );
    }
    const stray = (["env", "cwd"] as const).find((flag) => values[flag] !== undefined);
    if (stray !== undefined) {
      throw new UsageError(`--${stray} belongs to a command: tenure job submit -- COMMAND ARG…`);
    }
    if (word === EXEC && values.payload === undefined && values["payload-file"] === undefined) {
      throw new UsageError(`the kind exec needs a command: tenure job submit exec -- COMMAND ARG…`);
    }
    return nameOf("submit", word);
  }
  if (word !== undefined && word !== EXEC) {
    throw new UsageError(
      `a command behind -- is of the kind exec, not of ${JSON.stringify(word)}; its payload is --payload`,
    );
  }
  return EXEC;
}

function payloadOf(kind: string, command: readonly string[] | undefined, flags: SpecFlags): Json | undefined {
  const { payload, "payload-file": file, cwd } = flags.values;
  if (payload !== undefined && file !== undefined) throw new UsageError("give --payload or --payload-file, not both");
  if (command === undefined) return payload === undefined ? undefined : jsonOf("--payload", payload);
  if (payload !== undefined || file !== undefined) {
    throw new UsageError(
      `the command behind -- is the payload of ${kind}: leave out --payload${file === undefined ? "" : "-file"}`,
    );
  }
  if (command.length === 0 || command[0] === "") throw new UsageError("there is no command behind --");
  if (cwd === "") throw new UsageError("--cwd must not be empty");
  return {
    command,
    ...(flags.lists.env === undefined ? {} : { env: pairs("--env", flags.lists.env) }),
    ...(cwd === undefined ? {} : { cwd }),
  };
}

/** `what`: the flag, or the file. */
export function jsonOf(what: string, text: string): Json {
  try {
    return parseJson(text) as Json;
  } catch (error) {
    const found = text.length > 40 ? `${text.slice(0, 40)}…` : text;
    if (!(error instanceof SyntaxError)) throw error;
    const { at, expected } = jsonFaultAt(text);
    const why = `at character ${at + 1} ${expected} is expected`;
    throw new UsageError(`${what} must be JSON, such as {"a": 1} or "text", not ${JSON.stringify(found)} (${why})`);
  }
}

export function wholeNumber(flag: string, text: string, min: number, max: number): number {
  const number = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new UsageError(`${flag} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
}

export function nameOf(flag: string, text: string): string {
  if (JOB_NAME.test(text)) return text;
  const wanted = "a name of letters, digits, '.', '_', ':' and -, at most 128, beginning with a letter or digit";
  throw new UsageError(`${flag} takes ${wanted}, not ${JSON.stringify(text)}`);
}

/** Of `K=V`, again and again. The value may have a `=` of its own. */
export function pairs(flag: string, texts: readonly string[]): Readonly<Record<string, string>> {
  const found = new Map<string, string>();
  for (const text of texts) {
    const equals = text.indexOf("=");
    if (equals < 1) throw new UsageError(`${flag} takes NAME=VALUE, not ${JSON.stringify(text)}`);
    const name = text.slice(0, equals);
    if (found.has(name)) throw new UsageError(`${flag} ${name} is given twice`);
    found.set(name, text.slice(equals + 1));
  }
  return Object.fromEntries(found);
}

function timeOf(flag: string, text: string, nowMs: number): number {
  if (/^\d+(\.\d+)?[a-z]+$/.test(text)) return Math.round(nowMs + parseDuration(flag, text, DELAY_MS_MAX));
  // A time without a zone would be another one on another machine.
  const [, day = ""] = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/.exec(text) ?? [];
  const atMs = Date.parse(text);
  // February 30 is March 2 to a Date.
  const isDay = day !== "" && !Number.isNaN(atMs) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  if (isDay) return atMs;
  const wanted = "a time such as 2030-01-31T15:00:00Z, or a duration such as 10m";
  throw new UsageError(`${flag} takes ${wanted}, not ${JSON.stringify(text)}`);
}

function backoffOf(text: string): { readonly baseMs: number; readonly maxMs: number } {
  const [base, max, more] = text.split(",");
  if (base === undefined || max === undefined || more !== undefined) {
    throw new UsageError(`--backoff takes the first pause and the longest, such as 1s,5m, not ${JSON.stringify(text)}`);
  }
  const [baseMs, maxMs] = [base, max].map((one) => Math.round(parseDuration("--backoff", one, JOB_BACKOFF_MS_MAX))) as [
    number,
    number,
  ];
  if (baseMs > maxMs) throw new UsageError(`--backoff: the first pause, ${base}, is above the longest, ${max}`);
  return { baseMs, maxMs };
}

function timeoutOf(text: string): number {
  const timeoutMs = Math.round(parseDuration("--timeout", text, JOB_TIMEOUT_MS_MAX));
  if (timeoutMs < 1) throw new UsageError(`--timeout takes at least 1ms, not ${text}`);
  return timeoutMs;
}

function concurrencyOf(text: string): { readonly key: string; readonly limit: number } {
  const [, key, limit] = /^([^=]+)=([^=]+)$/.exec(text) ?? [];
  if (key === undefined || limit === undefined) {
    throw new UsageError(`--concurrency takes KEY=LIMIT, such as deploy=1, not ${JSON.stringify(text)}`);
  }
  return {
    key: nameOf("--concurrency", key),
    limit: wholeNumber("--concurrency: the limit", limit, 1, JOB_CONCURRENCY_MAX),
  };
}
