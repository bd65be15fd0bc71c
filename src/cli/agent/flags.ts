// The command line of `tenure agent`: which question or step, checked before anything is asked.

import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { AGENT } from "./help.ts";
import type { StepFlags } from "../connection/connection.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { chosen, noName, oneName, refuseStray } from "../kit/words.ts";

const VERBS = verbsOf(AGENT);

const KINDS = { ...CONNECTION_KINDS, undo: kindsOf(AGENT).undo };

export type AgentStep =
  | { readonly verb: "list" }
  | { readonly verb: "show"; readonly name: string }
  | { readonly verb: "drain"; readonly name: string; readonly undo: boolean }
  | { readonly verb: "remove"; readonly name: string };

export function readAgentFlags(args: readonly string[]): StepFlags<AgentStep> | "help" {
  const { values: given, words: before, rest } = parseFlags(withLongOutput(args), KINDS);
  if (given.help !== undefined) return "help";
  const { undo, ...values } = given;
  const words = [...before, ...(rest ?? [])];
  const verb = chosen(words[0], VERBS);
  if (verb === "start") throw new UsageError("start stands in front of its flags: tenure agent start --url URL");
  refuseStray(given, ["undo"], "drain", verb);
  if (verb === "drain") {
    return { step: { verb, name: oneName("agent", words), undo: undo !== undefined }, connection: values };
  }
  if (verb !== "list") return { step: { verb, name: oneName("agent", words) }, connection: values };
  noName(words);
  return { step: { verb }, connection: values };
}
