// `npm run bench -- loop [--minutes N] [--nodes N] [--batch N] [--calm] [--json]`: full load of jobs, while every node searches,
// verifies its whole history and takes snapshots, each as soon as the last one is done. Nobody may campaign: whatever a node
// does next to the log, it must not hold up its heartbeats. Memory of the nodes: the median of the second quarter next to that of
// the last.

import { parseArgs } from "node:util";
import { median } from "../test/chaos/figures.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../test/servers/index.ts";
import { Generator } from "./generator.ts";
import { KIND } from "./jobs-side.ts";
import { residentMb } from "./processor-time.ts";
import { counted, rounded, say } from "./stage.ts";

const MINUTES = 10;
const NODES = 3;
const BATCH = 100;
const LANES = 4;
const WINDOW_MS = 10_000;
const WINDOWS_MIN = 4;
/** A verification of everything takes as long as there is history. */
const ANSWER_MS_MAX = 600_000;
const AFTER_FAILURE_MS = 100;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    minutes: { type: "string" },
    nodes: { type: "string" },
    batch: { type: "string" },
    "window-ms": { type: "string" },
    calm: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const nodes = counted("nodes", values.nodes, NODES);
const batch = counted("batch", values.batch, BATCH);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);
const minutes = counted("minutes", values.minutes, MINUTES);
const windows =
  values["window-ms"] === undefined ? Math.max(WINDOWS_MIN, Math.round((minutes * 60_000) / windowMs)) : WINDOWS_MIN;

const LOOPS = {
  searches: { path: `/v1/jobs?search=${KIND}&limit=50`, method: "GET" },
  verifications: { path: "/api/events/verify", method: "GET" },
  snapshots: { path: "/v1/admin/snapshot", method: "POST" },
} as const;
type LoopName = keyof typeof LOOPS;

const cluster = await startTenureCluster({ nodes, ...(values.calm === true ? { election: CALM_ELECTION } : {}) });
const generator = new Generator();
try {
  const result = await main(cluster);
  console.log(
    `${result.seconds} s: ${result.jobs} jobs (${result.per_s}/s), ${result.elections} elections; beside it ` +
      `${result.searches} searches, ${result.verifications} verifications, ${result.snapshots} snapshots, ${result.failed} failed`,
  );
  for (const { name, rss_mb } of result.memory) console.log(`${name}: ${rss_mb.join(" → ")} MB`);
  if (values.json === true) console.log(JSON.stringify(result));
} finally {
  generator.end();
  await cluster.end();
}

async function main(all: TenureCluster) {
  await generator.open("sdk", all.urls, OPERATOR_KEY);
  const termBefore = await highestTerm(all);
  const order = { isOver: false };
  const done: Record<LoopName, number> = { searches: 0, verifications: 0, snapshots: 0 };
  const failures: string[] = [];
  const loops = all.nodes.flatMap(({ url }) =>
    (Object.keys(LOOPS) as LoopName[]).map((name) => loop(url, name, order, done, failures)),
  );
  const samples = new Map<string, number[]>(all.nodes.map(({ id }) => [id, []]));
  const startedMs = performance.now();
  let jobs = 0;
  for (let window = 1; window <= windows; window++) {
    const flow = { batch, submitters: LANES, lanes: LANES, backlogMax: 2 * batch * LANES, warmMs: 0, ms: windowMs };
    const one = await generator.fullRate(flow);
    jobs += one.jobs;
    for (const { id, pid } of all.nodes) samples.get(id)!.push(residentMb(pid ?? -1));
    const elections = (await highestTerm(all)) - termBefore;
    say(
      `${window}/${windows}: ${Math.round(one.perSecond)} jobs/s, ${elections} elections, ${JSON.stringify(done)}, ${failures.length} failed`,
    );
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  order.isOver = true;
  await Promise.all(loops);
  for (const failure of new Set(failures)) say(failure);
  return {
    bench: "loop",
    nodes,
    seconds: Math.round(seconds),
    jobs,
    per_s: Math.round(jobs / seconds),
    /** Terms that began meanwhile: nobody asked for any. */
    elections: (await highestTerm(all)) - termBefore,
    ...done,
    failed: failures.length,
    memory: all.nodes.map(({ id }) => ({ name: id, rss_mb: growthOf(samples.get(id)!) })),
  };
}

async function loop(
  url: string,
  name: LoopName,
  order: { readonly isOver: boolean },
  done: Record<LoopName, number>,
  failures: string[],
): Promise<void> {
  const { path, method } = LOOPS[name];
  while (!order.isOver) {
    const why = await failureOf(url, path, method);
    if (why === null) {
      done[name]++;
      continue;
    }
    failures.push(`${name}: ${why}`);
    await new Promise((resolve) => setTimeout(resolve, AFTER_FAILURE_MS));
  }
}

async function failureOf(url: string, path: string, method: "GET" | "POST"): Promise<string | null> {
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { "x-api-key": OPERATOR_KEY },
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const body = (await response.json()) as { readonly error?: string; readonly valid?: boolean };
    if (!response.ok) return `${response.status} ${body.error}`;
    return body.valid === false ? "the history does not verify" : null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function highestTerm(all: TenureCluster): Promise<number> {
  const views = await Promise.all(all.nodes.map((node) => node.view()));
  return Math.max(...views.map((view) => view?.term ?? 0));
}

function growthOf(samples: readonly number[]): readonly [number, number] {
  const quarter = Math.max(1, Math.floor(samples.length / 4));
  return [rounded(median(samples.slice(quarter, 2 * quarter)), 1), rounded(median(samples.slice(-quarter)), 1)];
}
