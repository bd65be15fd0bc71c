// Whether a key that this node does not know is unknown to the cluster too: this node catches up with everything that was
// committed when the key was shown, and then looks again.
//
//   asked ─▶ waiting ─(one round for all that wait)─▶ caught up | CALLER_UNCONFIRMED
//
// Invariants: a round begins after everybody in it has asked, so what was created before is found. One round is under way at a
// time and rounds keep a distance, so wrong keys cost the leader a few small messages a second, however many are tried. A
// negative answer is not kept: the key may have been made since, and this node may not have heard of it.

import type { Clock } from "../../ports/clock.ts";
import type { Cluster } from "../../ports/cluster.ts";
import type { ApiLimits } from "../options.ts";
import { pause } from "../../loops/time.ts";
import { Refusal } from "../refusal.ts";

export class KeyRounds {
  readonly #cluster: Pick<Cluster, "view" | "catchUp">;
  readonly #clock: Clock;
  readonly #nodeId: string;
  readonly #limits: Pick<ApiLimits, "keyCatchUpTimeoutMs" | "keyRoundEveryMs" | "keyWaitersMax">;
  #waiting: ((isCaughtUp: boolean) => void)[] = [];
  #asking = 0;
  #isRunning = false;
  #beganMs = Number.NEGATIVE_INFINITY;

  constructor(
    { cluster, clock, nodeId }: { readonly cluster: Cluster; readonly clock: Clock; readonly nodeId: string },
    limits: ApiLimits,
  ) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#nodeId = nodeId;
    this.#limits = limits;
  }

  /** Everything that was committed before this call is applied here when it resolves. Throws CALLER_UNCONFIRMED, OVERLOADED. */
  async next(): Promise<void> {
    const { isReady, notReadyReason } = this.#cluster.view();
    // It would ask for nothing: what it lacks is more than a moment's.
    if (!isReady) throw this.#unconfirmed(notReadyReason ?? "has not caught up with the cluster yet");
    if (this.#waiting.length + this.#asking >= this.#limits.keyWaitersMax) {
      const text = `More than ${this.#limits.keyWaitersMax} requests with keys that node ${this.#nodeId} does not know wait for an answer. Retry later.`;
      throw new Refusal("OVERLOADED", text);
    }
    const isCaughtUp = await new Promise<boolean>((settle) => {
      this.#waiting.push(settle);
      if (!this.#isRunning) void this.#run();
    });
    if (!isCaughtUp) throw this.#unconfirmed("no leader has confirmed in time that it knows all of them");
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      const tooSoonMs = this.#beganMs + this.#limits.keyRoundEveryMs - this.#clock.monotonicMs();
      if (tooSoonMs > 0) await pause(this.#clock, tooSoonMs);
      this.#beganMs = this.#clock.monotonicMs();
      const asking = this.#waiting;
      this.#waiting = [];
      this.#asking = asking.length;
      const isCaughtUp = await this.#cluster.catchUp(this.#limits.keyCatchUpTimeoutMs).catch(() => false);
      this.#asking = 0;
      for (const settle of asking) settle(isCaughtUp);
    }
    this.#isRunning = false;
  }

  #unconfirmed(why: string): Refusal {
    return new Refusal(
      "CALLER_UNCONFIRMED",
      `Node ${this.#nodeId} can't say whether the X-API-Key is one of the cluster's: it ${why}. Retry, or send the request to another node.`,
      { node_id: this.#nodeId },
    );
  }
}
