// `tenure tc`: an island among transaction coordinators. What is asked of servers is in show.ts, membership.ts and registry.ts; what is done to a
// stopped node's data directory in offline.ts.

import { assertNever } from "../../contract/errors.ts";
import { readConnection } from "../connection/connection.ts";
import { CONNECTION_KINDS, type ConnectionFlag } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { OUTPUTS, withLongOutput } from "../kit/output.ts";
import { printed } from "../kit/print.ts";
import { chosen, noName } from "../kit/words.ts";
import { TC } from "./help.ts";
import { announce, leave } from "./membership.ts";
import { offline } from "./offline.ts";
import { type RegistryStep, registryStep, runRegistry } from "./registry.ts";
import { showLeader, showMembers } from "./show.ts";

const VERBS = verbsOf(TC);
const KINDS = { ...CONNECTION_KINDS, ...kindsOf(TC) };
/** Of verbs for a stopped node: no server is asked. */
const OFFLINE = ["found", "discard", "recover"] as const;

type Values = Partial<Record<keyof typeof KINDS, string>>;

export type TcStep =
  | { readonly verb: "list" | "leader" | "announce" | "leave" }
  | { readonly verb: "rm"; readonly step: RegistryStep }
  | { readonly verb: (typeof OFFLINE)[number]; readonly isForced: boolean; readonly config: string | undefined };

export async function tc(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return printed(TC.help);
  const step = readStep([...words, ...(rest ?? [])], values);
  if (isOffline(step)) return await offline(step, oneOf("-o", values.output ?? "table", OUTPUTS));
  const connection = await readConnection(values, process.env);
  switch (step.verb) {
    case "list":
      return await showMembers(connection);
    case "leader":
      return await showLeader(connection);
    case "announce":
      return await announce(connection);
    case "leave":
      return await leave(connection);
    case "rm":
      return await runRegistry(connection, step.step);
    default:
      return assertNever(step, "tc");
  }
}

export function readStep(words: readonly string[], values: Values): TcStep {
  const verb = chosen(words[0], VERBS);
  if (verb === "rm") {
    refuse(verb, values, ["config", "force"]);
    return { verb, step: registryStep(words.slice(1)) };
  }
  noName(words);
  if (verb === "found" || verb === "discard" || verb === "recover") {
    refuse(verb, values, ASKING);
    return { verb, isForced: values.force !== undefined, config: values.config };
  }
  refuse(verb, values, ["config", "force"]);
  return { verb };
}

const ASKING = ["url", "key", "ca", "cert", "client-key"] as const satisfies readonly ConnectionFlag[];

function refuse(verb: string, values: Values, flags: readonly (keyof Values)[]): void {
  const stray = flags.find((flag) => values[flag] !== undefined);
  if (stray === undefined) return;
  if (stray === "config" || stray === "force") {
    throw new UsageError(`--${stray} belongs to ${OFFLINE.join(", ")}, not to ${verb}`);
  }
  throw new UsageError(`--${stray} is for verbs that ask servers, and ${verb} is for a node that is stopped`);
}

function isOffline(step: TcStep): step is Extract<TcStep, { readonly isForced: boolean }> {
  return "isForced" in step;
}
