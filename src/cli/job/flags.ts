// The command line of `tenure job`: which question or step, checked before anything is asked.

import type { JobsQuery, JobState } from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "../connection/connection.ts";
import { chosen } from "../cluster/flags.ts";
import { parseDuration, type ParsedFlags, parseFlags, suggestion, UsageError } from "../kit/flags.ts";
import { nameOf, readSpec, type Spec, SPEC_KINDS, wholeNumber } from "./spec-flags.ts";
import { withLongOutput } from "../kit/output.ts";

const VERBS = ["submit", "list", "show", "logs", "cancel", "retry", "wait"] as const;
type Verb = (typeof VERBS)[number];
/** As the contract has them (a test compares). */
export const JOB_STATES = [
  "pending",
  "assigned",
  "building",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
] as const satisfies readonly JobState[];
/** As the contract has it (JobId; a test compares). */
export const JOB_ID = /^[A-Za-z0-9_-]{1,64}$/;
const LIST_LIMIT = 50;
/** As the contract has it (JOBS_PER_PAGE_MAX; a test compares). */
export const LIST_PAGE_MAX = 200;
const LIST_LIMIT_MAX = 100_000;
const ATTEMPT_MAX = 1_000_000;
const IDS_MAX = 1_000;

const OUTPUT_LINE = /^ {2}-o .*$/m;
const LIST_OUTPUT_LINE =
  "  -o table|json|jsonl  for people (default), one JSON object on a line, or one for each of many; --json is -o json";

export const JOB_HELP = `tenure job VERB [--url URL[,URL…]] [-o table|json|jsonl]: jobs at Tenure's own servers.

  submit KIND             submits a job and follows it: its log on stdout, what becomes of it on stderr
  submit -- COMMAND ARG…  the same, of the kind exec with the payload {"command": [COMMAND, ARG…]}
  list                    the jobs, newest first
  show ID                 one job: what is to be done, its attempts, its result, why it waits
  logs ID                 what an attempt has printed
  cancel ID…              cancels them; what runs is told to stop
  retry ID…               finished jobs, once more
  wait ID…                until all of them are finished

submit:
  --payload JSON          what the handler gets
  --payload-file FILE     the same from a file; - is stdin
  --queue Q               where it waits (default: default); list: of this queue
  --priority N            higher goes first (default: 0)
  --label NAME=VALUE      agents must have it too; may be given again
  --platform P            agents must be of this platform
  --not-before WHEN       a time such as 2030-01-31T15:00:00Z, or in a duration such as 10m
  --attempts N            so many may fail (default: 3)
  --losses N              so many agents may vanish with it (default: 10)
  --backoff BASE,MAX      the pause behind the first failure, and the longest (default: 1s,5m)
  --timeout D             for each attempt (default: none); wait: how long to wait, at most 24h (default: for ever)
  --retention D           how long it is kept once finished (default: 7d)
  --concurrency KEY=LIMIT at most so many jobs with this key run at one time
  --env NAME=VALUE        of a command: its environment; may be given again
  --cwd DIR               of a command: where it runs
  --idempotency-key K     the same key with the same job is one job, for 24 hours
  --detach                print the id on stdout, and do not follow

list:
  --state S[,S…]          ${JOB_STATES.join(", ")}
  --kind K                of this kind; submit: the same as the word KIND
  --agent NAME            that this agent has or had
  --search TEXT           with all of these words
  --limit N               at most so many (default: ${LIST_LIMIT})

logs:
  --attempt N             of this attempt (default: the last)
  --follow                goes on until the attempt has ended

all:
${CONNECTION_HELP.replace(OUTPUT_LINE, LIST_OUTPUT_LINE)}
submit, cancel and retry need the role submitter, the rest viewer.

exit codes: 0 done; submit, wait: completed; 1 submit, wait: a job failed or was cancelled; 64 wrong use, a job that the servers
refuse, or one that is not finished (retry); 69 there is no such job, it is finished (cancel), nobody leads, or no server answers;
75 wait: the time is over; else not now, or it may have been done: look; 77 the key may not do this; 78 a certificate that is
not trusted (--ca) or can't be used (docs/errors.md); 130 and 143 ended by SIGINT or SIGTERM: a job that was followed goes on
`;

const OWN_KINDS = {
  ...SPEC_KINDS,
  "idempotency-key": "value",
  detach: "switch",
  state: "value",
  kind: "value",
  agent: "value",
  search: "value",
  limit: "value",
  attempt: "value",
  follow: "switch",
} as const;
type OwnFlag = keyof typeof OWN_KINDS;

const KINDS = { ...CONNECTION_KINDS, ...OWN_KINDS } as const;

const FLAGS_OF: Readonly<Record<Verb, readonly OwnFlag[]>> = {
  submit: [...(Object.keys(SPEC_KINDS) as OwnFlag[]), "kind", "idempotency-key", "detach"],
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

export interface JobFlags {
  readonly step: JobStep;
  readonly connection: ConnectionValues;
}

/** `nowMs`: what "in ten minutes" is counted from. */
export function readJobFlags(args: readonly string[], nowMs: number): JobFlags | "help" {
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
        values.attempt === undefined ? undefined : wholeNumber("--attempt", values.attempt, 1, ATTEMPT_MAX);
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
  const stray = (Object.keys(OWN_KINDS) as OwnFlag[]).find(
    (flag) => values[flag] !== undefined && !FLAGS_OF[verb].includes(flag),
  );
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
  if (words.length > IDS_MAX) throw new UsageError(`${verb} takes at most ${IDS_MAX} ids, not ${words.length}`);
  // The same one twice is one: to cancel it again would be refused.
  const ids = [...new Set(words)];
  return ids.length === 0 ? [idOf(verb, undefined, "ID…")] : ids.map((id) => idOf(verb, id, "ID…"));
}

function idOf(verb: Verb, word: string | undefined, wanted: string): string {
  if (word === undefined) throw new UsageError(`${verb} needs the id of a job: tenure job ${verb} ${wanted}`);
  if (JOB_ID.test(word)) return word;
  throw new UsageError(`${verb} takes ids of jobs, which have letters, digits, '_' and -, not ${JSON.stringify(word)}`);
}
