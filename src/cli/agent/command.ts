// `tenure agent list|show|drain|remove`: the agents of Tenure's servers, seen, and taken out of service. `start` is in
// start.ts.

import { AGENT } from "./help.ts";
import type { Client, JobBrief } from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { readAgentFlags } from "./flags.ts";
import { agentDetails, agentObject, agentsTable, agentText } from "./view.ts";
import { clientOf, FRESH, readConnection } from "../connection/connection.ts";
import { listText } from "../kit/list-output.ts";
import { json, LIST_OUTPUTS, OUTPUTS, printable } from "../kit/output.ts";
import { named } from "../kit/words.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

export async function agent(args: readonly string[]): Promise<number> {
  // Loaded for whoever runs one: the others only ask.
  if (args[0] === "start") return await (await import("./start.ts")).agentStart(args.slice(1));
  const flags = readAgentFlags(args);
  if (flags === "help") return printed(AGENT.help);
  const { step } = flags;
  const connection = await readConnection(flags.connection, process.env, step.verb === "list" ? LIST_OUTPUTS : OUTPUTS);
  const client = clientOf(connection);
  const isJson = connection.output === "json";
  switch (step.verb) {
    case "list": {
      const agents = await client.agents(FRESH);
      const text = listText(connection.output, "agents", agents.map(agentObject), () =>
        agentsTable(agents, stdoutPaint()),
      );
      return printed(text);
    }
    case "show": {
      const one = named("agent", step.name, await client.agents(FRESH));
      const held = await heldBy(client, one.name);
      return printed(isJson ? json(agentDetails(one, held)) : agentText(one, held));
    }
    case "drain":
      await client.drainAgent(step.name, !step.undo);
      return printed(
        isJson ? json({ name: step.name, draining: !step.undo }) : drainedText(printable(step.name), step.undo),
      );
    case "remove":
      await client.removeAgent(step.name);
      return printed(
        isJson
          ? json({ name: step.name })
          : `${printable(step.name)} is removed; the jobs that it held are lost to it, and go to others\n`,
      );
    default:
      return assertNever(step, "agent");
  }
}

function drainedText(name: string, isUndone: boolean): string {
  return isUndone
    ? `${name} is given jobs again\n`
    : `${name} drains: it is given no new jobs, and what it runs goes on (\`tenure agent show ${name}\` says what is left)\n`;
}

/** As many as its capacity at most. */
async function heldBy(client: Client, name: string): Promise<JobBrief[]> {
  const query = { ...FRESH, agent: name, states: ["assigned", "building", "cancelling"] } as const;
  const held: JobBrief[] = [];
  for await (const job of client.jobs(query)) held.push(job);
  return held;
}
