// A transfer of leadership as its target sees it: which one it was notified of last, and the answer that nothing came of it.

import type { PeerKey } from "../kit/ids.ts";
import type { ServerState } from "./state.ts";

export class TransferTarget {
  readonly #state: Readonly<ServerState>;
  #attempt = 0;

  constructor(state: Readonly<ServerState>) {
    this.#state = state;
  }

  /** `isAsking`: it asks the others already, for an earlier one, and their answer is also the one to this. */
  told(attempt: number, isAsking: boolean): void {
    this.#attempt = isAsking ? Math.max(this.#attempt, attempt) : attempt;
  }

  refuse(leader: PeerKey): void {
    this.#state.send({ ...this.#state.head("MsgTransferRefused", leader), attempt: this.#attempt });
  }
}
