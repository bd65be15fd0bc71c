// `npm run bench -- jobs --pending 1000000`: jobs that wait, and what they cost: leasing and failover next to the same cluster
// with a thousand. The ratio is what counts: at a million both should take no more than twice as long.
//
// Leasing is the full rate of batches from a queue that is kept as long as it is; failover is kill -9 of the leader until the
// next job is leased and its result committed, at whichever node. Before each kill the views have caught up with what was
// submitted: what they still have to write is the price of a million submissions, and is said apart.

import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../test/servers/index.ts";
import { figuresOf, median } from "../test/chaos/figures.ts";
import { HttpConnection } from "./http-connection.ts";
import { createClient } from "../src/entry/client.ts";
import { Generator } from "./generator.ts";
import { KIND } from "./jobs-side.ts";
import { monotonicMs } from "./load-messages.ts";
import { residentMb } from "./processor-time.ts";
import { rounded, say } from "./stage.ts";

const FEW = 1_000;
const WINDOWS = 3;
const KILLS = 9;
const FILL_BATCH = 1_000;
const LANES = 4;
const TTL_MS = 15_000;
const DISTURBED_MAX = 5;
/** Between two looks at whether somebody leads. */
const LOOK_MS = 1;
const FAILOVER_MS_MAX = 60_000;
const VIEWS_MS_MAX = 300_000;
const VIEWS_LOOK_MS = 500;
/** Events: a moment's work. */
const VIEWS_LAG_MAX = 1_000;

export interface PendingOptions {
  readonly pending: number;
  readonly nodes: number;
  readonly batch: number;
  readonly windowMs: number;
  readonly warmMs: number;
  /** With long election timeouts: for a machine that does other things. */
  readonly isCalm: boolean;
  readonly json: boolean;
}

interface Figures {
  readonly pending: number;
  readonly leased_per_s: number;
  readonly failover_p50_ms: number | null;
  readonly failover_max_ms: number | null;
  readonly leader_rss_mb: number;
}

export async function measurePending(options: PendingOptions): Promise<void> {
  const election = options.isCalm ? CALM_ELECTION : undefined;
  const cluster = await startTenureCluster({ nodes: options.nodes, election });
  try {
    const few = await measureAt(cluster, Math.min(FEW, options.pending), options);
    const many = await measureAt(cluster, options.pending, options);
    const result = {
      bench: "jobs-pending",
      nodes: options.nodes,
      rows: [few, many],
      leasing_ratio: rounded(few.leased_per_s / many.leased_per_s, 2),
      failover_ratio:
        few.failover_p50_ms === null || many.failover_p50_ms === null
          ? null
          : rounded(many.failover_p50_ms / few.failover_p50_ms, 2),
    };
    console.log(people(result));
    if (options.json) console.log(JSON.stringify(result));
  } finally {
    await cluster.end();
  }
}

async function measureAt(cluster: TenureCluster, pending: number, options: PendingOptions): Promise<Figures> {
  await fill(cluster, pending);
  say(`${pending} pending: the views have them after ${Math.round((await viewsCaughtUp(cluster)) / 1000)} s more`);
  const rates: number[] = [];
  for (let window = 1; window <= WINDOWS; window++) {
    rates.push(await leasingRate(cluster, options));
    say(`${pending} pending, window ${window}/${WINDOWS}: ${Math.round(rates.at(-1)!)}/s`);
  }
  const failovers: number[] = [];
  for (let kill = 1; options.nodes > 1 && kill <= KILLS; kill++) {
    failovers.push(await failover(cluster));
    say(`${pending} pending, kill ${kill}/${KILLS}: ${failovers.at(-1)!.toFixed(1)} ms`);
  }
  const figures = failovers.length === 0 ? null : figuresOf(failovers);
  return {
    pending,
    leased_per_s: Math.round(median(rates)),
    failover_p50_ms: figures?.p50_ms ?? null,
    failover_max_ms: figures?.max_ms ?? null,
    leader_rss_mb: Math.round(residentMb(cluster.node(await cluster.leader()).pid ?? -1)),
  };
}

async function fill(cluster: TenureCluster, pending: number): Promise<void> {
  const generator = new Generator();
  try {
    await generator.open("sdk", cluster.urls, OPERATOR_KEY);
    const { byState } = await createClient({ urls: cluster.urls, key: OPERATOR_KEY }).stats({
      consistency: "linearizable",
    });
    const there = byState.pending;
    say(`submitting ${Math.max(0, pending - there)} jobs`);
    if (pending > there) await generator.submit(pending - there, FILL_BATCH);
  } finally {
    generator.end();
  }
}

