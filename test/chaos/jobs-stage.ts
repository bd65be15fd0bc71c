// Three servers of `chaos jobs`, each behind a proxy that all of its clients go through: the proxy's address is the one that
// the server announces. On the servers' own consensus, or on one PostgreSQL.

import { join } from "node:path";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { createClient, type Client } from "../../src/entry/client.ts";
import {
  OPERATOR_KEY,
  type PostgresServer,
  startPostgres,
  startProxy,
  startTenureCluster,
  type TcpProxy,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";

export type JobsBackend = "embedded" | "postgres";

export interface JobsStageOptions {
  readonly backend: JobsBackend;
  /** Planted into every server. */
  readonly edits?: readonly Edit[] | undefined;
}

interface RoleBody {
  readonly node_id: string;
  readonly role: string;
  readonly leader_epoch: number | null;
}

const HOST = "127.0.0.1";
const NODES = 3;
const ROLE_MS_MAX = 500;
const LOG_CHARS = 1_500;
/** Small, so that nodes that were away are brought back by snapshots and archives too. */
const SNAPSHOTS = { after_entries: 2_000, keep_entries: 200 };

/** Above what a busy machine may do to a process by itself: failovers are to be ours. A killed leader is noticed at once all the same. */
export const STEADY_ELECTION = {
  election_timeout_min_ms: 500,
  election_timeout_max_ms: 1_000,
  heartbeat_interval_ms: 100,
};
/** Shorter than the library's own, so that a stop costs 2 s and not 6 s. */
const POSTGRES_KNOBS = "tenure_server_timeout_ms=2000&tenure_heartbeat_interval_ms=300&tenure_margin_ms=500";

export async function startJobsStage(options: JobsStageOptions): Promise<JobsStage> {
  const database = options.backend === "postgres" ? await startPostgres() : null;
  const proxies: TcpProxy[] = [];
  for (let at = 0; at < NODES; at++) proxies.push(await startProxy({ host: HOST, port: 1 }));
  const byId = new Map<string, TcpProxy>();
  const prepare = (node: TenureNode): void => {
    const proxy = proxies[byId.size]!;
    byId.set(node.id, proxy);
    const { api } = node.config;
    proxy.swap({ host: HOST, port: Number(api?.listen?.split(":").at(-1)) });
    node.configure({ api: { ...api, advertise: `http://${HOST}:${proxy.port}` } });
    node.nodeFlags = writePlant(join(node.home, "plant.mjs"), options.edits ?? []);
  };
  const where =
    database === null
      ? { snapshots: SNAPSHOTS, election: STEADY_ELECTION }
      : { backend: `${database.url()}?${POSTGRES_KNOBS}` };
  try {
    return new JobsStage(await startTenureCluster({ nodes: NODES, ...where, prepare }), byId, database);
  } catch (error) {
    await Promise.all([...proxies.map((proxy) => proxy.end()), database?.end()]);
    throw error;
  }
}

export class JobsStage {
  readonly cluster: TenureCluster;
  readonly key = OPERATOR_KEY;
  /** Servers that ended by themselves, which nobody asked them for. */
  readonly crashes: string[] = [];
  readonly #proxies: ReadonlyMap<string, TcpProxy>;
  readonly #database: PostgresServer | null;

  /** Not for others: startJobsStage() makes these. */
  constructor(cluster: TenureCluster, proxies: ReadonlyMap<string, TcpProxy>, database: PostgresServer | null) {
    this.cluster = cluster;
    this.#proxies = proxies;
    this.#database = database;
  }

  get nodes(): readonly TenureNode[] {
    return this.cluster.nodes;
  }

  get urls(): string[] {
    return this.cluster.urls;
  }

  client(timeoutMs?: number): Client {
    return createClient({ urls: this.urls, key: this.key, timeoutMs });
  }

  proxy(node: TenureNode): TcpProxy {
    return this.#proxies.get(node.id)!;
  }

  /** The one that says that it leads, in the highest epoch; waits until there is one. */
  async leader(limitMs?: number): Promise<{ readonly node: TenureNode; readonly epoch: number }> {
    let found: { node: TenureNode; epoch: number } | undefined;
    await waitFor(
      "a leader of the jobs",
      async () => {
        const answers = await Promise.all(this.nodes.map((node) => this.#role(node)));
        const leading = answers.filter((one) => one !== null).toSorted((a, b) => b.epoch - a.epoch);
        found = leading[0];
        return found !== undefined;
      },
      limitMs,
    );
    return found!;
  }

  async #role(node: TenureNode): Promise<{ node: TenureNode; epoch: number } | null> {
    if (node.pid === undefined) return null;
    try {
      const { body } = await node.call<RoleBody>("/role", { key: this.key, limitMs: ROLE_MS_MAX });
      return body.role === "LEADER" ? { node, epoch: body.leader_epoch ?? 0 } : null;
    } catch {
      return null;
    }
  }

  /** As after a crash. */
  async restartDatabase(): Promise<void> {
    await this.#database?.restart("immediate");
  }

  /** Nothing is cut, nobody is stopped, everybody runs. */
  async heal(): Promise<void> {
    for (const node of this.nodes) {
      await this.proxy(node).heal();
      node.cont();
      this.start(node);
    }
  }

  /** Where it does not run. */
  start(node: TenureNode): void {
    const { exitCode } = node;
    if (node.pid === undefined && exitCode !== null && exitCode !== 0) {
      this.crashes.push(`${node.id} ended by itself (${exitCode}): ${node.log().trim().slice(-LOG_CHARS)}`);
    }
    node.start();
  }

  async end(): Promise<void> {
    await this.cluster.end();
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.end()));
    await this.#database?.end();
  }
}
