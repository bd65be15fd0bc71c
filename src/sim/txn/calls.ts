// Calls of one island to another, over the simulated network: to the island's leader, among its registered endpoints only. One that says that it does
// not lead, or does not answer, is followed by the next one, until the time is over.

import type { BackendHash, TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import { pause } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { IslandCalls } from "../../ports/transactions.ts";
import type { Heard } from "./transport.ts";
import { TXN_SIM_TRY_MS, TXN_SIM_REST_MS } from "./limits.ts";

export interface IslandCallsOptions {
  readonly entries: () => readonly { readonly backendHash: BackendHash; readonly endpoint: string }[];
  readonly ask: (
    endpoint: string,
    target: BackendHash,
    request: TxnRequest,
    withinMs: number,
  ) => Promise<Heard<TxnAnswer>>;
  readonly clock: Clock;
}

export class SimIslandCalls implements IslandCalls {
  readonly #options: IslandCallsOptions;
  /** Where the last answer came from. */
  readonly #leaders = new Map<BackendHash, string>();

  constructor(options: IslandCallsOptions) {
    this.#options = options;
  }

  islands(): readonly BackendHash[] {
    return [...new Set(this.#options.entries().map(({ backendHash }) => backendHash))].toSorted();
  }

  async isHeard(target: BackendHash, withinMs: number): Promise<boolean | null> {
    const { entries, ask } = this.#options;
    const there = entries().filter(({ backendHash }) => backendHash === target);
    const nothing = { kind: "settled", from: target, ids: [] } as const;
    const heard = await Promise.all(there.map(({ endpoint }) => ask(endpoint, target, nothing, withinMs)));
    return heard.some((one) => one !== null);
  }

  async call(target: BackendHash, request: TxnRequest, withinMs: number): Promise<TxnAnswer | null> {
    const { clock, entries, ask } = this.#options;
    const untilMs = clock.monotonicMs() + withinMs;
    for (let tried = 0; ; tried++) {
      const endpoints = entries().flatMap(({ backendHash, endpoint }) => (backendHash === target ? [endpoint] : []));
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) return null;
      const first = this.#leaders.get(target);
      const ordered =
        first !== undefined && endpoints.includes(first)
          ? [first, ...endpoints.filter((one) => one !== first)]
          : endpoints;
      const endpoint = ordered[tried % Math.max(1, ordered.length)];
      if (endpoint === undefined) {
        await pause(clock, Math.min(TXN_SIM_REST_MS, leftMs));
        continue;
      }
      const heard = await ask(
        endpoint,
        target,
        request,
        Math.min(leftMs, ordered.length > 1 ? TXN_SIM_TRY_MS : withinMs),
      );
      if (heard?.ok === true) {
        this.#leaders.set(target, endpoint);
        return heard.value;
      }
      await pause(clock, Math.min(TXN_SIM_REST_MS, Math.max(0, untilMs - clock.monotonicMs())));
    }
  }
}
