// A quorum that a test plays by hand: whoever leads, since when, and what a release came to.

import type { Claim } from "../../ports/backends/backend.ts";
import type { HeldQuorum, ObservedLeader, Quorum } from "../../ports/backends/quorum.ts";
import { claimOn, HandClock } from "../test-seat.ts";
import { quorumBackend } from "./index.ts";
import type { QuorumSeat } from "./seat.ts";

export class HandQuorum implements Quorum {
  readonly clock = new HandClock();
  readonly identity = "me";
  readonly metadata = { endpoint: "https://me" };
  readonly asked: string[] = [];
  readonly backend = quorumBackend("tc", this);
  held: HeldQuorum | null = null;
  leader: ObservedLeader | null = null;
  isConfirmed = true;
  readonly #listeners = new Set<() => void>();

  want(isWanted: boolean): void {
    this.asked.push(isWanted ? "want" : "unwant");
    // As a coordinator does: what it has is given up at once.
    if (!isWanted) this.lead(null);
  }

  release(epoch: number): Promise<boolean> {
    this.asked.push(`release ${epoch}`);
    this.lead(null);
    return Promise.resolve(this.isConfirmed);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** In this epoch, proved now. */
  lead(epoch: number | null): void {
    this.held = epoch === null ? null : { epoch, provedAt: this.clock.now };
    this.changed();
  }

  observe(epoch: number | null, untilMs = Infinity): void {
    this.leader = epoch === null ? null : { epoch, identity: "other", metadata: {}, untilMs };
    this.changed();
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  sit(claim: Partial<Claim> = {}) {
    const { claim: common, losses } = claimOn(this.clock, "tc");
    return { seat: this.backend.seat({ ...common, ...claim }) as QuorumSeat, losses };
  }
}
