// Failovers of whole nodes: supervisors with a controller and, while they do not lead, a worker that runs real commands. The
// leader's whole node, or its controller alone, is killed; the time until the next job is accepted is measured; and by the
// stamps in the logs no node ever had an open gate and a living worker (node-stamps.ts).

import { type Client, createClient, type JobView } from "../../src/client/index.ts";
import {
  OPERATOR_KEY,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { type Figures, figuresOf } from "./figures.ts";
import { NodeStamps, type Overlap } from "./node-stamps.ts";

export type Strike = "node" | "controller";
const STRIKES = ["node", "controller"] as const;
/** A worker always has something to do. */
const BACKLOG = 12;
const WORK_S = 3;
const CALL_MS = 10_000;
const SETTLE_MS = 120_000;
/** The sessions of a dead leader on Postgres end so late. */
const SERVER_TIMEOUT_MS = 2_000;

export interface NodeRunOptions {
  readonly backend: "embedded" | "postgres";
  readonly failovers: number;
  readonly log: (text: string) => void;
}

export interface NodeRunResult {
  readonly backend: string;
  readonly failovers: number;
  readonly after: Readonly<Record<Strike, Figures>>;
  readonly gates: number;
  readonly workers: number;
  readonly jobs: number;
  /** Attempts that ended because their worker's node was to lead; none of them cost the job anything. */
  readonly handed_back: number;
  /** Attempts of workers that were killed for a leader that then was too late to be cleared. */
  readonly lost: number;
  readonly overlaps: readonly Overlap[];
  readonly failed: readonly string[];
}

export async function runNodes(options: NodeRunOptions): Promise<NodeRunResult> {
  const database = options.backend === "postgres" ? await startPostgres({ settings: { fsync: "off" } }) : null;
  const stamps = new Map<string, NodeStamps>();
  const backend = database === null ? undefined : `${database.url()}?tenure_server_timeout_ms=${SERVER_TIMEOUT_MS}`;
  let cluster: TenureCluster | null = null;
  try {
    cluster = await startTenureCluster({
      backend,
      supervised: { capacity: 2 },
      prepare: (node) => {
        const own = new NodeStamps(node.id);
        stamps.set(node.id, own);
        node.told = (text) => own.take(text);
      },
    });
    return await play(cluster, stamps, options);
  } finally {
    await cluster?.end();
    await database?.end();
  }
}

async function play(
  cluster: TenureCluster,
  stamps: ReadonlyMap<string, NodeStamps>,
  { backend, failovers, log }: NodeRunOptions,
): Promise<NodeRunResult> {
  const client = createClient({ urls: cluster.urls, key: cluster.key, timeoutMs: CALL_MS });
  const jobs: string[] = [];
  // One attempt is all that a job has: what is handed back must not cost it.
  const submit = async (): Promise<string> => {
    // What leaves its session is as much of the job as what does not.
    const payload = { command: ["sh", "-c", `setsid sleep ${WORK_S} & sleep ${WORK_S}`] };
    const id = await client.submit({ kind: "exec", payload, attemptsMax: 1 });
    jobs.push(id);
    return id;
  };
  const times: Record<Strike, number[]> = { node: [], controller: [] };
  for (let at = 0; at < failovers; at++) {
    while ((await client.stats()).byState.pending < BACKLOG) await submit();
    const leader = await leaderWithBusyWorkers(cluster, client);
    const strike = STRIKES[at % STRIKES.length]!;
    const { term } = await client.leader();
    const living = cluster.nodes.find(({ id }) => id !== leader.id)!;
    const fromMs = performance.now();
    const gone = strike === "node" ? leader.kill9() : Promise.resolve(leader.signalController("SIGKILL"));
    const ms = (await acceptedAfter({ client, living }, term, submit)) - fromMs;
    times[strike].push(ms);
    await gone;
    if (strike === "node") {
      stamps.get(leader.id)!.ended(process.hrtime.bigint());
      leader.start();
    }
    log(
      `failover ${at + 1} of ${failovers}: the ${strike} of ${leader.id} was killed, the next job accepted after ${Math.round(ms)} ms`,
    );
    await steady(cluster, stamps);
  }
  const ended = await Promise.all(jobs.map((id) => client.wait(id, { signal: AbortSignal.timeout(SETTLE_MS) })));
  const all = [...stamps.values()];
  const overlaps = all.flatMap((one) => one.overlaps());
  const unfinished = ended.filter(({ state }) => state !== "completed");
  return {
    backend,
    failovers: times.node.length + times.controller.length,
    after: { node: figuresOf(times.node), controller: figuresOf(times.controller) },
    gates: all.reduce((sum, { gates }) => sum + gates, 0),
    workers: all.reduce((sum, { workers }) => sum + workers, 0),
    jobs: jobs.length,
    handed_back: countEnds(ended, "handed-back"),
    lost: countEnds(ended, "lost"),
    overlaps,
    failed: [
      ...overlaps.map(
        ({ node, gate, worker }) => `on ${node} a gate (${gate}) and a worker (${worker}) were open at once`,
      ),
      ...unfinished.map(({ id, state, error }) => `job ${id} is ${state}: ${error?.message ?? ""}`),
    ],
  };
}

/**
 * When the first job was accepted by a leader behind this term. One that is killed may accept some before it is dead: who takes
 * those for the next leader's measures nothing.
 */
async function acceptedAfter(
  { client, living }: { readonly client: Client; readonly living: TenureNode },
  term: number,
  submit: () => Promise<string>,
): Promise<number> {
  for (;;) {
    const id = await submit();
    const atMs = performance.now();
    let sequence = 0;
    // Asked while nobody leads, it has no answer yet.
    await waitFor(`job ${id} to be shown`, async () => {
      const shown = await client.job(id, { consistency: "linearizable" }).catch(() => null);
      sequence = shown?.submittedSequence ?? 0;
      return sequence > 0;
    });
    if ((await epochOf(living, sequence)) > term) return atMs;
  }
}

/** Of an event that is committed; this node may be a little behind. */
async function epochOf(node: TenureNode, sequence: number): Promise<number> {
  let epoch = 0;
  await waitFor(`event ${sequence} on ${node.id}`, async () => {
    const path = `/api/events/since/${sequence - 1}`;
    const { body } = await node.call<{ events?: readonly { sequence: number; leaderEpoch: number }[] }>(path, {
      key: OPERATOR_KEY,
    });
    epoch = body.events?.find((event) => event.sequence === sequence)?.leaderEpoch ?? 0;
    return epoch > 0;
  });
  return epoch;
}

/** A supervisor whose controller is killed again and again gives up; whoever runs it starts it again, as a service manager does. */
async function steady(cluster: TenureCluster, stamps: ReadonlyMap<string, NodeStamps>): Promise<void> {
  await waitFor("a cluster of voters with a leader", async () => {
    for (const node of cluster.nodes) {
      if (node.pid !== undefined) continue;
      stamps.get(node.id)!.ended(process.hrtime.bigint());
      node.start();
    }
    return cluster.isSteady();
  });
}

function countEnds(ended: readonly JobView[], end: string): number {
  return ended.flatMap(({ attempts }) => attempts).filter((one) => one.end === end).length;
}

/** Both others work: whoever is elected next has to be cleared. */
async function leaderWithBusyWorkers(cluster: TenureCluster, client: Client): Promise<TenureNode> {
  let leader = "";
  await waitFor("two busy workers and a leader", async () => {
    leader = await cluster.leader();
    const agents = await client.agents().catch(() => []);
    const isBusy = ({ name, state, running }: (typeof agents)[number]): boolean =>
      name !== `${leader}-worker` && state === "online" && running > 0;
    return agents.filter(isBusy).length === cluster.nodes.length - 1;
  });
  return cluster.node(leader);
}
