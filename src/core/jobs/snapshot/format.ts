// What the writer and the reader of a snapshot share. Lists are by number in the bytes: add at their ends only.

import { ATTEMPT_ENDS, JOB_STATES } from "../model.ts";
import type { AgentRecord, Reported } from "../state/records.ts";

export const MAGIC = 0x4a;
export const SNAPSHOT_VERSION = 2;
/** Of version 1 no run has the number of its call; all else is the same. */
export const SNAPSHOT_VERSION_OLDEST = 1;
/** Priorities may be negative; integers in the bytes may not. */
export const PRIORITY_OFFSET = 2 ** 31;

export const STATES = JOB_STATES;
export const ENDS = ATTEMPT_ENDS;
export const REPORTS: readonly (Reported | null)[] = [null, "completed", "failed", "cancelled", "handed-back"];
export const AGENT_STATES: readonly AgentRecord["state"][] = ["online", "offline", "removed"];

/** In an agent's text, where it is so: whoever does not know one of these reads the agent all the same. */
export interface AgentExtras {
  readonly draining?: true;
  readonly epoch?: number;
  readonly owner?: string;
}

export function agentExtras({ isDraining, epoch, owner }: AgentRecord): AgentExtras {
  return {
    ...(isDraining && { draining: true }),
    ...(epoch > 0 && { epoch }),
    ...(owner !== null && { owner }),
  };
}

/**
 * A jump of the events' clock stands among the idempotency keys, before them, under an id that no request has: whoever does
 * not know of it reads a key that nobody asks for. The command is SKIP, `jobIds` is by how much.
 */
export const SKIP = "clock-skipped";

/**
 * How far jobs of transactions were delivered (state/deliveries.ts) stands among the idempotency keys too, after all of them, where there is
 * such a pair: a snapshot without one has the bytes that it always had. `bodyHash` is the pair. Its time and its sequence are the last ones
 * that there can be, and it names no job: a release that does not know of it keeps it as a key that is never old, and that costs less than any other,
 * so it goes neither by age nor for want of room, and is written again.
 */
export const DELIVERED = "delivered";
/** Only one of these is read as it: the form is exact. */
export const DELIVERED_PAIR = /^(0|[1-9][0-9]*)\/(0|[1-9][0-9]*)$/;

export const FLAG = {
  notBefore: 1,
  concurrency: 2,
  schedule: 4,
  readyAt: 8,
  history: 16,
  run: 32,
  progress: 64,
  finished: 128,
  result: 256,
  error: 512,
  poll: 1024,
} as const;
