// Whether a server leads by its own consensus, as everybody but the engine sees it, and how it hands over.

import type { Clearance } from "../../ports/clearance.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Lead } from "../../ports/consensus.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Logger } from "../../ports/logger.ts";
import { ClearedLeadership } from "./cleared-leadership.ts";
import { giveUp, handOver, type HandOverOptions } from "./hand-over.ts";
import { RaftLeadership } from "./raft-leadership.ts";

export interface Leading {
  readonly leadership: Leadership;
  /** A worker may run on this node. */
  readonly mayWork: boolean;
  readonly transfer: Lead["transfer"];
  close(): void;
}

export interface LeadingOptions {
  readonly consensus: HandOverOptions["consensus"] & Lead;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly worker?: (Pick<HandOverOptions, "empty"> & { readonly clearance: Clearance }) | undefined;
}

export function raftLeading({ consensus, clock, logger, worker }: LeadingOptions): Leading {
  const given = new RaftLeadership(consensus);
  const close = (): void => given.close();
  if (worker === undefined) {
    return { leadership: given, mayWork: false, transfer: consensus.transfer.bind(consensus), close };
  }
  const { clearance, empty } = worker;
  const around = { consensus, clock, empty };
  const cleared = { given, clearance, clock, logger, giveUp: (epoch: number) => void giveUp(around, epoch) };
  const leadership = new ClearedLeadership(cleared);
  leadership.start();
  return { leadership, mayWork: true, transfer: (target, force) => handOver(around, target, force), close };
}
