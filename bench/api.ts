// `npm run bench -- api [--jobs N] [--window-ms N] [--streams N] [--connections 1,8,64] [--json]`: reads of one real server that has N jobs (20,000
// unless it is given), half of them done: one job, a page of the list, a search, the server's own state; several readers at
// once. And the fan-out of events: how long after a submission left its event is at each of the streams.
// With --connections only pages of the list are read, by so many at once; refusals are counted, and the processor time of the
// server's main thread and of its views for each page that was answered.

import { parseArgs } from "node:util";
import { createClient } from "../src/entry/client.ts";
import { figuresOf } from "../test/chaos/figures.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, waitFor } from "../test/servers/index.ts";
import { Generator } from "./generator.ts";
import { HttpConnection } from "./http-connection.ts";
import { KIND } from "./jobs-side.ts";
import { processorTimeOf, spentBetween } from "./processor-time.ts";
import { counted, rounded, say } from "./stage.ts";

const JOBS = 20_000;
const WINDOW_MS = 3_000;
const READERS = 4;
const STREAMS = 50;
const SAMPLES = 100;
const SUBMIT_BATCH = 1_000;
const IDS = 1_000;
const SETTLE_MS = 300;
/** Pages by several filters in turn, so that not everybody asks for the same. */
const LISTS = ["limit=50", "state=completed&limit=50", "state=pending&limit=50", `kind=${KIND}&limit=50`];

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    jobs: { type: "string" },
    "window-ms": { type: "string" },
    streams: { type: "string" },
    samples: { type: "string" },
    connections: { type: "string" },
    json: { type: "boolean" },
  },
});
const jobs = counted("jobs", values.jobs, JOBS);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);
const streams = counted("streams", values.streams, STREAMS);
const samples = counted("samples", values.samples, SAMPLES);

