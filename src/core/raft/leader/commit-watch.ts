// Whether what a leader appends is still being committed. A majority may answer its heartbeats and yet write nothing, where
// disks hang or are full: a quorum that can't write is none (trap 30, for the followers). Then it steps down, and whoever
// waits is notified that the outcome is unknown: another leader may yet commit it.

import { COMMIT_STALL_TIMEOUTS } from "../../kit/limits.ts";
import type { ServerState } from "../state.ts";

export class CommitWatch {
  readonly #state: Readonly<ServerState>;
  #commit = 0;
  #movedMs: number;

  constructor(state: Readonly<ServerState>) {
    this.#state = state;
    this.#movedMs = state.nowMs;
  }

  /** Asked at every step: the time counts from when something first waited. */
  get isStalled(): boolean {
    const { nowMs, log, config } = this.#state;
    if (log.commit !== this.#commit || log.commit === log.lastIndex) {
      this.#commit = log.commit;
      this.#movedMs = nowMs;
    }
    return nowMs - this.#movedMs >= COMMIT_STALL_TIMEOUTS * config.electionTimeoutMaxMs;
  }
}
