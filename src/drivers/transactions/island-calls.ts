// Calls to islands by their backend hash, over the connections of the coordinators.

import type { Random } from "../../core/kit/random.ts";
import type { RegistryEntries } from "../../core/lease/model.ts";
import type { BackendHash, TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import type { Clock } from "../../ports/clock.ts";
import type { IslandCalls, TxnParticipant } from "../../ports/transactions.ts";
import type { TcHttp } from "../coordinators/index.ts";
import { Lane, OWN } from "./lane.ts";

export interface HttpIslandCallsOptions {
  readonly http: Pick<TcHttp, "exchange">;
  /** As this node shows it. */
  readonly registry: () => RegistryEntries;
  /** This node's own island: where this node leads it, nothing goes over HTTP. */
  readonly own: Pick<TxnParticipant, "backendHash" | "answer">;
  /** Of this node, as it registers itself. */
  readonly ownEndpoint: string;
  readonly clock: Pick<Clock, "monotonicMs" | "setTimer">;
  readonly random: Random;
  /** Calls back when everything else that is due now has had its turn. */
  readonly nextTurn?: ((begin: () => void) => void) | undefined;
}

type Endpoints = ReadonlyMap<BackendHash, readonly string[]>;

export class HttpIslandCalls implements IslandCalls {
  readonly #options: HttpIslandCallsOptions;
  readonly #lanes = new Map<BackendHash, Lane>();
  /** Of the registry that was shown last. */
  #entries: RegistryEntries | null = null;
  #endpoints: Endpoints = new Map();
  #islands: readonly BackendHash[] = [];
  #isClosed = false;

  constructor(options: HttpIslandCallsOptions) {
    this.#options = options;
  }

  islands(): readonly BackendHash[] {
    this.#look();
    return this.#islands;
  }

  call(target: BackendHash, request: TxnRequest, withinMs: number): Promise<TxnAnswer | null> {
    this.#look();
    const isKnown = this.#endpoints.has(target) || target === this.#options.own.backendHash;
    if (this.#isClosed || !isKnown) return Promise.resolve(null);
    return this.#laneOf(target).call(request, withinMs);
  }

  async isHeard(target: BackendHash, withinMs: number): Promise<boolean | null> {
    this.#look();
    if (this.#isClosed || !this.#endpoints.has(this.#options.own.backendHash)) return null;
    const endpoints = this.#endpoints.get(target) ?? [];
    const asked = endpoints.map((endpoint) => this.#isThere(target, endpoint, withinMs));
    return (await Promise.all(asked)).includes(true);
  }

  /** What is under way is answered with null. */
  close(): void {
    this.#isClosed = true;
    for (const lane of this.#lanes.values()) lane.close();
    this.#lanes.clear();
  }

  /** A node that was restored or moved says that it is of another island. */
  async #isThere(target: BackendHash, endpoint: string, withinMs: number): Promise<boolean> {
    if (endpoint === OWN) return true;
    const { http } = this.#options;
    const answer = await http.exchange({
      endpoint,
      method: "GET",
      path: "/v1/tc/leader",
      body: null,
      withinMs,
      isUnnamed: true,
    });
    const self = answer?.body["self"] as { readonly backend_hash?: unknown } | undefined;
    return answer !== null && (self?.backend_hash ?? target) === target;
  }

  #laneOf(target: BackendHash): Lane {
    const found = this.#lanes.get(target);
    if (found !== undefined) return found;
    const { http, own, ownEndpoint, clock, random, nextTurn = (begin) => void setImmediate(begin) } = this.#options;
    const lane = new Lane({
      target,
      endpoints: () => this.#endpointsOf(target),
      ownEndpoint,
      exchange: (asked) => http.exchange(asked),
      own: (request) => own.answer(request),
      clock,
      random: random.fork(target),
      nextTurn,
    });
    this.#lanes.set(target, lane);
    return lane;
  }

  #endpointsOf(target: BackendHash): readonly string[] {
    this.#look();
    const registered = this.#endpoints.get(target) ?? [];
    if (target !== this.#options.own.backendHash) return registered;
    return registered.includes(OWN) ? registered : [OWN, ...registered];
  }

  /** The registry is replaced as a whole, and seldom. */
  #look(): void {
    const entries = this.#options.registry();
    if (entries === this.#entries) return;
    this.#entries = entries;
    const { own, ownEndpoint } = this.#options;
    const byIsland = Map.groupBy(entries, ({ backendHash }) => backendHash);
    this.#endpoints = new Map(
      [...byIsland].map(([island, all]) => {
        const endpoints = all.map(({ endpoint }) => endpoint);
        if (island !== own.backendHash) return [island, endpoints];
        return [island, [OWN, ...endpoints.filter((endpoint) => endpoint !== ownEndpoint)]];
      }),
    );
    this.#islands = [...byIsland.keys()].toSorted();
    for (const [island, lane] of this.#lanes) {
      if (byIsland.has(island) || island === own.backendHash || !lane.isIdle) continue;
      lane.close();
      this.#lanes.delete(island);
    }
  }
}
