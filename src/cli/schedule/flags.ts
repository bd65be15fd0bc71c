// The command line of `tenure schedule`: which question or step, and a schedule made of flags, checked before anything is asked.
// The flags of its jobs are those of `tenure job submit`, but for --not-before: when a job comes is what the schedule says.

import { CATCH_UPS, OVERLAPS } from "../../core/jobs/model.ts";
import { CONNECTION_KINDS, ownOf } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { SCHEDULE } from "./help.ts";
import type { ScheduleRequest } from "../../client/index.ts";
import type { StepFlags } from "../connection/connection.ts";
import { oneOf, type ParsedFlags, parseFlags, UsageError } from "../kit/flags.ts";
import { nameOf, readSpec } from "../job/spec-flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { chosen, noName, oneName, refuseStray } from "../kit/words.ts";

const VERBS = verbsOf(SCHEDULE);

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(SCHEDULE) };
const PUT_FLAGS = ownOf(KINDS);
type PutFlag = (typeof PUT_FLAGS)[number];

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

export function readScheduleFlags(args: readonly string[]): StepFlags<ScheduleStep> | "help" {
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

/** As readSpec takes it: the word after `submit`, or none where a command says it. What it would say of that is said here. */
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
