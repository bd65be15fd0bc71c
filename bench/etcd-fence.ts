// What `values` compares with: etcd's transaction that puts a key if the leader's key is still the one that was created at its revision. Three
// nodes, over gRPC.

import { compareAndPut, encodePut, PUT, revisionOf, succeededOf, TXN } from "./etcd-calls.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { GrpcConnection } from "./grpc.ts";

const CONNECTIONS = 4;
const NAMES = 1_000;
const LEADER = Buffer.from("leader");
const CONTENT = Buffer.alloc(128, "x");

export class EtcdFence {
  readonly version: string;
  readonly #cluster: EtcdCluster;
  readonly #connections: readonly GrpcConnection[];
  readonly #messages: readonly Buffer[];

  private constructor(cluster: EtcdCluster, connections: readonly GrpcConnection[], revision: bigint) {
    this.#cluster = cluster;
    this.version = cluster.version;
    this.#connections = connections;
    this.#messages = Array.from({ length: NAMES }, (_, n) =>
      compareAndPut(LEADER, revision, Buffer.from(`bench-${n}`), CONTENT),
    );
  }

  /** Null where there is no etcd on PATH. */
  static async start(): Promise<EtcdFence | null> {
    const cluster = await EtcdCluster.start();
    if (cluster === null) return null;
    const port = cluster.ports[await cluster.leader()]!;
    const connections = Array.from({ length: CONNECTIONS }, () => new GrpcConnection(port));
    const created = await connections[0]!.call(PUT, encodePut(LEADER, Buffer.from("1")));
    if (created.kind !== "answered") throw new Error("etcd did not take the leader's key");
    return new EtcdFence(cluster, connections, revisionOf(created.message));
  }

  readonly fenced = async (client: number, n: number): Promise<void> => {
    const message = this.#messages[(client * 31 + n) % NAMES]!;
    const outcome = await this.#connections[client % CONNECTIONS]!.call(TXN, message);
    if (outcome.kind !== "answered" || !succeededOf(outcome.message)) throw new Error("etcd did not put");
  };

  async end(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#cluster.end();
  }
}
