// `npm run bench -- transfer [--runs N] [--peer-runs N] [--forced N] [--alone] [--json]`: leadership is handed over as
// planned, under load; how long nobody's write is acknowledged, and who is refused, next to etcd in the same run, in turns.
//
// - The time is the longest one between two acknowledgements, from the request for the transfer until a moment after its
//   end; 16 writers. Without any transfer it would be the time of a few writes.
// - A writer of Tenure's tries a refused write once more, when it hears who leads; one that is refused again counts as
//   `refused`. An outcome that is unknown is not a refusal.
// - detection_ms: until the successor campaigns. discovery_ms: from the moment at which it may act until the client knows.
// - --forced N: so many elections in a row under the same load, each by a forced transfer (the successor must win a pre-vote
//   and a vote against the will of a living leader), every 20th by kill -9 instead; how many had a leader that may act
//   within one second of the request.

import { parseArgs } from "node:util";
import { nodeIdOf } from "../src/core/kit/ids.ts";
import { figuresOf, median } from "../test/chaos/figures.ts";
import type { EventLine } from "../test/kv/messages.ts";
import { waitFor } from "../test/servers/index.ts";
import { caughtUp, counted, pause, rounded, say, type Stage, withStage } from "./stage.ts";

const RUNS = 100;
const RUNS_PER_PEER_RUN = 2;
const WRITERS = 16;
const FORCED_KILL_EVERY = 20;
const FORCED_LIMIT_MS = 1_000;
const PROGRESS_EVERY = 20;
const AFTERWARDS_MS = 60;
/** A transfer that took longer is explained. */
const SLOW_MS = 50;
const PEER_PATIENCE_MS = 100;
/** The first attempt and one retry. */
const REFUSALS_MAX = 2;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    runs: { type: "string" },
    "peer-runs": { type: "string" },
    forced: { type: "string" },
    alone: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const runs = counted("runs", values.runs, RUNS);
const peerRuns = counted("peer-runs", values["peer-runs"], Math.max(1, Math.round(runs / RUNS_PER_PEER_RUN)));
const forced = values.forced === undefined ? 0 : counted("forced", values.forced, 1);

const result = await withStage({ isProxied: false, withPeer: values.alone !== true }, main);
console.log(people(result));
if (values.json === true) console.log(JSON.stringify(result));

interface Transfer {
  readonly ms: number;
  readonly refused: number;
  readonly detectionMs: number;
  readonly discoveryMs: number;
}

async function main(stage: Stage) {
  const { tenure, load } = stage;
  const leader = (await tenure.leader()).name;
  await load.open({ side: "tenure", ports: tenure.ports, leader, patienceMs: null, refusalsMax: REFUSALS_MAX });
  const ours: Transfer[] = [];
  const theirs: number[] = [];
  for (let run = 1; run <= runs; run++) {
    ours.push(await tenureRound(stage));
    if (stage.etcd !== null && Math.floor((run * peerRuns) / runs) > theirs.length) theirs.push(await etcdRound(stage));
    if (run % PROGRESS_EVERY === 0) say(`${run}/${runs}: p99 ${figuresOf(ours.map(({ ms }) => ms)).p99_ms} ms`);
  }
  const { count: _, ...figures } = figuresOf(ours.map(({ ms }) => ms));
  const { count: __, ...peerFigures } = figuresOf(theirs);
  return {
    bench: "transfer",
    tenure: {
      runs: ours.length,
      ...figures,
      detection_ms: median(ours.map(({ detectionMs }) => detectionMs)),
      discovery_ms: median(ours.map(({ discoveryMs }) => discoveryMs)),
      refused: ours.reduce((sum, one) => sum + one.refused, 0),
    },
    peer: stage.peer === null ? null : { ...stage.peer, runs: theirs.length, ...peerFigures },
    ratio: stage.peer === null ? null : rounded(figures.p50_ms / peerFigures.p50_ms, 3),
    forced: forced === 0 ? null : await forcedElections(stage, forced),
  };
}

// ---- planned ---------------------------------------------------------------------------------------

