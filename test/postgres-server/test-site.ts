// A site on a real Postgres: node processes, each behind a proxy of its own to the database, so that one can be cut off.

import {
  OPERATOR_KEY as key,
  type PostgresOptions,
  type PostgresServer,
  startPostgres,
  startProxy,
  startTenureCluster,
  type TcpProxy,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";

/** What a frozen or cut-off leader costs. */
const SERVER_TIMEOUT_MS = 3_000;

export interface SiteOptions {
  readonly nodes?: number | undefined;
  readonly snapshots?: { readonly after_entries: number } | undefined;
  readonly postgres?: PostgresOptions | undefined;
  /** Before the first node starts. */
  readonly prepare?: ((server: PostgresServer) => Promise<void>) | undefined;
}

export class Site {
  readonly server: PostgresServer;
  readonly cluster: TenureCluster;
  readonly proxies: ReadonlyMap<string, TcpProxy>;

  /** Not for tests: startSite() makes these. */
  constructor(server: PostgresServer, cluster: TenureCluster, proxies: ReadonlyMap<string, TcpProxy>) {
    this.server = server;
    this.cluster = cluster;
    this.proxies = proxies;
  }

  async leader(not?: string): Promise<TenureNode> {
    return this.cluster.node(await this.cluster.waitForLeader(not));
  }

  async standbys(): Promise<TenureNode[]> {
    const { id } = await this.leader();
    return this.cluster.nodes.filter((node) => node.id !== id);
  }

  proxy(id: string): TcpProxy {
    return this.proxies.get(id)!;
  }

  /** Resolves to the id, once a leader has acknowledged it. */
  async submit(body: object): Promise<string> {
    const { status, body: answer } = await (await this.leader()).call<{ id: string }>("/v1/jobs", { key, body });
    if (status !== 200) throw new Error(`not submitted: ${JSON.stringify(answer)}`);
    return answer.id;
  }

  async submitMany(count: number, kind: string): Promise<void> {
    for (let sent = 0; sent < count; sent += 100) {
      const jobs = Array.from({ length: Math.min(100, count - sent) }, (_, at) => ({ kind, payload: sent + at }));
      await this.submit({ jobs });
    }
  }

  /** Every event of the site as this node shows it. */
  async events(node: TenureNode): Promise<SiteEvent[]> {
    const all: SiteEvent[] = [];
    for (;;) {
      const since = `/api/events/since/${all.length}?consistency=linearizable&limit=1000`;
      const { status, body } = await node.call<{ events: SiteEvent[] }>(since, { key });
      if (status !== 200) throw new Error(JSON.stringify(body));
      if (body.events.length === 0) return all;
      all.push(...body.events);
    }
  }

  async end(): Promise<void> {
    await this.cluster.end();
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.end()));
    await this.server.end();
  }
}

export interface SiteEvent {
  readonly sequence: number;
  readonly eventType: string;
  readonly entityId: string;
  readonly eventHash: string;
  readonly leaderEpoch: number;
  readonly sourceControllerId: string;
}

export async function startSite({ nodes = 3, snapshots, postgres, prepare }: SiteOptions = {}): Promise<Site> {
  const server = await startPostgres({ ...postgres, settings: { fsync: "off", ...postgres?.settings } });
  const proxies = new Map<string, TcpProxy>();
  try {
    await prepare?.(server);
    for (let at = 1; at <= nodes; at++) {
      proxies.set(`n${at}`, await startProxy({ host: "127.0.0.1", port: server.port }));
    }
    const cluster = await startTenureCluster({
      nodes,
      backend: siteUrl(server),
      snapshots,
      prepare: (node) => node.configure({ backend: siteUrl(server, proxies.get(node.id)!.port) }),
    });
    return new Site(server, cluster, proxies);
  } catch (error) {
    await Promise.all([...proxies.values()].map((proxy) => proxy.end()));
    await server.end();
    throw error;
  }
}

export function siteUrl(server: PostgresServer, port = server.port): string {
  const url = new URL(server.url());
  url.port = String(port);
  url.searchParams.set("tenure_server_timeout_ms", String(SERVER_TIMEOUT_MS));
  return url.href;
}

export { key, waitFor };
