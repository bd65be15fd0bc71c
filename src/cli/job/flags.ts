// The command line of `tenure job`: which question or step, checked before anything is asked.

import { JOB_ID } from "../../contract/names.ts";
import { CONNECTION_KINDS, ownOf } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { JOB, LIST_LIMIT } from "./help.ts";
import type { JobsQuery } from "../../client/index.ts";
import { JOB_STATES, type JobState } from "../../core/jobs/model.ts";
import { assertNever } from "../../contract/errors.ts";
import type { ConnectionValues, StepFlags } from "../connection/connection.ts";
import { parseDuration, type ParsedFlags, parseFlags, suggestion, UsageError } from "../kit/flags.ts";
import { chosen } from "../kit/words.ts";
import { nameOf, readSpec, type Spec, SPEC_FLAGS, wholeNumber } from "./spec-flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { ATTEMPT_NUMBER_MAX, JOB_IDS_MAX, LIST_LIMIT_MAX } from "../limits.ts";

const VERBS = verbsOf(JOB);
type Verb = (typeof VERBS)[number];

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(JOB) };
const OWN_FLAGS = ownOf(KINDS);
type OwnFlag = (typeof OWN_FLAGS)[number];

const FLAGS_OF: Readonly<Record<Verb, readonly OwnFlag[]>> = {
  submit: [...SPEC_FLAGS, "kind", "idempotency-key", "detach"],
  list: ["state", "kind", "queue", "agent", "search", "limit"],
  show: [],
  logs: ["attempt", "follow"],
  cancel: [],
  retry: [],
  wait: ["timeout"],
};

export type JobStep =
  | ({ readonly verb: "submit"; readonly idempotencyKey: string | undefined; readonly detach: boolean } & Spec)
  | { readonly verb: "list"; readonly query: JobsQuery; readonly limit: number }
  | { readonly verb: "show"; readonly id: string }
  | { readonly verb: "logs"; readonly id: string; readonly attempt: number | undefined; readonly follow: boolean }
  | { readonly verb: "cancel" | "retry"; readonly ids: readonly string[] }
  | { readonly verb: "wait"; readonly ids: readonly string[]; readonly timeoutMs: number | null };

/** `nowMs`: what "in ten minutes" is counted from. */
export function readJobFlags(args: readonly string[], nowMs: number): StepFlags<JobStep> | "help" {
  const parsed = parseFlags(withLongOutput(args), KINDS);
  const { values } = parsed;
  if (values.help !== undefined) return "help";
  const connection = Object.fromEntries(
    Object.entries(values).filter(([name]) => Object.hasOwn(CONNECTION_KINDS, name)),
  ) as ConnectionValues;
  return { step: stepOf(parsed, nowMs), connection };
}

function stepOf(
  { values, lists, words: [verbWord, ...before], rest }: ParsedFlags<keyof typeof KINDS>,
  nowMs: number,
): JobStep {
  const verb = chosen(verbWord, VERBS);
  refuseStray(verb, values);
  if (verb === "submit") {
    const key = values["idempotency-key"];
    if (key === "") throw new UsageError("--idempotency-key must not be empty");
    const spec = readSpec(kindWords(before, values.kind), rest, { values, lists }, nowMs);
    return { verb, ...spec, idempotencyKey: key, detach: values.detach !== undefined };
  }
  const words = [...before, ...(rest ?? [])];
  switch (verb) {
    case "list":
      if (words[0] !== undefined)
        throw new UsageError(`list takes no ${JSON.stringify(words[0])}; to look at one job: show ID`);
      return { verb, ...queryOf(values) };
    case "show":
      return { verb, id: oneId(verb, words) };
    case "logs": {
      const attempt =
        values.attempt === undefined ? undefined : wholeNumber("--attempt", values.attempt, 1, ATTEMPT_NUMBER_MAX);
      return { verb, id: oneId(verb, words), attempt, follow: values.follow !== undefined };
    }
    case "cancel":
    case "retry":
      return { verb, ids: idsOf(verb, words) };
    case "wait": {
      const timeoutMs = values.timeout === undefined ? null : parseDuration("--timeout", values.timeout);
      return { verb, ids: idsOf(verb, words), timeoutMs };
    }
    default:
      return assertNever(verb, "job");
  }
}

/** `submit KIND` and, as with `schedule put`, `submit --kind KIND`. */
function kindWords(words: readonly string[], kind: string | undefined): readonly string[] {
  if (kind === undefined) return words;
  const stray = words.find((word) => word !== kind);
  if (stray === undefined) return [nameOf("--kind", kind)];
  throw new UsageError(`the kind is ${JSON.stringify(stray)}, and ${JSON.stringify(kind)} by --kind; give one of them`);
}

function refuseStray(verb: Verb, values: Partial<Record<OwnFlag, string>>): void {
  const stray = OWN_FLAGS.find((flag) => values[flag] !== undefined && !FLAGS_OF[verb].includes(flag));
  if (stray === undefined) return;
  const owners = VERBS.filter((one) => FLAGS_OF[one].includes(stray)).join(" and ");
  throw new UsageError(`--${stray} belongs to ${owners}, not to ${verb}`);
}

function queryOf(values: Partial<Record<OwnFlag, string>>): { readonly query: JobsQuery; readonly limit: number } {
  const { state, kind, queue, agent, search, limit } = values;
  return {
    query: {
      ...(state === undefined ? {} : { states: state.split(",").map(stateOf) }),
      ...(kind === undefined ? {} : { kind: nameOf("--kind", kind) }),
      ...(queue === undefined ? {} : { queue: nameOf("--queue", queue) }),
      ...(agent === undefined ? {} : { agent: nameOf("--agent", agent) }),
      ...(search === undefined ? {} : { search: searchOf(search) }),
    },
    limit: limit === undefined ? LIST_LIMIT : wholeNumber("--limit", limit, 1, LIST_LIMIT_MAX),
  };
}

function stateOf(text: string): JobState {
  const state = JOB_STATES.find((one) => one === text);
  if (state !== undefined) return state;
  const near = suggestion(text, JOB_STATES);
  throw new UsageError(
    `there is no state ${JSON.stringify(text)}${near === "" ? `; give ${JOB_STATES.join(", ")}` : near}`,
  );
}

function searchOf(text: string): string {
  if (text.trim() === "") throw new UsageError("--search takes words, and there are none");
  return text;
}

function oneId(verb: Verb, words: readonly string[]): string {
  const [id, more] = words;
  if (more !== undefined) throw new UsageError(`${verb} takes one id, not ${words.length}`);
  return idOf(verb, id, "ID");
}

function idsOf(verb: Verb, words: readonly string[]): readonly string[] {
  if (words.length > JOB_IDS_MAX) throw new UsageError(`${verb} takes at most ${JOB_IDS_MAX} ids, not ${words.length}`);
  // The same one twice is one: to cancel it again would be refused.
  const ids = [...new Set(words)];
  return ids.length === 0 ? [idOf(verb, undefined, "ID…")] : ids.map((id) => idOf(verb, id, "ID…"));
}

function idOf(verb: Verb, word: string | undefined, wanted: string): string {
  if (word === undefined) throw new UsageError(`${verb} needs the id of a job: tenure job ${verb} ${wanted}`);
  if (JOB_ID.test(word)) return word;
  throw new UsageError(`${verb} takes ids of jobs, which have letters, digits, '_' and -, not ${JSON.stringify(word)}`);
}
