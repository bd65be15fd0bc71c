// A chaos run on three real servers of Tenure: their processes are killed and stopped too, and are back before the next fault.

import { setTimeout as sleep } from "node:timers/promises";
import { servers } from "../../src/entry/servers.ts";
import { CLIENT_KEY, OPERATOR_KEY, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import type { FaultKind } from "./faults.ts";
import type { Resource } from "./ledger.ts";
import type { StaleOutcome, WorkerConfig } from "./messages.ts";
import { EpochStore, sendStale } from "./servers-resource.ts";
import { Proxies, SCOPE, type Stage, type StageOptions } from "./stage.ts";

/** How long a killed server stays away, and a stopped one stays stopped: past what its followers wait for. */
const AWAY_MS = 1_000;
const FROZEN_MS = 3_000;

export async function serversStage(options: StageOptions, isFenced = true): Promise<ServersStage> {
  const store = await EpochStore.open(options.lanes, isFenced);
  try {
    return new ServersStage(await startTenureCluster(), store, options);
  } catch (error) {
    await store.end();
    throw error;
  }
}

export class ServersStage implements Stage {
  readonly backend = "servers";
  readonly server = "tenure, 3 servers";
  readonly proxies: Proxies;
  readonly options: StageOptions;
  readonly #cluster: TenureCluster;
  readonly #store: EpochStore;
  #base: readonly number[];
  #mending: Promise<void> = Promise.resolve();

  constructor(cluster: TenureCluster, store: EpochStore, options: StageOptions) {
    this.#cluster = cluster;
    this.#store = store;
    this.options = options;
    this.proxies = new Proxies(...cluster.urls.map((url) => Number(new URL(url).port)));
    this.#base = store.lanes;
  }

  configure(place: number, name: string): WorkerConfig {
    const url = this.proxies
      .at(place)
      .ports.map((port) => `http://127.0.0.1:${port}`)
      .join(",");
    const { lanes, thinkMsMax, timing } = this.options;
    const ways = { url, resourceUrl: this.#store.url, key: CLIENT_KEY };
    return { kind: "servers", name, scope: SCOPE, ...ways, pool: "library", lanes, thinkMsMax, timing };
  }

  /** Who waits, the workers tell themselves. But a cluster that is still repairing may lose its quorum by the next fault. */
  async hasWaiters(): Promise<boolean> {
    await this.#mending;
    return this.#cluster.isSteady();
  }

  async strike(kind: FaultKind): Promise<number> {
    switch (kind) {
      case "revoke":
        return this.#revoke();
      case "server-kill": {
        const id = await this.#cluster.leader();
        const atMs = performance.now();
        await this.#cluster.kill(id);
        this.#mending = sleep(AWAY_MS).then(() => this.#cluster.start(id));
        return atMs;
      }
      case "server-stop": {
        const id = await this.#cluster.leader();
        const atMs = performance.now();
        this.#cluster.freeze(id);
        this.#mending = sleep(FROZEN_MS).then(() => this.#cluster.thaw(id));
        return atMs;
      }
      default:
        throw new Error(`${kind} is no fault of Tenure's servers`);
    }
  }

  sendStale(epoch: number): Promise<StaleOutcome> {
    return sendStale(this.#store.url, epoch);
  }

  async read(): Promise<Resource> {
    return { rows: [...this.#store.rows], lanes: this.#store.lanes, base: this.#base };
  }

  async clear(): Promise<void> {
    this.#base = this.#store.lanes;
    this.#store.clear();
  }

  async end(): Promise<void> {
    await this.#mending;
    await this.proxies.end();
    await this.#cluster.end();
    await this.#store.end();
  }

  /** An operator takes the scope away. The leader that was seen may be gone by now, and the next one not there yet. */
  async #revoke(): Promise<number> {
    const admin = servers(this.#cluster.urls, { key: OPERATOR_KEY }).admin();
    try {
      let atMs = 0;
      await waitFor("a lease that holds the scope", async () => {
        atMs = performance.now();
        return (await admin.askResign(SCOPE, true)) !== null;
      });
      return atMs;
    } finally {
      await admin.close();
    }
  }
}