interface Row {
  readonly read: string;
  readonly per_s: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

interface ListRow extends Row {
  readonly connections: number;
  readonly refused: number;
  readonly main_us: number;
  readonly views_us: number;
}

const cluster = await startTenureCluster({ nodes: 1, election: CALM_ELECTION });
try {
  const { url } = cluster.node(await cluster.leader());
  await fill(url);
  const ids = await idsOf(url);
  const one = (n: number): string => `/v1/jobs/${ids[n % ids.length]}`;
  if (values.connections === undefined) await measureAll(url, one);
  else
    await measureLists(
      url,
      values.connections.split(",").map((text) => counted("connections", text, READERS)),
    );
} finally {
  await cluster.end();
}

async function measureAll(url: string, one: (n: number) => string): Promise<void> {
  const rows: Row[] = [
    (await reads(url, "job", one)).row,
    (await reads(url, "job, linearizable", (n) => `${one(n)}?consistency=linearizable`)).row,
    (await reads(url, "list", () => "/v1/jobs?limit=50")).row,
    (await reads(url, "list, by state", () => "/v1/jobs?state=completed&limit=50")).row,
    (await reads(url, "search", (n) => `/v1/jobs?search=${KIND}&limit=${20 + (n % 5)}`)).row,
    (await reads(url, "stats", () => "/v1/stats")).row,
    (await reads(url, "role", () => "/role")).row,
  ];
  const result = { bench: "api", jobs, readers: READERS, rows, events: await fanOut(url) };
  for (const { read, per_s: rate, p50_ms: p50, p99_ms: p99 } of rows)
    console.log(`${read.padEnd(20)} ${String(rate).padStart(7)}/s, p50 ${p50} ms, p99 ${p99} ms`);
  const { streams: many, p50_ms: p50, p99_ms: p99, per_s: rate } = result.events;
  console.log(
    `events to ${many} streams: p50 ${p50} ms, p99 ${p99} ms after the submission left; ${rate} deliveries/s`,
  );
  if (values.json === true) console.log(JSON.stringify(result));
}

async function measureLists(url: string, connections: readonly number[]): Promise<void> {
  const rows: ListRow[] = [];
  const server = [{ label: "n1", pid: cluster.nodes[0]!.pid ?? 0 }];
  for (const many of connections) {
    const asked = (n: number): string => `/v1/jobs?${LISTS[n % LISTS.length]}`;
    const before = processorTimeOf(server);
    const { row, refused, answered } = await reads(url, "list", asked, many);
    const spent = spentBetween(before, processorTimeOf(server));
    const perPage = (part: string): number => Math.round((spent.get(`n1: ${part}`) ?? 0) / answered);
    rows.push({ connections: many, ...row, refused, main_us: perPage("main"), views_us: perPage("views (SQLite)") });
  }
  for (const { connections: many, per_s: rate, p50_ms: p50, p99_ms: p99, refused, main_us, views_us } of rows) {
    const rates = `${String(many).padStart(4)} at once: ${rate}/s, p50 ${p50} ms, p99 ${p99} ms, ${refused} refused`;
    console.log(`${rates}, ${main_us} + ${views_us} µs of main thread and views for each`);
  }
  if (values.json === true) console.log(JSON.stringify({ bench: "api-lists", jobs, rows }));
}

/** Half of them are done: in the views, and not in memory any more after a while. */
async function fill(url: string): Promise<void> {
  const generator = new Generator();
  try {
    await generator.open("sdk", [url], OPERATOR_KEY);
    say(`submitting ${jobs} jobs`);
    await generator.submit(jobs, SUBMIT_BATCH);
    await generator.open("raw", [url], OPERATOR_KEY);
    const flow = { batch: 100, submitters: 1, lanes: 2, backlogMax: 200, warmMs: 0, ms: SETTLE_MS };
    for (const connection = new HttpConnection(url, OPERATOR_KEY); ;) {
      await generator.fullRate({ ...flow, isStanding: true });
      const { by_state: states } = await connection.get<{ by_state: { pending: number } }>("/v1/stats");
      if (states.pending > jobs / 2) continue;
      connection.close();
      return;
    }
  } finally {
    generator.end();
  }
}

async function idsOf(url: string): Promise<readonly string[]> {
  const client = createClient({ urls: [url], key: OPERATOR_KEY });
  const ids: string[] = [];
  for await (const { id } of client.jobs({ consistency: "linearizable" })) if (ids.push(id) >= IDS) break;
  return ids;
}

async function reads(
  url: string,
  read: string,
  path: (n: number) => string,
  readers = READERS,
): Promise<{ readonly row: Row; readonly refused: number; readonly answered: number }> {
  const timesMs: number[] = [];
  let refused = 0;
  const endMs = performance.now() + windowMs;
  const reader = async (first: number): Promise<void> => {
    const connection = new HttpConnection(url, OPERATOR_KEY);
    for (let n = first; performance.now() < endMs; n += readers) {
      const askedMs = performance.now();
      const { status, body } = await connection.getRaw(path(n));
      if (status === 503 && readers !== READERS) {
        refused++;
        continue;
      }
      if (status !== 200) throw new Error(`${path(n)} was answered with ${status}: ${body.toString().slice(0, 300)}`);
      timesMs.push(performance.now() - askedMs);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: readers }, (_, first) => reader(first)));
  const sorted = Float64Array.from(timesMs).sort();
  const rank = (part: number): number =>
    rounded(sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN, 2);
  say(`${read}: ${timesMs.length} reads`);
  const perSecond = Math.round((timesMs.length * 1_000) / windowMs);
  return { row: { read, per_s: perSecond, p50_ms: rank(0.5), p99_ms: rank(0.99) }, refused, answered: timesMs.length };
}

/** Every event carries when its submission left; this process submits and follows, so its clock is the only one. */
async function fanOut(url: string) {
  const client = createClient({ urls: [url], key: OPERATOR_KEY });
  const over = new AbortController();
  const timesMs: number[] = [];
  const standing = new Set<number>();
  const follow = async (stream: number): Promise<void> => {
    try {
      for await (const { payload } of client.events({ types: ["build:submitted"], signal: over.signal })) {
        standing.add(stream);
        timesMs.push(performance.now() - Number(/"sentMs":([\d.]+)/.exec(JSON.stringify(payload))?.[1]));
      }
    } catch (error) {
      if (!over.signal.aborted) throw error;
    }
  };
  const submit = (): Promise<string> => client.submit({ kind: "never", payload: { sentMs: performance.now() } });
  const followers = Array.from({ length: streams }, (_, stream) => follow(stream));
  // A stream begins with what comes when it stands: until each has brought something, they do not all stand.
  await waitFor("every stream to stand", async () => {
    await submit();
    await pause(SETTLE_MS);
    return standing.size === streams;
  });
  timesMs.length = 0;
  const startedMs = performance.now();
  for (let sample = 1; sample <= samples; sample++) {
    await submit();
    await waitFor("the event at every stream", () => timesMs.length >= sample * streams);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  over.abort();
  await Promise.all(followers);
  const { p50_ms, p99_ms } = figuresOf(timesMs);
  return { streams, samples, p50_ms, p99_ms, per_s: Math.round(timesMs.length / seconds) };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
