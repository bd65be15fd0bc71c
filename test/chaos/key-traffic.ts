// Clients with replicated keys, all along a chaos run: a key is made, and from the moment in which that is confirmed it is
// shown to every node, by the SDK with each node first in its list and to each node alone. Nodes are wiped, join and lag
// meanwhile. That a node can't say (503), or does not answer, is no harm; that it refuses a valid key is a violation.

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/kit/random.ts";
import { createClient, TenureError } from "../../src/entry/client.ts";

export interface KeyTrafficOptions {
  /** Of every node that clients have in their lists, also of those that do not run yet. */
  readonly urls: readonly string[];
  readonly random: Random;
  /** Makes one of the role viewer: resolves with it when that is confirmed, null where it was not. */
  readonly make: () => Promise<string | null>;
  /** It is not used any more. */
  readonly done?: ((key: string) => Promise<void>) | undefined;
}

export interface KeyCounts {
  /** Keys that were made. */
  readonly made: number;
  /** Calls with them that were answered. */
  readonly calls: number;
  /** Answers of nodes that could not say whether a key is valid. */
  readonly unsure: number;
}

const LOOPS = 2;
const THINK_MS = { min: 20, max: 120 };
const CALL_MS_MAX = 1_500;
const FINDINGS_MAX = 5;

export class KeyTraffic {
  /** Valid keys that were refused. */
  readonly refusals: string[] = [];
  readonly #options: KeyTrafficOptions;
  readonly #counts = { made: 0, calls: 0, unsure: 0 };
  readonly #loops: Promise<void>[];
  #isStopped = false;

  constructor(options: KeyTrafficOptions) {
    this.#options = options;
    this.#loops = Array.from({ length: LOOPS }, (_, at) => this.#loop(options.random.fork(`keys ${at}`)));
  }

  get counts(): KeyCounts {
    return this.#counts;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(random: Random): Promise<void> {
    const { make, done } = this.#options;
    while (!this.#isStopped) {
      await sleep(random.between(THINK_MS.min, THINK_MS.max));
      const key = await make().catch(() => null);
      if (key === null) continue;
      this.#counts.made++;
      await this.#show(key, random);
      await done?.(key).catch(() => undefined);
    }
  }

  async #show(key: string, random: Random): Promise<void> {
    const { urls } = this.#options;
    const first = random.below(urls.length);
    const list = [...urls.slice(first), ...urls.slice(0, first)];
    const client = createClient({ urls: list, key, timeoutMs: CALL_MS_MAX });
    const [, , nodes] = await Promise.all([
      this.#called("leader()", client.leader()),
      this.#called("cluster()", client.cluster()),
      client.nodes({ timeoutMs: CALL_MS_MAX }),
    ]);
    for (const { url, code, why, view } of nodes) {
      if (view !== null) this.#counts.calls++;
      if (code === "CALLER_UNCONFIRMED") this.#counts.unsure++;
      if (code === "UNAUTHENTICATED") this.#refused(`${url}: ${why}`);
    }
  }

  async #called(what: string, call: Promise<unknown>): Promise<void> {
    try {
      await call;
      this.#counts.calls++;
    } catch (error) {
      // Whatever else it is, it is what a fault does to a call.
      if (TenureError.is(error) && error.code === "UNAUTHENTICATED") this.#refused(`${what}: ${error.message}`);
    }
  }

  #refused(why: string): void {
    if (this.refusals.length < FINDINGS_MAX) this.refusals.push(`a valid key was refused: ${why}`);
  }
}
