// What the benchmark of jobs is on: clusters of Tenure's servers, a PostgreSQL for the peers (and for servers that keep
// their jobs in one), and a load generator for each side. All of it is ended in every case.
//
// Everything syncs as in production. PostgreSQL gets more memory than the tests give it: nobody would run it with 32 MB.

import { existsSync } from "node:fs";
import {
  CALM_ELECTION,
  OPERATOR_KEY,
  type PostgresServer,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
} from "../test/servers/index.ts";
import { Generator, type SideName } from "./generator.ts";
import { familyOf, type ProcessorTime, processorTimeOf } from "./processor-time.ts";
import { say } from "./stage.ts";

const EXIT_INTERRUPTED = 130;
const PEERS = ["graphile", "pgboss"] as const;
const PEER_PACKAGES = { graphile: "graphile-worker", pgboss: "pg-boss" } as const;
const POSTGRES_SETTINGS = { shared_buffers: "256MB", max_wal_size: "2GB" };

export type PeerName = (typeof PEERS)[number];
export type Backend = "embedded" | "postgres";

/** One way to run jobs through something. */
export interface Runner {
  readonly name: string;
  readonly side: SideName;
  /** Null: a peer. */
  readonly tenure: { readonly nodes: number; readonly backend: Backend } | null;
  readonly generator: Generator;
  /** After a disturbance: finds who leads now. */
  reopen(): Promise<void>;
  /** Of its servers, until now. */
  processorTime(): ProcessorTime;
}

export interface JobsStageOptions {
  readonly clusters: readonly { readonly nodes: number; readonly backend: Backend }[];
  readonly sides: readonly ("raw" | "sdk")[];
  readonly withPeers: boolean;
  /** Nobody campaigns soon: for a machine that does other things. */
  readonly isCalm: boolean;
}

const interrupted = (): never => process.exit(EXIT_INTERRUPTED);

export async function withJobsStage<T>(
  options: JobsStageOptions,
  work: (runners: readonly Runner[], clusters: readonly TenureCluster[]) => Promise<T>,
): Promise<T> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, interrupted);
  const ends: (() => Promise<void>)[] = [];
  try {
    const runners: Runner[] = [];
    const clusters: TenureCluster[] = [];
    for (const which of options.clusters) {
      say(`starting ${which.nodes} ${which.nodes === 1 ? "node" : "nodes"}, ${which.backend}`);
      const database = which.backend === "postgres" ? await started(ends) : null;
      const election = options.isCalm ? CALM_ELECTION : undefined;
      const cluster = await startTenureCluster({
        nodes: which.nodes,
        ...(database === null ? { election } : { backend: database.url() }),
      });
      ends.push(() => cluster.end());
      clusters.push(cluster);
      for (const side of options.sides) runners.push(await tenureRunner(cluster, which, side, database, ends));
    }
    if (options.withPeers) {
      const database = await started(ends);
      for (const name of PEERS) runners.push(await peerRunner(name, database, ends));
    }
    return await work(runners, clusters);
  } finally {
    for (const end of ends.toReversed()) await end();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, interrupted);
  }
}

async function started(ends: (() => Promise<void>)[]): Promise<PostgresServer> {
  const database = await startPostgres({ settings: POSTGRES_SETTINGS });
  ends.push(() => database.end());
  return database;
}

function generated(ends: (() => Promise<void>)[]): Generator {
  const generator = new Generator();
  ends.push(async () => generator.end());
  return generator;
}

async function tenureRunner(
  cluster: TenureCluster,
  tenure: { readonly nodes: number; readonly backend: Backend },
  side: "raw" | "sdk",
  database: PostgresServer | null,
  ends: (() => Promise<void>)[],
): Promise<Runner> {
  const generator = generated(ends);
  let leader = "";
  const reopen = async (): Promise<void> => {
    await cluster.steady();
    leader = await cluster.leader();
    await generator.open(side, side === "raw" ? [cluster.node(leader).url] : cluster.urls, OPERATOR_KEY);
  };
  await reopen();
  const processes = () => [
    ...cluster.nodes.map(({ id, pid }) => ({ label: id === leader ? "leader" : "follower", pid: pid ?? -1 })),
    ...(database === null ? [] : postgresProcesses(database)),
  ];
  const name = `tenure (${side}), ${tenure.nodes} × ${tenure.backend}`;
  return { name, side, tenure, generator, reopen, processorTime: () => processorTimeOf(processes()) };
}

async function peerRunner(name: PeerName, database: PostgresServer, ends: (() => Promise<void>)[]): Promise<Runner> {
  if (!existsSync(new URL(`./node_modules/${PEER_PACKAGES[name]}`, import.meta.url))) {
    throw new Error(`${PEER_PACKAGES[name]} is not installed: run this through npm run bench, or give --alone`);
  }
  const generator = generated(ends);
  await generator.open(name, [database.url()]);
  return {
    name: PEER_PACKAGES[name],
    side: name,
    tenure: null,
    generator,
    reopen: () => generator.open(name, [database.url()]),
    processorTime: () => processorTimeOf(postgresProcesses(database)),
  };
}

function postgresProcesses(database: PostgresServer): { label: string; pid: number }[] {
  return familyOf(database.pid ?? -1).map((pid) => ({ label: "database", pid }));
}