async function viewsCaughtUp(cluster: TenureCluster): Promise<number> {
  const startedMs = monotonicMs();
  while (monotonicMs() - startedMs < VIEWS_MS_MAX) {
    const lags = await Promise.all(cluster.urls.map((url) => viewsLag(url)));
    if (Math.max(...lags) <= VIEWS_LAG_MAX) return monotonicMs() - startedMs;
    await new Promise((resolve) => setTimeout(resolve, VIEWS_LOOK_MS));
  }
  throw new Error(`the views of a node have not caught up in ${VIEWS_MS_MAX / 1000} s`);
}

async function viewsLag(url: string): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { "x-api-key": OPERATOR_KEY } }).catch(() => null);
  if (response?.ok !== true) return Infinity;
  return Number(/^tenure_views_lag_events (\d+)$/m.exec(await response.text())?.[1] ?? Infinity);
}

/** As many are submitted as are taken: the number of those that wait stays what it is. */
async function leasingRate(cluster: TenureCluster, { batch, windowMs, warmMs }: PendingOptions): Promise<number> {
  const lanes = { submitters: LANES, lanes: LANES, backlogMax: 2 * batch * LANES };
  for (let attempt = 1; ; attempt++) {
    const generator = new Generator();
    try {
      await cluster.steady(FAILOVER_MS_MAX);
      await generator.open("raw", [cluster.node(await cluster.leader()).url], OPERATOR_KEY);
      return (await generator.fullRate({ batch, ...lanes, warmMs, ms: windowMs, isStanding: true })).perSecond;
    } catch (error) {
      if (attempt > DISTURBED_MAX) throw error;
      say(`disturbed: ${(error as Error).message}; measuring again`);
    } finally {
      generator.end();
    }
  }
}

/** Kill -9 of the leader until the next job was leased and its result committed. */
async function failover(cluster: TenureCluster): Promise<number> {
  await cluster.steady(FAILOVER_MS_MAX);
  await viewsCaughtUp(cluster);
  const victim = await cluster.leader();
  const survivors = cluster.nodes.filter(({ id }) => id !== victim).map(({ url }) => url);
  const struckMs = monotonicMs();
  const gone = cluster.kill(victim);
  const ms = (await Promise.any(survivors.map((url) => firstCommitted(url, struckMs + FAILOVER_MS_MAX)))) - struckMs;
  await gone;
  cluster.start(victim);
  return ms;
}

async function firstCommitted(url: string, endMs: number): Promise<number> {
  const session = crypto.randomUUID();
  const agent = { name: session, session, kinds: [KIND], platform: "bench", capacity: 1 };
  const connection = new HttpConnection(url, OPERATOR_KEY);
  try {
    for (let poll = 1, answered = 0; monotonicMs() < endMs; poll++) {
      try {
        const call = JSON.stringify({ agent, max: 1, ttl_ms: TTL_MS, poll, answered });
        const { leases } = await connection.post<{ leases: readonly Record<string, unknown>[] }>("/v1/leases", call);
        answered = poll;
        const [lease] = leases;
        if (lease === undefined) throw new Error("nothing to lease, though jobs wait");
        const { job_id, job_epoch, lease_id, leader_epoch } = lease;
        const result = { job_id, job_epoch, lease_id, leader_epoch, outcome: "completed" };
        await connection.post("/v1/results", JSON.stringify({ session, ...result }));
        return monotonicMs();
      } catch {
        // Not the leader, or not yet.
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    }
    throw new Error(`no job was committed at ${url} in ${FAILOVER_MS_MAX} ms`);
  } finally {
    connection.close();
  }
}

interface Result {
  readonly rows: readonly Figures[];
  readonly leasing_ratio: number;
  readonly failover_ratio: number | null;
}

function people({ rows, leasing_ratio: leasing, failover_ratio: failing }: Result): string {
  const lines = rows.map(
    ({ pending, leased_per_s: rate, failover_p50_ms: ms, leader_rss_mb: rss }) =>
      `${pending} pending: ${rate}/s leased and committed, failover p50 ${ms ?? "–"} ms, leader ${rss} MB`,
  );
  return [...lines, `leasing takes ${leasing} × as long, failover ${failing ?? "–"} ×`].join("\n");
}
