// A chaos run on a real etcd of one node.

import { spawnSync } from "node:child_process";
import { etcdPath, startEtcd, type EtcdServer, waitFor } from "../servers/index.ts";
import { ask, clearRows, getKey, readLanes, readRows } from "./etcd-keys.ts";
import { leaderKey, StaleEtcdSender } from "./etcd-office.ts";
import type { FaultKind } from "./faults.ts";
import type { Resource } from "./ledger.ts";
import type { StaleOutcome, WorkerConfig, WorkerKind } from "./messages.ts";
import { Proxies, SCOPE, type Stage, type StageOptions } from "./stage.ts";

/** `kind` "etcdctl" is the control. */
export async function etcdStage(
  options: StageOptions,
  kind: Extract<WorkerKind, "etcd" | "etcdctl"> = "etcd",
): Promise<EtcdStage> {
  return new EtcdStage(await startEtcd(), options, kind);
}

export class EtcdStage implements Stage {
  readonly backend = "etcd";
  readonly server: string;
  readonly proxies: Proxies;
  readonly #etcd: EtcdServer;
  readonly options: StageOptions;
  readonly #kind: WorkerKind;
  readonly #stale: StaleEtcdSender;
  #base: readonly number[];

  constructor(etcd: EtcdServer, options: StageOptions, kind: WorkerKind) {
    this.#etcd = etcd;
    this.options = options;
    this.#kind = kind;
    this.proxies = new Proxies(etcd.port);
    this.#stale = new StaleEtcdSender(etcd.endpoint, SCOPE, "harness");
    this.#base = Array.from({ length: options.lanes }, () => 0);
    const version = spawnSync(etcdPath() ?? "etcd", ["--version"], { encoding: "utf8" }).stdout;
    this.server = /etcd Version: \S+/.exec(version)?.[0].replace(" Version:", "") ?? "etcd";
  }

  get endpoint(): string {
    return this.#etcd.endpoint;
  }

  configure(place: number, name: string): WorkerConfig {
    const url = `http://127.0.0.1:${this.proxies.at(place).port}`;
    const { lanes, thinkMsMax, timing } = this.options;
    return { kind: this.#kind, name, scope: SCOPE, url, pool: "library", lanes, thinkMsMax, timing };
  }

  /** etcd does not list who watches; whether a worker campaigns, it tells itself. */
  async hasWaiters(): Promise<boolean> {
    return true;
  }

  async strike(kind: FaultKind): Promise<number> {
    switch (kind) {
      case "revoke": {
        // The leader that was seen may be gone by now, and the next one not there yet.
        let lease: string | undefined;
        await waitFor("a lease that holds the scope", async () => {
          lease = (await getKey(this.endpoint, leaderKey(SCOPE)))?.lease;
          return lease !== undefined;
        });
        const atMs = performance.now();
        await ask(this.endpoint, "lease/revoke", { ID: lease });
        return atMs;
      }
      case "restart-fast":
        await this.#etcd.stop();
        await this.#etcd.start();
        return performance.now();
      case "restart-kill":
        await this.#etcd.kill();
        await this.#etcd.start();
        return performance.now();
      default:
        throw new Error(`${kind} is no fault of etcd`);
    }
  }

  sendStale(epoch: number): Promise<StaleOutcome> {
    return this.#stale.attempt(epoch);
  }

  async read(): Promise<Resource> {
    const rows = await readRows(this.endpoint);
    return { rows, lanes: await this.#lanes(), base: this.#base };
  }

  async clear(): Promise<void> {
    this.#base = await this.#lanes();
    await clearRows(this.endpoint);
  }

  async end(): Promise<void> {
    await this.proxies.end();
    await this.#etcd.end();
  }

  #lanes(): Promise<number[]> {
    return readLanes(this.endpoint, this.options.lanes);
  }
}
