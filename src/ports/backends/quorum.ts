// The way to the transaction coordinators, from inside of one: this node's own place among those that elect their leader. There is one scope, and the
// leader is a node. The lease, its votes and its renewals belong to the coordinator; who uses it, and when, to the elector.

import type { Instant } from "../../core/trust/window.ts";
import type { Leader } from "../elector.ts";

export interface Quorum {
  /** The node id: it leads under this name, whoever asked for it. */
  readonly identity: string;
  /** What observers know of this node besides. */
  readonly metadata: Readonly<Record<string, string>>;
  /** This node's own leadership, from the opening of its gate to its end. */
  readonly held: HeldQuorum | null;
  /** Whoever leads, as this node's own voter knows. */
  readonly leader: ObservedLeader | null;
  /** True: this node campaigns, at once. False: it does not, and gives up a leadership that it has, or is about to have. */
  want(isWanted: boolean): void;
  /** Gives up the leadership of this epoch. False: no majority has confirmed that. */
  release(epoch: number): Promise<boolean>;
  /** Called after each change of what is above, but for time that passes. Returns the way to stop it. */
  onChange(listener: () => void): () => void;
}

export interface HeldQuorum {
  /** The lease's term. */
  readonly epoch: number;
  /** When the requests left with whose answers a majority has proved the hold last (trap 44). */
  readonly provedAt: Instant;
}

export interface ObservedLeader extends Leader {
  /** Until then at most, of the monotonic clock, unless it renews. */
  readonly untilMs: number;
}
