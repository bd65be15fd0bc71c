// Agents as they are printed: a row or a page for people, an object for programs. Pure; the fields of the objects are
// documented in docs/reference/cli.md, and a test compares.

import type { AgentView, JobBrief } from "../../client/index.ts";
import { type Paint, paintState, PLAIN } from "../kit/colour.ts";
import { columns, isoTime, printable, table } from "../kit/output.ts";

export function agentObject(agent: AgentView) {
  const { name, state, kinds, labels, platform, capacity, running, session, epoch = null, owner = null } = agent;
  const registered_at = isoTime(agent.registeredAtMs);
  return { name, state, kinds, labels, platform, capacity, running, session, epoch, owner, registered_at };
}

export function agentsTable(agents: readonly AgentView[], paint: Paint = PLAIN): string {
  const rows = agents.map(({ name, state, running, capacity, platform, kinds, labels, registeredAtMs }) => [
    printable(name),
    paintState(state, paint),
    `${running}/${capacity}`,
    printable(platform),
    isoTime(registeredAtMs),
    printable(kinds.join(",")),
    printable(labelsText(labels)),
  ]);
  const head = ["NAME", "STATE", "RUNS", "PLATFORM", "REGISTERED", "KINDS", "LABELS"];
  return table(head, rows, paint);
}

export function agentDetails(agent: AgentView, held: readonly JobBrief[]) {
  return { ...agentObject(agent), jobs: held.map(({ id, kind, state }) => ({ id, kind, state })) };
}

export function agentText(agent: AgentView, held: readonly JobBrief[]): string {
  const { name, state, kinds, labels, platform, capacity, running, session, epoch, owner, registeredAtMs } = agent;
  const rows = [
    ["name", name],
    ["state", state],
    ["kinds", kinds.join(", ")],
    ["labels", labelsText(labels)],
    ["platform", platform],
    ["runs", `${running} of ${capacity} at once`],
    ["session", session],
    ["epoch", String(epoch ?? "-")],
    ["owner", owner ?? "-"],
    ["registered", isoTime(registeredAtMs)],
    ...held.map((job) => ["job", `${job.id} ${job.kind} ${job.state}`]),
  ];
  return columns(rows.map((row) => row.map(printable)));
}

/** `zone=a,disk=ssd`; what has none is a dash. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "-" : pairs.join(",");
}
