// The command line of `tenure txn`: which step, checked before anything is asked.

import { assertNever } from "../../contract/errors.ts";
import type { StepFlags } from "../connection/connection.ts";
import { CONNECTION_KINDS, ownOf } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { chosen, noName, refuseStray } from "../kit/words.ts";
import { TXN } from "./help.ts";

const VERBS = verbsOf(TXN);
const KINDS = { ...CONNECTION_KINDS, ...kindsOf(TXN) };
const OWN_FLAGS = ownOf(KINDS);
type OwnFlag = (typeof OWN_FLAGS)[number];
const OWNERS: Readonly<Record<OwnFlag, (typeof VERBS)[number]>> = {
  id: "run",
  "in-doubt": "list",
  force: "replay",
  yes: "replay",
};

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const FORCES = ["commit", "rollback"] as const;

export type Force = (typeof FORCES)[number];

export type TxnStep =
  /** `file` "-": stdin. `id` null: the file's, else a new one. */
  | { readonly verb: "run"; readonly file: string; readonly id: string | null }
  | { readonly verb: "show"; readonly id: string }
  | { readonly verb: "list"; readonly inDoubt: boolean }
  | { readonly verb: "replay"; readonly id: string; readonly force: Force | null; readonly isAsked: boolean };

export function readTxnFlags(args: readonly string[]): StepFlags<TxnStep> | "help" {
  const { values, words: before, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return "help";
  const words = [...before, ...(rest ?? [])];
  const verb = chosen(words[0], VERBS);
  for (const flag of OWN_FLAGS) refuseStray(values, [flag], OWNERS[flag], verb);
  return { step: stepOf(verb, words, values), connection: values };
}

function stepOf(
  verb: (typeof VERBS)[number],
  words: readonly string[],
  values: Partial<Record<OwnFlag, string>>,
): TxnStep {
  switch (verb) {
    case "run": {
      const [, file, more] = words;
      if (file === undefined) throw new UsageError("run needs a file: tenure txn run FILE, or - for stdin");
      if (more !== undefined) throw new UsageError(`run takes one file, not ${words.length - 1}`);
      return { verb, file, id: values.id === undefined ? null : checkedId("--id", values.id) };
    }
    case "show":
      return { verb, id: idIn(words) };
    case "list":
      noName(words);
      return { verb, inDoubt: values["in-doubt"] !== undefined };
    case "replay": {
      const { force, yes } = values;
      if (force === undefined) {
        if (yes !== undefined) throw new UsageError("--yes belongs to --force: without it nothing is asked");
        return { verb, id: idIn(words), force: null, isAsked: false };
      }
      const how = forceIn(words);
      return { verb, id: idIn(words.filter((word) => word !== how)), force: how, isAsked: yes === undefined };
    }
    default:
      return assertNever(verb, "txn");
  }
}

/** A word next to the id, not a value of the flag: in all other commands --force is a switch, and a shell completes it as such. */
function forceIn(words: readonly string[]): Force {
  const found = FORCES.filter((force) => words.slice(1).includes(force));
  if (found.length === 1) return found[0] as Force;
  const wrong = found.length > 1 ? "not both" : (words.slice(1).find((word) => !ID.test(word)) ?? null);
  const given = wrong === null ? "and there is neither" : found.length > 1 ? wrong : `not ${JSON.stringify(wrong)}`;
  throw new UsageError(`--force takes commit or rollback, ${given}`);
}

function idIn([verb = "", id, more]: readonly string[]): string {
  if (id === undefined) throw new UsageError(`${verb} needs an id: tenure txn ${verb} ID`);
  if (more !== undefined) throw new UsageError(`${verb} takes one id`);
  return checkedId(verb, id);
}

export function checkedId(what: string, id: string): string {
  if (ID.test(id)) return id;
  const wanted = "the id of a transaction: a UUID of version 7, in lower case";
  throw new UsageError(`${what} takes ${wanted}, not ${JSON.stringify(id)}`);
}
