// How every kind of `chaos jobs` begins and ends: a stage with agents, which end whatever happens; and the verdict, in which every server is
// read, the servers are compared, and what clients and agents saw is compared with the log.

import { join } from "node:path";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { writePlant } from "../servers/planted.ts";
import { Agents, type AgentsOptions } from "./jobs-agents.ts";
import { auditNodes, compareNodes, type NodeAudit } from "./jobs-audit.ts";
import type { GhostTold } from "./jobs-ghosts.ts";
import { judge, type JobEvent, type Judgement } from "./jobs-judge.ts";
import { type JobsBackend, type JobsStage, startJobsStage } from "./jobs-stage.ts";
import type { AgentLine } from "./jobs-journal.ts";
import { within } from "./jobs-phases.ts";
import type { Submission } from "./jobs-submitters.ts";

const READ_MS_MAX = 180_000;

export interface Staging extends Pick<AgentsOptions, "places" | "agentsPerPlace" | "capacity" | "leaseMs"> {
  readonly backend: JobsBackend;
  /** Planted into every server, and into every agent. */
  readonly serverEdits?: readonly Edit[] | undefined;
  readonly agentEdits?: readonly Edit[] | undefined;
}

export async function onStage<T>(
  { backend, serverEdits, agentEdits, ...agency }: Staging,
  play: (stage: JobsStage, agents: Agents) => Promise<T>,
): Promise<T> {
  const stage = await startJobsStage({ backend, edits: serverEdits });
  try {
    const { directory } = stage.cluster;
    const nodeFlags = writePlant(join(directory, "agent-plant.mjs"), agentEdits ?? []);
    const agents = new Agents({ directory, urls: stage.urls, key: stage.key, nodeFlags, ...agency });
    try {
      return await play(stage, agents);
    } finally {
      await agents.kill();
    }
  } finally {
    await stage.end();
  }
}

export interface Verdict {
  readonly judgement: Omit<Judgement, "findings">;
  readonly events: readonly JobEvent[];
  readonly lines: readonly AgentLine[];
  readonly findings: readonly string[];
}

/** Once the agents have ended: what is read must not change any more. */
export async function verdictOn(
  stage: JobsStage,
  agents: Agents,
  { submissions, ghosts = [] }: { readonly submissions: readonly Submission[]; readonly ghosts?: readonly GhostTold[] },
): Promise<Verdict> {
  const found: string[] = [];
  let audits: readonly NodeAudit[] = [];
  try {
    audits = await within("every server is read", READ_MS_MAX, async (ms) => {
      await stage.cluster.steady(ms);
      return await auditNodes(stage.nodes);
    });
    found.push(...compareNodes(audits));
  } catch (error) {
    found.push(`the servers could not be read: ${(error as Error).message}`);
  }
  found.push(...new Set([...stage.crashes, ...agents.crashes()]));
  const events = audits[0]?.events ?? [];
  const lines = agents.lines();
  const { findings, ...judgement } = judge({ submissions, lines, ghosts, events });
  return { judgement, events, lines, findings: [...found, ...findings] };
}
