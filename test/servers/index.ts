// The door to the real servers for tests, benchmarks and chaos runs. Each is started by whoever needs it, listens
// on 127.0.0.1 and a free port, and is ended by end() or, at the latest, with the process that started it.

export { etcdPath, startEtcd, type EtcdServer } from "./etcd.ts";
export { pgBouncerPath, startPgBouncer, type PgBouncer, type PgBouncerOptions } from "./pgbouncer.ts";
export { freePort } from "./ports.ts";
export { startPostgres, type PostgresOptions, type PostgresServer, type StopMode } from "./postgres.ts";
export { startPostgresPair, type PostgresPair } from "./postgres-pair.ts";
export { startProxy, type Direction, type Rewrite, type Target, type TcpProxy } from "./proxy.ts";
export { waitFor } from "./server-process.ts";
export {
  CALM_ELECTION,
  CLIENT_KEY,
  OPERATOR_KEY,
  startTenureCluster,
  VIEWER_KEY,
  type TenureCluster,
  type TenureClusterOptions,
} from "./tenure-cluster.ts";
export type { TenureAnswer, TenureNode, TenureView } from "./tenure-node.ts";
