// Proofs that this node still leads, for many at once: a read of the Raft index that starts after everybody in the batch has
// asked, and that a majority has answered. While one is under way the next batch gathers, so there is one at a time however
// many ask. Each leadership has its own: a read that hangs in one must not keep those of the next waiting.

import { CONFIRM_WAIT_MS } from "../../core/kit/timeouts.ts";
import type { Lead } from "../../ports/consensus.ts";
import { CONFIRMATIONS_PENDING_MAX } from "./limits.ts";

export class Confirmations {
  readonly #consensus: Pick<Lead, "readIndex">;
  #waiting: ((confirmed: boolean) => void)[] = [];
  /** Those whose read is under way. */
  #asking: ((confirmed: boolean) => void)[] = [];
  #running = false;
  #isClosed = false;

  constructor(consensus: Pick<Lead, "readIndex">) {
    this.#consensus = consensus;
  }

  get isFull(): boolean {
    return this.#waiting.length + this.#asking.length >= CONFIRMATIONS_PENDING_MAX;
  }

  /** True: a majority took this node for its leader at some time after this call. */
  ask(): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    return new Promise((settle) => {
      this.#waiting.push(settle);
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      // Whoever asks in the same turn shares the read.
      await Promise.resolve();
      this.#asking = this.#waiting;
      this.#waiting = [];
      const confirmed = await this.#read();
      this.#answer(confirmed);
    }
    this.#running = false;
  }

  /** The leadership is over: nobody waits for a read any more. */
  close(): void {
    this.#isClosed = true;
    this.#asking.push(...this.#waiting.splice(0));
    this.#answer(false);
  }

  #answer(confirmed: boolean): void {
    const answered = this.#asking;
    this.#asking = [];
    for (const settle of answered) settle(confirmed);
  }

  async #read(): Promise<boolean> {
    try {
      return (await this.#consensus.readIndex(CONFIRM_WAIT_MS)) !== null;
    } catch {
      return false;
    }
  }
}
