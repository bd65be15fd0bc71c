// Three servers of `chaos jobs`, each behind a proxy that all of its clients go through: the proxy's address is the one that
// the server announces. On the servers' own consensus, or on one PostgreSQL.
//
// Clients use a key of the cluster's own, which a server that was wiped, or joins, does not know at first. On the servers' own
// consensus they also have the address of a fourth, which runs only now and then.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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
const IDS = ["n1", "n2", "n3"];
const SPARE = "n4";
const KEY_MS_MAX = 30_000;
const STEER_MS_MAX = 120_000;
const ROLE_MS_MAX = 1_500;
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
  const byId = new Map<string, TcpProxy>();
  for (const id of database === null ? [...IDS, SPARE] : IDS) {
    const proxy = await startProxy({ host: HOST, port: 1 });
    proxies.push(proxy);
    byId.set(id, proxy);
  }
  const prepare = (node: TenureNode): void => {
    const proxy = byId.get(node.id)!;
    const { api } = node.config;
    proxy.swap({ host: HOST, port: Number(api?.listen?.split(":").at(-1)) });
    node.configure({ api: { ...api, advertise: `http://${HOST}:${proxy.port}` } });
    node.nodeFlags = writePlant(join(node.home, "plant.mjs"), options.edits ?? []);
  };
  const where =
    database === null ? { snapshots: SNAPSHOTS, election: STEADY_ELECTION } : { backend: backendOf(database) };
  let cluster: TenureCluster | undefined;
  try {
    cluster = await startTenureCluster({ nodes: IDS.length, ...where, prepare });
    const operator = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: KEY_MS_MAX });
    const { key } = await operator.keys.create({ name: "chaos", role: "operator" });
    return new JobsStage(cluster, byId, database, key);
  } catch (error) {
    await cluster?.end();
    await Promise.all([...proxies.map((proxy) => proxy.end()), database?.end()]);
    throw error;
  }
}

function backendOf(database: PostgresServer): string {
  return `${database.url()}?${POSTGRES_KNOBS}`;
}

export class JobsStage {
  readonly cluster: TenureCluster;
  /** Of an operator, and replicated: no server has it in its configuration. */
  readonly key: string;
  /** Of all servers, and of the one that runs only now and then. */
  readonly urls: readonly string[];
  /** Servers that ended by themselves, which nobody asked them for. */
  readonly crashes: string[] = [];
  readonly #proxies: ReadonlyMap<string, TcpProxy>;
  #database: PostgresServer | null;

  /** Not for others: startJobsStage() makes these. */
  constructor(
    cluster: TenureCluster,
    proxies: ReadonlyMap<string, TcpProxy>,
    database: PostgresServer | null,
    key: string,
  ) {
    this.cluster = cluster;
    this.key = key;
    this.urls = [...proxies.values()].map(({ port }) => `http://${HOST}:${port}`);
    this.#proxies = proxies;
    this.#database = database;
  }

  get nodes(): readonly TenureNode[] {
    return this.cluster.nodes;
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
      const { body } = await node.call<RoleBody>("/role", { key: OPERATOR_KEY, limitMs: ROLE_MS_MAX });
      return body.role === "LEADER" ? { node, epoch: body.leader_epoch ?? 0 } : null;
    } catch {
      return null;
    }
  }

  /** As after a crash. */
  async restartDatabase(): Promise<void> {
    await this.#database?.restart("immediate");
  }

  /**
   * On Postgres: a standby that does not get what `between` adds is promoted, and every server starts anew there. What was committed
   * in between is gone, and the log goes on in its place.
   */
  async promoteWithoutEnd(between: () => Promise<void>): Promise<void> {
    const primary = this.#database;
    if (primary === null) throw new Error("only a database has a standby");
    const standby = await primary.standby();
    this.#database = standby;
    try {
      await standby.caughtUp(primary);
      await standby.query("alter system set primary_conninfo = ''");
      await standby.query("select pg_reload_conf()");
      await waitFor("the standby to receive nothing more", async () => {
        return (await standby.query("select from pg_stat_wal_receiver")).length === 0;
      });
      await between();
      await primary.kill();
      await standby.promote();
    } finally {
      await primary.end();
    }
    for (const node of this.nodes) {
      await node.kill9();
      node.configure({ backend: backendOf(standby) });
      node.start();
    }
    await this.cluster.steady(STEER_MS_MAX);
  }

  /** Started with an empty disk, and made a voter; then removed again, and gone. */
  async joinAndLeave(stayMs: number): Promise<void> {
    const spare = await this.cluster.make(SPARE);
    try {
      this.cluster.introduce(IDS);
      spare.start();
      await this.#steer({ op: "add", node_id: SPARE, promote: true }, "MEMBER_EXISTS");
      await sleep(stayMs);
      await this.#steer({ op: "remove", node_id: SPARE }, "MEMBER_UNKNOWN");
    } finally {
      await this.cluster.forget(SPARE);
      spare.wipe();
    }
  }

  /** `done`: what is answered where it is so already. */
  async #steer(change: object, done: string): Promise<void> {
    const isDone = async (): Promise<boolean> => {
      const { node } = await this.leader(STEER_MS_MAX);
      const call = { key: OPERATOR_KEY, body: change, limitMs: STEER_MS_MAX };
      const answer = await node.call("/v1/admin/members", call).catch(() => null);
      return answer !== null && (answer.status === 200 || answer.body["error"] === done);
    };
    await waitFor(`the members to change: ${JSON.stringify(change)}`, isDone, STEER_MS_MAX);
  }

  /** The server's disk is gone: it comes back as another peer, and is swapped in. */
  async wipe(node: TenureNode): Promise<void> {
    const before = (await node.view())?.incarnation;
    await node.kill9();
    node.wipe();
    this.start(node);
    const isSwapped = async (): Promise<boolean> => {
      const own = (await node.view())?.members.find(({ node_id }) => node_id === node.id);
      return own?.kind === "voter" && own.incarnation !== before;
    };
    await waitFor(`${node.id} to be a voter again with an empty disk`, isSwapped, STEER_MS_MAX);
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
