// Where a chaos run takes place: a real server with the counter in it, and a proxy for each worker's place.

import { startProxy, type TcpProxy } from "../servers/index.ts";
import type { FaultKind } from "./faults.ts";
import type { Resource } from "./ledger.ts";
import type { StaleOutcome, Timing, WorkerConfig } from "./messages.ts";

export type BackendName = "postgres" | "etcd" | "servers";

export interface Stage {
  readonly backend: BackendName;
  /** Name and version. */
  readonly server: string;
  readonly proxies: Proxies;
  readonly options: StageOptions;
  configure(place: number, name: string): WorkerConfig;
  /** Whether so many stand ready after the leader, as far as the server can tell. */
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

/** The network of one place: a proxy for each server, and what happens to one of them happens to all. */
export class PlaceNetwork {
  readonly #proxies: readonly TcpProxy[];

  constructor(proxies: readonly TcpProxy[]) {
    this.#proxies = proxies;
  }

  /** Where the place reaches each server. */
  get ports(): readonly number[] {
    return this.#proxies.map(({ port }) => port);
  }

  /** Where there is one server. */
  get port(): number {
    const [port] = this.ports;
    if (port === undefined) throw new Error("a network without a server");
    return port;
  }

  cut(...how: Parameters<TcpProxy["cut"]>): void {
    for (const proxy of this.#proxies) proxy.cut(...how);
  }

  async heal(...how: Parameters<TcpProxy["heal"]>): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.heal(...how)));
  }

  reset(): void {
    for (const proxy of this.#proxies) proxy.reset();
  }

  async end(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.end()));
  }
}

/** One network for each place, made when it is first asked for. */
export class Proxies {
  readonly #ports: readonly number[];
  readonly #places = new Map<number, PlaceNetwork>();

  constructor(...ports: readonly number[]) {
    this.#ports = ports;
  }

  async open(places: number): Promise<void> {
    for (let place = 0; place < places; place++) {
      if (this.#places.has(place)) continue;
      const proxies = await Promise.all(this.#ports.map((port) => startProxy({ host: "127.0.0.1", port })));
      this.#places.set(place, new PlaceNetwork(proxies));
    }
  }

  at(place: number): PlaceNetwork {
    const network = this.#places.get(place);
    if (network === undefined) throw new Error(`place ${place} has no network`);
    return network;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#places.values()].map((network) => network.end()));
  }
}
