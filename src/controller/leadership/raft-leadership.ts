// Leadership by the servers' own consensus, for those who act on it.

import type { Lead } from "../../ports/consensus.ts";
import type { GivenLeadership } from "./cleared-leadership.ts";
import { Confirmations } from "./confirmations.ts";

export class RaftLeadership implements GivenLeadership {
  readonly #consensus: Pick<Lead, "status" | "readIndex" | "subscribe">;
  readonly #stop: () => void;
  readonly #listeners = new Set<() => void>();
  /** Of one term: a read that hangs in one must not keep those of the next waiting. */
  #confirmations: { readonly epoch: number; readonly asked: Confirmations } | null = null;

  constructor(consensus: Pick<Lead, "status" | "readIndex" | "subscribe">) {
    this.#consensus = consensus;
    this.#stop = consensus.subscribe((event) => {
      if (event.kind !== "role" && event.kind !== "established" && event.kind !== "transfer") return;
      if (this.#confirmations !== null && this.epoch() !== this.#confirmations.epoch) this.#endTerm();
      for (const listener of this.#listeners) listener();
    });
  }

  epoch(): number | null {
    const { role, term, established } = this.#consensus.status();
    return role === "leader" && established ? term : null;
  }

  held(): number | null {
    return this.epoch();
  }

  isTurningOver(): boolean {
    const { role, established, transfer } = this.#consensus.status();
    return transfer === "handing-over" || transfer === "awaiting" || (role === "leader" && !established);
  }

  async confirm(): Promise<boolean> {
    const epoch = this.epoch();
    if (epoch === null) return false;
    if (this.#confirmations?.epoch !== epoch) {
      this.#endTerm();
      this.#confirmations = { epoch, asked: new Confirmations(this.#consensus) };
    }
    const { asked } = this.#confirmations;
    if (asked.isFull) return false;
    return (await asked.ask()) && this.epoch() === epoch;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#stop();
    this.#endTerm();
  }

  #endTerm(): void {
    this.#confirmations?.asked.close();
    this.#confirmations = null;
  }
}
