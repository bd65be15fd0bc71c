// The command line of `tenure schedule`: which question or step, and a schedule made of flags, checked before anything is asked.
// The flags of its jobs are those of `tenure job submit`, but for --not-before: when a job comes is what the schedule says.

import type { ScheduleRequest } from "../../client/index.ts";
import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "../connection/connection.ts";
import { chosen } from "../cluster/flags.ts";
import { oneOf, type ParsedFlags, parseFlags, UsageError } from "../kit/flags.ts";
import { nameOf, readSpec, SPEC_KINDS } from "../job/spec-flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { noName, oneName, refuseStray } from "../kit/words.ts";

const VERBS = ["list", "show", "put", "delete"] as const;
/** As the contract has them (ScheduleBody; a test compares). */
export const OVERLAPS = ["allow", "skip"] as const;
export const CATCH_UPS = ["none", "last", "all"] as const;

export const SCHEDULE_HELP = `tenure schedule VERB [NAME] [--url URL[,URL…]] [-o table|json]: jobs that come by the clock.

  list               every schedule, and when it comes next; also -o jsonl, one object on a line for each
  show NAME          one schedule, with the job that it submits
  put NAME           makes a schedule, or replaces the one of that name as a whole:
                     tenure schedule put NAME --cron "0 3 * * *" --kind KIND [job flags]
                     tenure schedule put NAME --cron "0 3 * * *" [job flags] -- COMMAND ARG…   (a job of the kind exec)
                     tenure schedule put NAME --file FILE
  delete NAME        no more jobs come of it; those that came go on

  --cron "…"         put: minute, hour, day of the month, month, day of the week
  --time-zone ZONE   put: of the cron, such as Europe/Berlin (default: UTC)
  --overlap HOW      put: while a job of it is not finished, skip (default) or allow another
  --catch-up HOW     put: of the times that passed while no server led, none, the last (default) or all
  --paused           put: nothing comes of it until it is put again without this
  --file FILE        put: all of it as JSON, in the fields of \`show -o json\`; - is stdin
  --kind KIND        put: the kind of its jobs
  --payload JSON     put: what the handler gets; the flags from here on are those of tenure job submit
  --payload-file FILE  put: the same from a file; - is stdin
  --queue Q          put: the queue of its jobs
  --priority N       put: higher goes first
  --label NAME=VALUE  put: agents must have it too; may be given again
  --platform P       put: agents must be of this platform
  --attempts N       put: so many may fail
  --losses N         put: so many agents may vanish with a job
  --backoff BASE,MAX  put: the pause behind the first failure, and the longest, such as 1s,5m
  --timeout D        put: for each attempt
  --retention D      put: how long a job is kept once finished
  --concurrency KEY=LIMIT  put: at most so many jobs with this key run at one time
  --env NAME=VALUE   put, of a command: its environment; may be given again
  --cwd DIR          put, of a command: where it runs
${CONNECTION_HELP}
list and show need the role viewer, the others the role submitter.

exit codes: 0 done; 64 wrong use, or a cron, a time zone or a job that the servers refuse; 69 there is no schedule of that name, no
leader, or no server answers; 75 not now, or it may have been done: look with list; 77 the key may not do this; 78 a certificate that is not
trusted (--ca) or can't be used (docs/errors.md)
`;

const { "not-before": _notBefore, ...JOB_KINDS } = SPEC_KINDS;
const PUT_KINDS = {
  cron: "value",
  "time-zone": "value",
  overlap: "value",
  "catch-up": "value",
  paused: "switch",
  file: "value",
  kind: "value",
  ...JOB_KINDS,
} as const;
const KINDS = { ...CONNECTION_KINDS, ...PUT_KINDS } as const;
type PutFlag = keyof typeof PUT_KINDS;
const PUT_FLAGS = Object.keys(PUT_KINDS) as PutFlag[];

export type ScheduleStep =
  | { readonly verb: "list" }
  | { readonly verb: "show" | "delete"; readonly name: string }
  /** The payload is in `payloadFile`, where that is not null. */
  | {
      readonly verb: "put";
      readonly name: string;
      readonly request: ScheduleRequest;
      readonly payloadFile: string | null;
    }
  | { readonly verb: "put-file"; readonly name: string; readonly file: string };

export interface ScheduleFlags {
  readonly step: ScheduleStep;
  readonly connection: ConnectionValues;
}

export function readScheduleFlags(args: readonly string[]): ScheduleFlags | "help" {
  const parsed = parseFlags(withLongOutput(args), KINDS);
  const { values, words, rest } = parsed;
  return values.help === undefined ? { step: stepOf(parsed, words, rest), connection: values } : "help";
}

function stepOf(
  parsed: ParsedFlags<keyof typeof KINDS>,
  words: readonly string[],
  command: readonly string[] | undefined,
): ScheduleStep {
  const verb = chosen(words[0], VERBS);
  refuseStray(parsed.values, PUT_FLAGS, "put", verb);
  if (verb === "put") return putStep(oneName("schedule", words), parsed, command);
  const all = [...words, ...(command ?? [])];
  if (verb !== "list") return { verb, name: oneName("schedule", all) };
  noName(all);
  return { verb };
}

function putStep(
  name: string,
  { values, lists }: Pick<ParsedFlags<PutFlag>, "values" | "lists">,
  command: readonly string[] | undefined,
): ScheduleStep {
  const { cron, file, "time-zone": timeZone, overlap, "catch-up": catchUp, paused } = values;
  nameOf("put", name);
  if (file !== undefined) {
    const other = PUT_FLAGS.find((flag) => flag !== "file" && values[flag] !== undefined);
    if (other !== undefined) throw new UsageError(`--file says all of it: leave out --${other}`);
    if (command !== undefined) throw new UsageError("--file says all of it: leave out what is behind --");
    if (file === "") throw new UsageError("--file must not be empty");
    return { verb: "put-file", name, file };
  }
  if (cron === undefined || cron.trim() === "") {
    throw new UsageError(
      `put needs a cron: tenure schedule put ${name} --cron "0 3 * * *" --kind KIND, or --file FILE`,
    );
  }
  if (timeZone === "") throw new UsageError("--time-zone must not be empty");
  const { request: spec, payloadFile } = readSpec(kindOf(values, command), command, { values, lists }, 0);
  const request: ScheduleRequest = {
    cron,
    spec,
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(overlap === undefined ? {} : { overlap: oneOf("--overlap", overlap, OVERLAPS) }),
    ...(catchUp === undefined ? {} : { catchUp: oneOf("--catch-up", catchUp, CATCH_UPS) }),
    ...(paused === undefined ? {} : { paused: true }),
  };
  return { verb: "put", name, request, payloadFile };
}

/** As readSpec takes it: the word behind `submit`, or none where a command says it. What it would say of that is said here. */
function kindOf(values: ParsedFlags<PutFlag>["values"], command: readonly string[] | undefined): string[] {
  const { kind } = values;
  if (command !== undefined) return kind === undefined ? [] : [nameOf("--kind", kind)];
  if (kind === undefined) throw new UsageError("put needs a kind: --kind KIND, or a command behind --");
  const stray = (["env", "cwd"] as const).find((flag) => values[flag] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} belongs to a command behind --`);
  if (kind === "exec" && values.payload === undefined && values["payload-file"] === undefined) {
    throw new UsageError("the kind exec needs a command behind --");
  }
  return [nameOf("--kind", kind)];
}
