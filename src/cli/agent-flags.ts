// The command line of `tenure agent`: which question or step, checked before anything is asked.

import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "./cluster-connection.ts";
import { chosen } from "./cluster-flags.ts";
import { parseFlags } from "./flags.ts";
import { withLongOutput } from "./output.ts";
import { noName, oneName } from "./words.ts";

const VERBS = ["list", "show", "remove"] as const;

export const AGENT_HELP = `tenure agent VERB [NAME] [--url URL[,URL…]] [-o table|json]: who runs the jobs of Tenure's servers.

  list               every agent: its state, what it runs and what it offers; also -o jsonl, one object on a line for each
  show NAME          one agent, and the jobs that it holds
  remove NAME        takes its jobs away: each counts as lost to it (losses_max) and goes to another agent. What this process of
                     the agent reports from then on is refused; it is let in again when it is started anew

${CONNECTION_HELP}
list and show need the role viewer, remove needs the role operator.

exit codes: 0 done; 64 wrong use; 69 there is no agent of that name, no leader, or no server answers; 75 it may have been done:
look with list; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md)
`;

export type AgentStep =
  | { readonly verb: "list" }
  | { readonly verb: "show"; readonly name: string }
  | { readonly verb: "remove"; readonly name: string };

export interface AgentFlags {
  readonly step: AgentStep;
  readonly connection: ConnectionValues;
}

export function readAgentFlags(args: readonly string[]): AgentFlags | "help" {
  const { values, words: before, rest } = parseFlags(withLongOutput(args), CONNECTION_KINDS);
  if (values.help !== undefined) return "help";
  const words = [...before, ...(rest ?? [])];
  const verb = chosen(words[0], VERBS);
  if (verb !== "list") return { step: { verb, name: oneName("agent", words) }, connection: values };
  noName(words);
  return { step: { verb }, connection: values };
}
