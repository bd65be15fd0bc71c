// The command line of `tenure agent`: which question or step, checked before anything is asked.

import { START_FLAGS_HELP } from "./start-flags.ts";
import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "../connection/connection.ts";
import { chosen } from "../cluster/flags.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { noName, oneName, refuseStray } from "../kit/words.ts";

const VERBS = ["start", "list", "show", "drain", "remove"] as const;

export const AGENT_HELP = `tenure agent VERB [NAME] [--url URL[,URL…]] [-o table|json]: who runs the jobs of Tenure's servers.

  start              runs exec jobs on this machine: tenure agent start --help
  list               every agent: its state, what it runs and what it offers; also -o jsonl, one object on a line for each
  show NAME          one agent, and the jobs that it holds
  drain NAME         gives it no new jobs; what it runs goes on. With --undo it is given jobs again, as when it is started anew
  remove NAME        takes its jobs away: each counts as lost to it (losses_max) and goes to another agent. What this process of
                     the agent reports from then on is refused; it is let in again when it is started anew

  --undo             drain: give it jobs again
${START_FLAGS_HELP}${CONNECTION_HELP}
start needs the role agent, list and show the role viewer, drain and remove the role operator.

exit codes: 0 done; 64 wrong use; 69 there is no agent of that name, no leader, or no server answers; 75 it may have been done:
look with list; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md)
`;

const KINDS = { ...CONNECTION_KINDS, undo: "switch" } as const;

export type AgentStep =
  | { readonly verb: "list" }
  | { readonly verb: "show"; readonly name: string }
  | { readonly verb: "drain"; readonly name: string; readonly undo: boolean }
  | { readonly verb: "remove"; readonly name: string };

export interface AgentFlags {
  readonly step: AgentStep;
  readonly connection: ConnectionValues;
}

export function readAgentFlags(args: readonly string[]): AgentFlags | "help" {
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
