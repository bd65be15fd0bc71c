// The command line of `tenure value`: which step, and under which conditions, checked before anything is asked.

import type { Json, ValueWriteOptions } from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { INTEGER_MAX, VALUE_NAME_BYTES_MAX } from "../../core/kit/limits.ts";
import type { StepFlags } from "../connection/connection.ts";
import { jsonOf, wholeNumber } from "../job/spec-flags.ts";
import { CONNECTION_KINDS, ownOf } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { chosen, oneName } from "../kit/words.ts";
import { VALUE } from "./help.ts";

const VERBS = verbsOf(VALUE);
type Verb = (typeof VERBS)[number];

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(VALUE) };
const OWN_FLAGS = ownOf(KINDS);
type OwnFlag = (typeof OWN_FLAGS)[number];
type OwnValues = Partial<Record<OwnFlag, string>>;

const CONDITIONS = ["if-version", "scope", "epoch"] as const;
const FLAGS_OF: Readonly<Record<Verb, readonly OwnFlag[]>> = {
  get: [],
  put: CONDITIONS,
  delete: CONDITIONS,
  list: ["prefix"],
  watch: ["prefix", "after"],
};

export type ValueConditions = Pick<ValueWriteOptions, "ifVersion" | "scope" | "epoch">;

export type ValueStep =
  | { readonly verb: "get"; readonly name: string }
  /** `value` null: it comes from stdin. */
  | {
      readonly verb: "put";
      readonly name: string;
      readonly value: { readonly json: Json } | null;
      readonly conditions: ValueConditions;
    }
  | { readonly verb: "delete"; readonly name: string; readonly conditions: ValueConditions }
  | { readonly verb: "list"; readonly prefix: string | undefined }
  | { readonly verb: "watch"; readonly prefix: string | undefined; readonly after: number | undefined };

export function readValueFlags(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): StepFlags<ValueStep> | "help" {
  const { values, words: before, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return "help";
  const words = [...before, ...(rest ?? [])];
  const verb = chosen(words[0], VERBS);
  refuseStray(verb, values);
  return { step: stepOf(verb, words, values, environment), connection: values };
}

function stepOf(
  verb: Verb,
  words: readonly string[],
  values: OwnValues,
  environment: Readonly<Record<string, string | undefined>>,
): ValueStep {
  switch (verb) {
    case "get":
      return { verb, name: nameOf(verb, oneName("value", words)) };
    case "put": {
      const name = nameOf(verb, oneName("value", words.slice(0, 2)));
      const [, , text, more] = words;
      if (text === undefined) {
        throw new UsageError(`put needs a value: tenure value put ${name} JSON, or - for stdin`);
      }
      if (more !== undefined) throw new UsageError(`put takes one value, not ${words.length - 2}; put it into quotes`);
      const value = text === "-" ? null : { json: jsonOf("put", text) };
      return { verb, name, value, conditions: conditionsOf(values, environment) };
    }
    case "delete":
      return { verb, name: nameOf(verb, oneName("value", words)), conditions: conditionsOf(values, environment) };
    case "list":
    case "watch": {
      const [, word] = words;
      if (word !== undefined) {
        throw new UsageError(`${verb} takes no ${JSON.stringify(word)}; names that begin so are --prefix ${word}`);
      }
      const { prefix, after } = values;
      if (verb === "list") return { verb, prefix };
      return { verb, prefix, after: after === undefined ? undefined : wholeNumber("--after", after, 0, INTEGER_MAX) };
    }
    default:
      return assertNever(verb, "value");
  }
}

function refuseStray(verb: Verb, values: OwnValues): void {
  const stray = OWN_FLAGS.find((flag) => values[flag] !== undefined && !FLAGS_OF[verb].includes(flag));
  if (stray === undefined) return;
  const owners = VERBS.filter((one) => FLAGS_OF[one].includes(stray)).join(" and ");
  throw new UsageError(`--${stray} belongs to ${owners}, not to ${verb}`);
}

/** As a part of a path "." and ".." mean other paths. */
function nameOf(verb: string, text: string): string {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= VALUE_NAME_BYTES_MAX && text !== "." && text !== "..") return text;
  const wanted = `a name of 1 to ${VALUE_NAME_BYTES_MAX} bytes, and not "." or ".."`;
  throw new UsageError(`${verb} takes ${wanted}, not ${JSON.stringify(text)}`);
}

/** The variables are those of `tenure run`: a command that it runs writes under the epoch in which it was started. Flags count instead of both. */
function conditionsOf(
  { "if-version": ifVersion, scope, epoch }: OwnValues,
  environment: Readonly<Record<string, string | undefined>>,
): ValueConditions {
  const version = ifVersion === undefined ? {} : { ifVersion: wholeNumber("--if-version", ifVersion, 0, INTEGER_MAX) };
  const isByFlag = scope !== undefined || epoch !== undefined;
  const [names, fence] = isByFlag
    ? ([
        ["--scope", "--epoch"],
        [scope, epoch],
      ] as const)
    : ([
        ["TENURE_SCOPE", "TENURE_EPOCH"],
        [environment["TENURE_SCOPE"], environment["TENURE_EPOCH"]],
      ] as const);
  const [given = "", number = ""] = fence;
  if (given === "" && number === "") return version;
  if (given === "") throw half(names[1], names[0]);
  if (number === "") throw half(names[0], names[1]);
  return { ...version, scope: given, epoch: wholeNumber(names[1], number, 1, INTEGER_MAX) };
}

function half(given: string, missing: string): UsageError {
  return new UsageError(`${given} needs ${missing} too: an epoch is one of a scope`);
}
