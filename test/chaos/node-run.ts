// Failovers of whole nodes: supervisors with a controller and, while they do not lead, a worker that runs real commands. The
// leader's whole node, or its controller alone, is killed; the time until the next job is accepted is measured; and by the
// stamps in the logs no node ever had an open gate and a living worker (node-stamps.ts).

import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient, type JobView } from "../../src/client/index.ts";
import type { Json } from "../../src/core/kit/json.ts";
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
import { StampedWork } from "./node-work.ts";

export type Strike = "node" | "controller";
/** Not one after the other: two nodes that take turns would each be struck in one way only. */
const STRIKES = ["node", "controller", "controller", "node"] as const;
/** A worker always has something to do. */
const BACKLOG = 12;
const PROBE_EVERY_MS = 2;
const CALL_MS = 10_000;
const SETTLE_MS = 120_000;
/** What must not be: then the logs are shown. */
const SLOW_MS = 400;
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
  /** How often the jobs themselves said that they live. */
  readonly stamps: number;
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
  const work = new StampedWork(cluster);
  const submit = async (payload: Json): Promise<string> => {
    const id = await client.submit({ kind: "exec", payload, attemptsMax: 1 });
    jobs.push(id);
    return id;
  };
  const times: Record<Strike, number[]> = { node: [], controller: [] };
  for (let at = 0; at < failovers; at++) {
    const leader = await leaderWithBusyWorkers(cluster, client, () => submit(work.payload));
    const strike = STRIKES[at % STRIKES.length]!;
    const { term } = await client.leader();
    const living = cluster.nodes.find(({ id }) => id !== leader.id)!;
    const fromMs = performance.now();
    if (strike === "controller" && leader.controllerPid === undefined)
      throw new Error(`${leader.id} has no controller`);
    const gone = strike === "node" ? leader.kill9() : Promise.resolve(leader.signalController("SIGKILL"));
    const ms = (await acceptedAfter({ client, living }, term, () => submit({ command: ["true"] }))) - fromMs;
    times[strike].push(ms);
    await gone;
    if (strike === "node") {
      stamps.get(leader.id)!.ended(process.hrtime.bigint());
      leader.start();
    }
    log(
      `failover ${at + 1} of ${failovers}: the ${strike} of ${leader.id} was killed, the next job accepted after ${Math.round(ms)} ms`,
    );
    if (ms > SLOW_MS) log(whatOthersLogged(cluster, leader, fromMs));
    await steady(cluster, stamps);
  }
  const ended = await Promise.all(jobs.map((id) => client.wait(id, { signal: AbortSignal.timeout(SETTLE_MS) })));
  const all = [...stamps.values()];
  const overlaps = all.flatMap((one) => one.overlaps());
  const gates = all.reduce((sum, one) => sum + one.gates, 0);
  const workers = all.reduce((sum, one) => sum + one.workers, 0);
  const { count, inGates } = work.read(stamps);
  const unfinished = ended.filter(({ state }) => state !== "completed");
  return {
    backend,
    failovers: times.node.length + times.controller.length,
    after: { node: figuresOf(times.node), controller: figuresOf(times.controller) },
    gates,
    workers,
    jobs: jobs.length,
    handed_back: countEnds(ended, "handed-back"),
    lost: countEnds(ended, "lost"),
    stamps: count,
    overlaps,
    failed: [
      ...overlaps.map(
        ({ node, gate, worker }) => `on ${node} a gate (${gate}) and a worker (${worker}) were open at once`,
      ),
      ...inGates.map((stamp) => `a job lived while its node led: ${stamp}`),
      ...(count === 0 ? ["no job has left a stamp"] : []),
      ...(gates < failovers ? [`${gates} gates for ${failovers} failovers: not all of them are in the logs`] : []),
      ...(workers === 0 ? ["no worker has run"] : []),
      ...all.flatMap(({ strange }) => strange.map((line) => `a line that is none of the log's: ${line}`)),
      ...unfinished.map(({ id, state, error }) => `job ${id} is ${state}: ${error?.message ?? ""}`),
    ],
  };
}

/**
 * When the first job was accepted by a leader after this term. One that is killed may accept some before it is dead: who takes
 * those for the next leader's measures nothing. Whose each is, is asked next to, so that the answer's way is not counted.
 */
async function acceptedAfter(
  { client, living }: { readonly client: Client; readonly living: TenureNode },
  term: number,
  submit: () => Promise<string>,
): Promise<number> {
  const found: number[] = [];
  const looks: Promise<void>[] = [];
  while (found.length === 0) {
    const id = await submit();
    const atMs = performance.now();
    const look = epochOf(client, living, id).then((epoch) => {
      if (epoch > term) found.push(atMs);
    });
    looks.push(look);
    await sleep(PROBE_EVERY_MS);
  }
  await Promise.all(looks);
  return Math.min(...found);
}

/** For whoever asks why that failover took so long. */
function whatOthersLogged({ nodes }: TenureCluster, killed: TenureNode, fromMs: number): string {
  const fromWallMs = performance.timeOrigin + fromMs;
  const lines = nodes.flatMap((node) =>
    node === killed
      ? []
      : node
          .log()
          .split("\n")
          .map((line) => ({ node, line })),
  );
  const since = lines.filter(({ line }) => Date.parse(/"time":"([^"]+)"/.exec(line)?.[1] ?? "") >= fromWallMs);
  return [
    `killed at ${new Date(fromWallMs).toISOString()}; the others:`,
    ...since.map(({ node, line }) => `  ${node.id} ${line}`),
  ].join("\n");
}

/** In which a job was accepted. Asked while nobody leads, it has no answer yet; and this node may be a little behind. */
async function epochOf(client: Client, node: TenureNode, id: string): Promise<number> {
  let epoch = 0;
  await waitFor(`job ${id} on ${node.id}`, async () => {
    const shown = await client.job(id, { consistency: "linearizable" }).catch(() => null);
    if (shown === null) return false;
    const { submittedSequence: sequence } = shown;
    const { body } = await node.call<{ events?: readonly { sequence: number; leaderEpoch: number }[] }>(
      `/api/events/since/${sequence - 1}`,
      { key: OPERATOR_KEY },
    );
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
async function leaderWithBusyWorkers(
  cluster: TenureCluster,
  client: Client,
  submit: () => Promise<string>,
): Promise<TenureNode> {
  let leader = "";
  await waitFor("two busy workers and a leader", async () => {
    while ((await client.stats()).byState.pending < BACKLOG) await submit();
    leader = await cluster.leader();
    const agents = await client.agents().catch(() => []);
    const isBusy = ({ name, state, running }: (typeof agents)[number]): boolean =>
      name !== `${leader}-worker` && state === "online" && running > 0;
    return agents.filter(isBusy).length === cluster.nodes.length - 1;
  });
  return cluster.node(leader);
}
