// `npm run bench -- turns [--only WHAT] [--jobs N] [--agents N] [--streams N] [--seconds N] [--profile] [--json]`: the longest turn of the
// consensus thread of one real server while it does what might hold it: catches up on schedules after hours without a leader,
// leases from a million jobs that wait, takes snapshots of them, verifies their events, serves a thousand agents that poll, and
// a thousand streams. Design D10 allows 5 ms; a row above 50 is a failure.
//
// A turn is everything between two waits of the event loop, measured inside of the server, the collector's pauses included.

import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../test/servers/index.ts";
import { Generator } from "./generator.ts";
import { HttpConnection } from "./http-connection.ts";
import { counted, say } from "./stage.ts";
import { Agents, kindOf, Streams, submitted } from "./turns-load.ts";
import { type Row, Stage } from "./turns-stage.ts";

const JOBS = 1_000_000;
const AGENTS = 1_000;
const STREAMS = 1_000;
const SECONDS = 15;
const SCHEDULES = 40;
const FILL_BATCH = 1_000;
const WARM_MS_MAX = 5_000;
const MUST_MS = 50;
const GOAL_MS = 5;
/** A new leader answers long before, but on a machine that is stuck. */
const LEADER_MS_MAX = 120_000;
const CAUGHT_UP_MS_MAX = 60_000;

const ROWS = ["schedules", "pending", "snapshot", "verify", "agents", "streams"] as const;
type What = (typeof ROWS)[number];

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    only: { type: "string" },
    jobs: { type: "string" },
    agents: { type: "string" },
    streams: { type: "string" },
    seconds: { type: "string" },
    profile: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const only = values.only?.split(",") ?? ROWS;
for (const one of only)
  if (!(ROWS as readonly string[]).includes(one))
    throw new RangeError(`--only takes ${ROWS.join(", ")}, not ${JSON.stringify(one)}`);
const jobs = counted("jobs", values.jobs, JOBS);
const agents = counted("agents", values.agents, AGENTS);
const streams = counted("streams", values.streams, STREAMS);
const ms = counted("seconds", values.seconds, SECONDS) * 1_000;
const warmMs = Math.min(ms, WARM_MS_MAX);
const isWanted = (what: What): boolean => only.includes(what);

const rows: Row[] = [];
if (isWanted("schedules"))
  await onStage(measureSchedules, ["--import", new URL("./turns-past.ts", import.meta.url).href]);
if (isWanted("pending") || isWanted("snapshot") || isWanted("verify")) await onStage(measurePending);
if (isWanted("agents")) await onStage(measureAgents);
if (isWanted("streams")) await onStage(measureStreams);
for (const { what, longest_ms: longest, p99_ms: p99, longest_cpu_ms: cpu, turns } of rows) {
  const verdict = longest <= GOAL_MS ? "within the goal" : longest <= MUST_MS ? "allowed" : "TOO LONG";
  console.log(
    `${what.padEnd(10)} longest ${longest} ms (${cpu} ms of a processor), p99 ${p99} ms of ${turns}: ${verdict}`,
  );
}
if (values.json === true) console.log(JSON.stringify({ bench: "turns", must_ms: MUST_MS, goal_ms: GOAL_MS, rows }));

async function onStage(measure: (stage: Stage) => Promise<void>, flags: readonly string[] = []): Promise<void> {
  const stage = await Stage.start(flags, values.profile);
  try {
    await measure(stage);
  } finally {
    await stage.end();
  }
}

function take(row: Row): void {
  say(`${row.what}: longest ${row.longest_ms} ms, ${row.longest_cpu_ms} of a processor`);
  rows.push(row);
}

/** Written hours ago, as this node's clock says; then it starts again, and is the first that leads since. */
async function measureSchedules(stage: Stage): Promise<void> {
  const [node] = stage.cluster.nodes;
  for (let n = 0; n < SCHEDULES; n++) {
    const body = {
      cron: "* * * * *",
      time_zone: "Europe/Berlin",
      spec: { kind: "never" },
      overlap: "allow",
      catch_up: "all",
    };
    const { status } = await node!.call(`/v1/schedules/turns-${n}`, { method: "PUT", body, key: stage.key });
    if (status !== 200) throw new Error(`a schedule was answered with ${status}`);
  }
  // A minute may have passed meanwhile.
  const before = await pendingAt(stage);
  await stage.restart();
  await stage.cluster.waitForLeader(undefined, LEADER_MS_MAX);
  await waitFor("schedules that have caught up", async () => (await pendingAt(stage)) > before, CAUGHT_UP_MS_MAX).catch(
    () => say("schedules: nothing fired"),
  );
  await sleep(warmMs);
  say(`schedules: ${await pendingAt(stage)} jobs were made`);
  take(await stage.row("schedules"));
}