async function tenureRound({ tenure, load }: Stage): Promise<Transfer> {
  await caughtUp(tenure);
  await load.begin({ side: "tenure", writers: WRITERS });
  await pause();
  const before = await tenure.leader();
  const lines: EventLine[] = [];
  tenure.onEvent = (event) => lines.push(event);
  await load.record();
  await load.watch(before.name);
  const askedWallMs = Date.now();
  const reply = await before.ask({ ask: "transfer" });
  if (reply.ask !== "transfer" || !reply.result.success) throw new Error(`no transfer: ${JSON.stringify(reply)}`);
  const { foundWallMs } = await load.awaited();
  await afterwards();
  const { atMs, refused } = await load.acks();
  await load.halt();
  tenure.onEvent = undefined;
  const others = lines.filter(({ peer }) => peer !== before.peer);
  const of = (event: EventLine["event"]): number => others.find((one) => one.event === event)?.atMs ?? Number.NaN;
  const ms = longestGap(atMs);
  if (ms > SLOW_MS) {
    const story = lines.map(
      ({ peer, event, atMs: wallMs }) => `${nodeIdOf(peer)} ${event} at ${wallMs - askedWallMs} ms`,
    );
    say(`${Math.round(ms)} ms from ${before.name}: ${story.join(", ")}`);
  }
  return {
    ms,
    refused,
    detectionMs: of("campaign") - askedWallMs,
    discoveryMs: Math.max(0, (foundWallMs ?? Number.NaN) - of("established")),
  };
}

async function etcdRound({ etcd, load }: Stage): Promise<number> {
  const before = await etcd!.leader();
  const { ports } = etcd!;
  await load.open({ side: "etcd", ports, leader: before, patienceMs: PEER_PATIENCE_MS, refusalsMax: null });
  await load.begin({ side: "etcd", writers: WRITERS });
  await pause();
  await load.record();
  const target = Object.keys(ports).find((name) => name !== before)!;
  const isMoved = await etcd!.moveLeader(before, target);
  await afterwards();
  const { atMs } = await load.acks();
  await load.halt();
  if (!isMoved) throw new Error("etcd did not move its leader");
  return longestGap(atMs);
}

function longestGap(atMs: readonly number[]): number {
  let longest = 0;
  for (let at = 1; at < atMs.length; at++) longest = Math.max(longest, atMs[at]! - atMs[at - 1]!);
  return longest;
}

function afterwards(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, AFTERWARDS_MS));
}

// ---- forced ----------------------------------------------------------------------------------------

async function forcedElections({ tenure, load }: Stage, count: number) {
  const timesMs: number[] = [];
  let kills = 0;
  await caughtUp(tenure);
  await load.begin({ side: "tenure", writers: WRITERS });
  for (let done = 1; done <= count; done++) {
    const leader = await tenure.leader();
    const { term } = await leader.status();
    const established = Promise.withResolvers<EventLine>();
    tenure.onEvent = (event) => {
      if (event.event === "established" && event.term > term) established.resolve(event);
    };
    const askedWallMs = Date.now();
    const isKill = done % FORCED_KILL_EVERY === 0;
    if (isKill) leader.killAtOnce();
    else void leader.ask({ ask: "transfer", force: true }).catch(() => undefined);
    timesMs.push((await established.promise).atMs - askedWallMs);
    tenure.onEvent = undefined;
    if (isKill) {
      kills++;
      await leader.gone;
      await leader.start();
      await caughtUpUnderLoad(tenure, leader.name);
    }
    if (done % (PROGRESS_EVERY * 5) === 0) say(`forced ${done}/${count}: max ${Math.max(...timesMs)} ms`);
  }
  await load.halt();
  const { p50_ms, p99_ms, max_ms } = figuresOf(timesMs);
  const within = timesMs.filter((ms) => ms <= FORCED_LIMIT_MS).length;
  return { elections: count, kills, within_1s: within, share: rounded(within / count, 4), p50_ms, p99_ms, max_ms };
}

async function caughtUpUnderLoad(tenure: Stage["tenure"], name: string): Promise<void> {
  await waitFor(`${name} to follow again`, async () => {
    const leader = await (await tenure.leader()).tryStatus();
    const { peer } = tenure.at(name);
    return leader !== null && peer !== null && (leader.match[peer] ?? 0) + WRITERS * 64 >= leader.commit;
  });
}

// ---- for people ------------------------------------------------------------------------------------

function people({ tenure, peer, ratio, forced: elections }: Awaited<ReturnType<typeof main>>): string {
  const ours = `${tenure.runs} transfers: p50 ${tenure.p50_ms} ms, p99 ${tenure.p99_ms} ms, max ${tenure.max_ms} ms`;
  const theirs =
    peer === null
      ? ""
      : `; etcd ${peer.version}, ${peer.runs} ×: p50 ${peer.p50_ms} ms, p99 ${peer.p99_ms} ms; ratio ${ratio}`;
  const more =
    elections === null
      ? ""
      : `; ${elections.within_1s} of ${elections.elections} forced elections within 1 s, max ${elections.max_ms} ms`;
  return `${ours}, ${tenure.refused} refused after one retry${theirs}${more}`;
}
