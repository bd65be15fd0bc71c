// Where a chaos run takes place: a real server with the counter in it, and a proxy for each worker's place.

import { startProxy, type TcpProxy } from "../servers/index.ts";
import type { FaultKind } from "./faults.ts";
import type { Resource } from "./ledger.ts";
import type { StaleOutcome, Timing, WorkerConfig } from "./messages.ts";

export interface Stage {
  readonly backend: "postgres" | "etcd";
  /** Name and version. */
  readonly server: string;
  readonly proxies: Proxies;
  readonly options: StageOptions;
  configure(place: number, name: string): WorkerConfig;
  /** Whether so many stand ready behind the leader, as far as the server can tell. */
  hasWaiters(count: number): Promise<boolean>;
  /** A fault of the server's side. Resolves to the moment that failover is counted from. */
  strike(kind: FaultKind): Promise<number>;
  /** A fenced write with this epoch, of nobody who leads; it thinks between fence and write, where these are two. */
  sendStale(epoch: number, think: () => Promise<void>): Promise<StaleOutcome>;
  /** What the resource holds since `clear`. Called when nobody writes. */
  read(): Promise<Resource>;
  clear(): Promise<void>;
  /** May be called twice. */
  end(): Promise<void>;
}

export interface StageOptions {
  readonly lanes: number;
  readonly thinkMsMax: number;
  /** Undefined: the library's own. */
  readonly timing: Timing | undefined;
  /** For measuring: no proxy in the path, and every worker has a pool in use. Cuts are impossible then. */
  readonly direct?: boolean;
}

export const SCOPE = "chaos";

/** One proxy for each place, made when it is first asked for. */
export class Proxies {
  readonly #port: number;
  readonly #proxies = new Map<number, TcpProxy>();

  constructor(port: number) {
    this.#port = port;
  }

  async open(places: number): Promise<void> {
    for (let place = 0; place < places; place++) {
      if (!this.#proxies.has(place))
        this.#proxies.set(place, await startProxy({ host: "127.0.0.1", port: this.#port }));
    }
  }

  at(place: number): TcpProxy {
    const proxy = this.#proxies.get(place);
    if (proxy === undefined) throw new Error(`place ${place} has no proxy`);
    return proxy;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.end()));
  }
}
