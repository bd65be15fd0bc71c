// `tenure agent start`: flags and environment put together, and the agent run (run.ts).

import { START_HELP } from "./help.ts";
import { hostname } from "node:os";
import { AGENT_NAME_LETTERS_MAX } from "./limits.ts";
import { runAgent } from "./run.ts";
import { readAgentStartFlags } from "./start-flags.ts";
import { type Connection, readConnection, renewableClientOf } from "../connection/connection.ts";
import { UsageError } from "../kit/flags.ts";
import { printed } from "../kit/print.ts";

export async function agentStart(args: readonly string[]): Promise<number> {
  const flags = readAgentStartFlags(args, process.env);
  if (flags === "help") return printed(START_HELP);
  if (process.platform === "win32")
    throw new UsageError("start needs process groups and signals, which Windows does not have");
  const { connection, name, ...options } = flags;
  const first = await readConnection(connection, process.env);
  let latest: Connection = first;
  const client = renewableClientOf(first, () => latest);
  const reload = async (): Promise<void> => {
    latest = await readConnection(connection, process.env);
  };
  return await runAgent({ ...options, client, reload, name: name ?? `${hostName()}-${process.pid}` });
}

/** As far as an agent's name may have it. */
function hostName(): string {
  const name = hostname()
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "");
  return name === "" ? "agent" : name.slice(0, AGENT_NAME_LETTERS_MAX);
}
