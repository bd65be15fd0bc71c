// What `tc-failover` compares with: a leader key under a lease of the same length on three nodes of etcd, renewed as often, and a successor that watches it
// and writes its own when it is gone. Over etcd's JSON API, on connections that stay open.

import { setTimeout as sleep } from "node:timers/promises";
import { LEASE_RENEW_MS, LEASE_TTL_MS } from "../src/core/lease/limits.ts";
import { EtcdCluster } from "./etcd-cluster.ts";

const KEY = Buffer.from("leader").toString("base64");
const MS_PER_SECOND = 1_000;

interface Lease {
  readonly ID: string;
}

export class EtcdElection {
  readonly cluster: EtcdCluster;
  readonly #url: string;
  #holder: { readonly lease: string; readonly keeping: AbortController } | null = null;

  private constructor(cluster: EtcdCluster) {
    this.cluster = cluster;
    this.#url = `http://127.0.0.1:${Object.values(cluster.ports)[0]}/v3`;
  }

  /** Null where there is no etcd on PATH. */
  static async start(): Promise<EtcdElection | null> {
    const cluster = await EtcdCluster.start();
    if (cluster === null) return null;
    const election = new EtcdElection(cluster);
    try {
      await election.#elect();
      return election;
    } catch (error) {
      await election.end();
      throw error;
    }
  }

  /** The holder revokes its lease, or is not there any more and renews no more; until its successor's key is written. */
  async failover(kind: "leave" | "kill", afterMs: number): Promise<number> {
    const { lease, keeping } = this.#holder!;
    const watching = new AbortController();
    const response = await fetch(`${this.#url}/watch`, {
      method: "POST",
      body: JSON.stringify({ create_request: { key: KEY, filters: ["NOPUT"] } }),
      signal: watching.signal,
    });
    const gone = deleted(response);
    await sleep(afterMs);
    const fromMs = performance.now();
    keeping.abort();
    if (kind === "leave") await this.#post("lease/revoke", { ID: lease });
    await gone;
    watching.abort();
    await this.#elect();
    return performance.now() - fromMs;
  }

  async end(): Promise<void> {
    this.#holder?.keeping.abort();
    await this.cluster.end();
  }

  async #elect(): Promise<void> {
    const { ID: lease } = await this.#post<Lease>("lease/grant", { TTL: LEASE_TTL_MS / MS_PER_SECOND });
    const isAbsent = { target: "CREATE", key: KEY, create_revision: 0 };
    const put = { request_put: { key: KEY, value: KEY, lease } };
    const { succeeded } = await this.#post<{ succeeded?: boolean }>("kv/txn", { compare: [isAbsent], success: [put] });
    if (succeeded !== true) throw new Error("etcd: somebody else holds the key");
    const keeping = new AbortController();
    this.#holder = { lease, keeping };
    void this.#keep(lease, keeping.signal);
  }

  async #keep(lease: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(LEASE_RENEW_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#post("lease/keepalive", { ID: lease }).catch(() => undefined);
    }
  }

  async #post<T>(path: string, body: object): Promise<T> {
    const response = await fetch(`${this.#url}/${path}`, { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  }
}

async function deleted(response: Response): Promise<void> {
  let text = "";
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"DELETE"')) return;
  }
  throw new Error("etcd ended the watch");
}
