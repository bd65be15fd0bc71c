// Why a job waits: the first reason that holds, from what a person decided to what nobody can help.

import type { DecideContext } from "../commands.ts";
import type { PendingReason } from "../model.ts";
import type { AgentRecord, JobRecord } from "../state/records.ts";

export interface Surroundings {
  readonly isPaused: (queue: string) => boolean;
  readonly runningWith: (key: string) => number;
  readonly runningAt: (agent: string) => number;
  readonly agents: Iterable<AgentRecord>;
}

export function whyPending(
  { ticket, readyAtMs }: JobRecord,
  { nowMs, wallMs }: Pick<DecideContext, "nowMs" | "wallMs">,
  isDraining: boolean,
  { isPaused, runningWith, runningAt, agents }: Surroundings,
): PendingReason {
  const { class: one, concurrencyKey: key, concurrencyLimit: limit } = ticket;
  if (isPaused(one.queue)) return { reason: "paused", queue: one.queue };
  if (readyAtMs > (ticket.notBeforeMs === readyAtMs ? wallMs : nowMs)) return { reason: "not-before", readyAtMs };
  if (key !== null && runningWith(key) >= limit) return { reason: "concurrency", key, limit };
  let fitting = 0;
  let isIdle = false;
  /** Of the agent that comes closest, as far as can be told: one of this kind lacks less than one of another. */
  let missing: string | null = null;
  for (const { info, state, isDraining: isDrained } of agents) {
    if (state !== "online") continue;
    const lacks = one.missingAt(info) ?? (isDrained ? "an agent that is not draining" : null);
    if (lacks === null) {
      fitting++;
      isIdle ||= runningAt(info.name) < info.capacity;
    } else if (missing === null || info.kinds.includes(one.kind)) missing = lacks;
  }
  if (fitting === 0) return { reason: "no-agent", kind: one.kind, missing: missing ?? "any agent" };
  if (!isIdle) return { reason: "agents-busy", agents: fitting };
  return isDraining ? { reason: "draining" } : { reason: "next" };
}
