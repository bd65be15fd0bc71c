// What the cluster benchmarks stand on: three nodes of Tenure, three of etcd where it is on PATH, one client process. All
// of it is ended in every case: at the end, on failure, on Ctrl-C, and by the hooks and guards of each when this process is
// killed.

import { KvCluster } from "../test/kv/cluster.ts";
import { waitFor } from "../test/servers/index.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { Load } from "./load.ts";

export const ETCD_CLIENT =
  "gRPC over HTTP/2 by hand (bench/grpc.ts), one connection, requests of one turn in one write";
const NODES = 3;
const EXIT_INTERRUPTED = 130;
const PAUSE_MS = 100;

export interface Stage {
  readonly tenure: KvCluster;
  readonly etcd: EtcdCluster | null;
  readonly load: Load;
  readonly peer: { readonly name: string; readonly version: string; readonly client: string } | null;
}

export interface StageOptions {
  readonly isProxied: boolean;
  /** False: etcd is left out though it is there. */
  readonly withPeer: boolean;
}

const interrupted = (): never => process.exit(EXIT_INTERRUPTED);

export async function withStage<T>(options: StageOptions, work: (stage: Stage) => Promise<T>): Promise<T> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, interrupted);
  const load = new Load();
  const ends: (() => Promise<void>)[] = [async () => load.end()];
  try {
    say("starting three nodes");
    const tenure = await KvCluster.start(NODES, { isProxied: options.isProxied });
    ends.push(() => tenure.end());
    const etcd = options.withPeer ? await EtcdCluster.start() : null;
    if (etcd !== null) ends.push(() => etcd.end());
    const peer = etcd === null ? null : { name: "etcd", version: etcd.version, client: ETCD_CLIENT };
    say(peer === null ? "no etcd to compare with" : `beside etcd ${peer.version}`);
    return await work({ tenure, etcd, load, peer });
  } finally {
    for (const end of ends.toReversed()) await end();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, interrupted);
  }
}

/** One leader, and everybody has everything. */
export async function caughtUp(tenure: KvCluster): Promise<void> {
  await waitFor("all three nodes to have caught up", async () => {
    const statuses = await Promise.all([...tenure.nodes.values()].map((node) => node.tryStatus()));
    const leader = statuses.find((status) => status?.established === true);
    if (leader === undefined || leader === null) return false;
    return statuses.every(
      (status) => status !== null && status.leader === leader.peer && status.applied === leader.commit,
    );
  });
}

/** Of a random length, so that rounds are not in step with heartbeats or anything else that has a period. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS * (1 + Math.random())));
}

/** Progress is for people; the result alone goes to the standard output. */
export function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`);
}

/** A whole number from the command line. */
export function counted(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`--${name} takes a whole number, not ${text}`);
  return value;
}

export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