async function measurePending(stage: Stage): Promise<void> {
  const generator = new Generator();
  try {
    await generator.open("raw", [stage.url], stage.key);
    say(`submitting ${jobs} jobs`);
    await generator.submit(jobs, FILL_BATCH);
    // As many are submitted as are taken.
    const flow = { batch: 100, submitters: 2, lanes: 2, backlogMax: 400, isStanding: true };
    if (isWanted("pending")) {
      await generator.fullRate({ ...flow, warmMs: 0, ms: warmMs });
      const reads = ["/v1/stats", "/v1/queues", "/v1/agents", "/v1/jobs?limit=50"];
      take(
        await stage.measured("pending", async () => {
          const order = { isOver: false };
          const reading = read(stage, reads, order);
          await generator.fullRate({ ...flow, warmMs: 0, ms });
          order.isOver = true;
          await reading;
        }),
      );
    }
    if (isWanted("snapshot"))
      take(await stage.measured("snapshot", () => underLoad(generator, stage, "/v1/admin/snapshot", "POST")));
    if (isWanted("verify"))
      take(await stage.measured("verify", () => underLoad(generator, stage, "/api/events/verify", "GET")));
  } finally {
    generator.end();
  }
}

/** The call, again and again until the time is over, under a light load; at least once to its end. */
async function underLoad(generator: Generator, stage: Stage, path: string, method: "GET" | "POST"): Promise<void> {
  const [node] = stage.cluster.nodes;
  const endMs = performance.now() + ms;
  const light = generator.fullRate({
    batch: 10,
    submitters: 1,
    lanes: 1,
    backlogMax: 20,
    isStanding: true,
    warmMs: 0,
    ms,
  });
  let calls = 0;
  do {
    const { status, body } = await node!.call(path, { method, key: stage.key, limitMs: LEADER_MS_MAX });
    if (status !== 200) throw new Error(`${path} was answered with ${status}: ${JSON.stringify(body)}`);
    calls++;
  } while (performance.now() < endMs);
  await light;
  say(`${path}: ${calls} times`);
}

async function read(stage: Stage, paths: readonly string[], order: { readonly isOver: boolean }): Promise<void> {
  const connection = new HttpConnection(stage.url, stage.key);
  for (let n = 0; !order.isOver; n++) {
    await connection.getRaw(paths[n % paths.length]!);
    await sleep(100);
  }
  connection.close();
}

async function measureAgents(stage: Stage): Promise<void> {
  const crew = new Agents(stage.url, stage.key, agents);
  try {
    await waitFor("every agent to wait", async () => (await waitingAt(stage)) >= agents);
    const load = { everyMs: 10, batch: 2, kindOf: (n: number) => kindOf((n * 7) % agents) };
    await submitted(stage.url, stage.key, { ...load, ms: warmMs });
    take(
      await stage.measured("agents", async () => {
        const before = crew.committed;
        const made = await submitted(stage.url, stage.key, { ...load, ms });
        await waitFor("every job to be done", () => crew.committed >= before + made);
        say(`agents: ${crew.committed} jobs, ${crew.polls} polls`);
      }),
    );
  } finally {
    await crew.end();
  }
}

async function measureStreams(stage: Stage): Promise<void> {
  const queries = ["", "", "type=build:submitted", "entity_type=build"];
  const all = new Streams(stage.url, stage.key, streams, (n) => queries[n % queries.length]!);
  try {
    await all.connected();
    const load = { everyMs: 50, batch: 1, kindOf: () => "never" };
    await submitted(stage.url, stage.key, { ...load, ms: warmMs });
    take(
      await stage.measured("streams", async () => {
        const made = await submitted(stage.url, stage.key, { ...load, ms });
        const bytes = all.received.reduce((sum, one) => sum + one, 0);
        say(`streams: ${made} events, ${Math.round(bytes / 1e6)} MB`);
      }),
    );
  } finally {
    all.end();
  }
}

async function pendingAt(stage: Stage): Promise<number> {
  const [node] = stage.cluster.nodes;
  const { body } = await node!.call<{ by_state?: { pending: number } }>("/v1/stats", { key: stage.key });
  return body.by_state?.pending ?? 0;
}

async function waitingAt(stage: Stage): Promise<number> {
  const [node] = stage.cluster.nodes;
  const { body } = await node!.call<{ text: string }>("/metrics", { key: stage.key });
  return Number(/^tenure_leases_waiting (\d+)$/m.exec(body.text)?.[1] ?? 0);
}
