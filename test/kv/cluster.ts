// A cluster of node processes of the test store, for tests, chaos and benchmarks: founds it, changes its members, and ends
// all of them in every case, also when this process is killed (they watch their IPC channel).
//
// With `isProxied`, each direction between two nodes goes through a proxy of its own: the way on which A dials B.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfChangeOperation } from "../../src/core/raft/index.ts";
import { freePort, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import type { EventLine, NodeOptions, NodeStatus } from "./messages.ts";
import { KvNode } from "./node-handle.ts";

const HOST = "127.0.0.1";

export interface KvClusterOptions {
  readonly isProxied: boolean;
  /** Nodes after the voters that have ports and proxies and do not run. */
  readonly spares?: number | undefined;
  /** Each node serves its API (api.ts) too. */
  readonly hasApi?: boolean | undefined;
  readonly node?: Pick<NodeOptions, "election" | "snapshots" | "lieMs" | "edits"> | undefined;
}

export class KvCluster {
  readonly directory = mkdtempSync(join(tmpdir(), "tenure-kv-"));
  readonly nodes = new Map<string, KvNode>();
  /** By node id, for clients. Nodes that come later are added. */
  readonly ports: Record<string, number> = {};
  /** Notified of every line of every event log, as it is written. */
  onEvent: ((line: EventLine) => void) | undefined;
  /** Reported when a process has ended that nobody had asked to end. */
  onCrash: ((node: KvNode, exit: string) => void) | undefined;
  readonly #options: KvClusterOptions;

  private constructor(options: KvClusterOptions) {
    this.#options = options;
  }

  /** A cluster of `voters` nodes, n1, n2, …: all of them vote, and somebody leads. */
  static async start(voters: number, options: KvClusterOptions): Promise<KvCluster> {
    const cluster = new KvCluster(options);
    process.once("exit", cluster.#atExit);
    try {
      for (let at = 1; at <= voters + (options.spares ?? 0); at++) await cluster.#prepare(`n${at}`);
      const [first, ...others] = [...cluster.nodes.values()].slice(0, voters);
      // Alone: a founder asks its peers first, and would wait for those that do not run yet.
      await first!.start({ bootstrap: true, seeds: {} });
      await waitFor("the founder to lead", async () => (await first!.status()).established);
      await first!.kill();
      await Promise.all([first!, ...others].map((node) => node.start()));
      for (const node of others) await cluster.join(node.name);
      return cluster;
    } catch (error) {
      await cluster.end();
      throw error;
    }
  }

  at(name: string): KvNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new RangeError(`there is no node ${name}`);
    return node;
  }

  /** Ports, proxies and a place on the disk; the process is not started. */
  async #prepare(name: string): Promise<void> {
    const api = this.#options.hasApi === true ? await freePort() : undefined;
    const ports = { peer: await freePort(), kv: await freePort(), api };
    const node = new KvNode(this, name, ports, join(this.directory, name));
    if (this.#options.isProxied) {
      for (const other of this.nodes.values()) {
        node.links.set(other.name, await startProxy({ host: HOST, port: other.peerPort }));
        other.links.set(name, await startProxy({ host: HOST, port: node.peerPort }));
      }
    }
    this.nodes.set(name, node);
  }

  /** Adds a running node as a learner and makes it a voter once it has caught up. */
  async join(name: string): Promise<void> {
    const { peer } = await this.at(name).status();
    await this.change([{ op: "add-learner", peer }]);
    await waitFor(`${name} to catch up`, async () => {
      const status = await (await this.leader()).status();
      return (status.match[peer] ?? 0) + 64 >= status.commit && (status.match[peer] ?? 0) > 0;
    });
    await this.change([{ op: "add-voter", peer }]);
    this.ports[name] = this.at(name).kvPort;
  }

  /** Asks again until it is committed: by whoever leads, and also where it was unknown but is not yet so. */
  async change(operations: readonly ConfChangeOperation[], limitMs = 20_000): Promise<void> {
    const isDone = (status: NodeStatus): boolean =>
      !status.isJoint &&
      operations.every(({ op, peer }) => {
        if (op === "add-voter") return status.voters.includes(peer);
        if (op === "add-learner") return status.learners.includes(peer) || status.voters.includes(peer);
        return !status.voters.includes(peer) && !status.learners.includes(peer);
      });
    await waitFor(
      `a change of membership: ${operations.map(({ op, peer }) => `${op} ${peer}`).join(", ")}`,
      async () => {
        const leader = await this.findLeader();
        if (leader === null) return false;
        const status = await leader.tryStatus();
        if (status !== null && status.established && isDone(status)) return true;
        await leader.ask({ ask: "change", operations }).catch(() => undefined);
        return false;
      },
      limitMs,
    );
  }

  /** The established leader of the highest term among those that answer; null where there is none. */
  async findLeader(): Promise<KvNode | null> {
    const running = [...this.nodes.values()].filter((node) => node.isReady);
    const statuses = await Promise.all(running.map((node) => node.tryStatus()));
    let best: { node: KvNode; term: number } | null = null;
    for (const [at, status] of statuses.entries()) {
      if (status === null || !status.established) continue;
      if (best === null || status.term > best.term) best = { node: running[at]!, term: status.term };
    }
    return best?.node ?? null;
  }

  async leader(limitMs = 20_000): Promise<KvNode> {
    let found: KvNode | null = null;
    await waitFor("a leader", async () => (found = await this.findLeader()) !== null, limitMs);
    return found!;
  }

  /** Every line of every event log, of all lives. */
  eventLines(): EventLine[] {
    return [...this.nodes.values()].flatMap((node) => node.eventLines());
  }

  /** Of the API of every node, also of those that do not run. */
  apiUrls(): string[] {
    return [...this.nodes.values()].flatMap(({ apiPort }) =>
      apiPort === undefined ? [] : [`http://${HOST}:${apiPort}`],
    );
  }

  seedsOf(node: KvNode): Record<string, string> {
    const others = [...this.nodes.values()].filter((other) => other !== node);
    return Object.fromEntries(
      others.map((other) => [other.name, `${HOST}:${node.links.get(other.name)?.port ?? other.peerPort}`]),
    );
  }

  /** The proxies on which others dial this node. */
  linksTo(name: string): TcpProxy[] {
    return [...this.nodes.values()].flatMap((node) => node.links.get(name) ?? []);
  }

  get options(): KvClusterOptions {
    return this.#options;
  }

  /** May be called twice. Removes every file. */
  async end(): Promise<void> {
    process.removeListener("exit", this.#atExit);
    await Promise.all([...this.nodes.values()].map((node) => node.kill()));
    await Promise.all([...this.nodes.values()].flatMap((node) => [...node.links.values()].map((link) => link.end())));
    rmSync(this.directory, { recursive: true, force: true });
  }

  readonly #atExit = (): void => {
    for (const node of this.nodes.values()) node.killAtOnce();
    rmSync(this.directory, { recursive: true, force: true });
  };
}
