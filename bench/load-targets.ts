// What the client process writes to: a Tenure cluster through the test store's own client, or etcd through gRPC. Both send
// prepared bytes of the same keys and values over few connections with many requests under way.

import { KvClient } from "../test/kv/client.ts";
import { encodeCommand } from "../test/kv/machine.ts";
import { encodePut, PUT } from "./etcd-calls.ts";
import { GrpcConnection } from "./grpc.ts";

export const VALUE_BYTES = 128;
const KEYS = 4_096;
const ETCD_RETRY_MS = 1;
const NEWS_MS_MAX = 1_000;

/** `node`: who acknowledged it. A refusal that a retry did not repair is a failure of its own kind. */
export type PutOutcome = { readonly kind: "acked"; readonly node: string } | { readonly kind: "refused" | "unknown" };

export interface Target {
  /** `writer` numbers the clients, `n` their writes. */
  put(writer: number, n: number): Promise<PutOutcome>;
  /** Who leads as far as the client knows; null where it need not know. */
  leader(): string | null;
  close(): void;
}

const value = Buffer.alloc(VALUE_BYTES, "tenure-");
const keyOf = (n: number): string => `bench-${String(n).padStart(8, "0")}`;

/** A client that may try only so often waits for news of the leader in between, and does not guess. */
export function tenureTarget(ports: Readonly<Record<string, number>>, refusalsMax: number | null): Target {
  const bodies = Array.from({ length: KEYS }, (_, n) => encodeCommand({ kind: "put", key: keyOf(n), value }));
  const client = new KvClient(refusalsMax === null ? { ports } : { ports, refusalsMax, retryMs: NEWS_MS_MAX });
  return {
    leader: () => client.leader,
    close: () => client.close(),
    put: async (writer, n) => {
      const written = await client.write("put", bodies[(writer * 31 + n) % KEYS]!);
      return written.outcome === "committed" ? { kind: "acked", node: written.node } : { kind: written.outcome };
    },
  };
}

/**
 * Everybody writes at the leader. Where that fails, each goes on to the next node, not all of them to the same; a node of
 * etcd keeps a write until there is a leader, so this finds one as early as there is one.
 */
export function etcdTarget(
  ports: Readonly<Record<string, number>>,
  leader: string,
  patienceMs: number | null,
  connectionsPerNode: number,
): Target {
  const messages = Array.from({ length: KEYS }, (_, n) => encodePut(Buffer.from(keyOf(n)), value));
  const names = [leader, ...Object.keys(ports).filter((name) => name !== leader)];
  const connections = new Map<string, GrpcConnection>();
  const failures: number[] = [];
  const connectionTo = (name: string, writer: number): GrpcConnection => {
    const key = `${name}/${writer % connectionsPerNode}`;
    let connection = connections.get(key);
    if (connection === undefined || connection.isOver)
      connections.set(key, (connection = new GrpcConnection(ports[name]!)));
    return connection;
  };
  return {
    leader: () => null,
    close: () => {
      for (const connection of connections.values()) connection.close();
    },
    put: async (writer, n) => {
      const failed = failures[writer] ?? 0;
      const node = failed === 0 ? names[0]! : names[(failed + writer) % names.length]!;
      const call = connectionTo(node, writer).call(PUT, messages[(writer * 31 + n) % KEYS]!);
      const outcome = await (patienceMs === null ? call : Promise.race([call, late(patienceMs)]));
      if (outcome.kind === "answered") return { kind: "acked", node };
      failures[writer] = failed + 1;
      await new Promise((resolve) => setTimeout(resolve, ETCD_RETRY_MS));
      return { kind: "unknown" };
    },
  };
}

function late(ms: number): Promise<{ readonly kind: "lost" }> {
  return new Promise((resolve) => setTimeout(() => resolve({ kind: "lost" }), ms));
}
