// `npm run bench -- failover [--kind kill|stop|cut] [--runs N] [--peer-runs N] [--alone] [--json]`: the leader goes away
// under load; how long until the next write is acknowledged, next to etcd in the same run, in turns.
//
// - kill: kill -9. stop: SIGSTOP, and SIGCONT once the next leader serves. cut: nothing passes between the leader and the
//   others, in both directions; clients still reach it (Tenure alone: etcd's peers have no proxies between them).
// - The time runs from the signal until the client process has the first acknowledgement by another node. The load is 16
//   writers. Before each round all three nodes are there and have caught up.
// - detection_ms: until the first survivor campaigns, from its event log. discovery_ms: from the moment at which the
//   new leader may act until the client knows of it. Both are medians of whole milliseconds.

import { parseArgs } from "node:util";
import { nodeIdOf } from "../src/core/kit/ids.ts";
import { figuresOf, median } from "../test/chaos/figures.ts";
import type { KvNode } from "../test/kv/node-handle.ts";
import type { EventLine } from "../test/kv/messages.ts";
import { monotonicMs } from "./load-messages.ts";
import { caughtUp, counted, pause, rounded, say, type Stage, withStage } from "./stage.ts";

const RUNS = 300;
const RUNS_PER_PEER_RUN = 10;
const PEER_RUNS_MIN = 30;
const WRITERS = 16;
const PEER_PATIENCE_MS = 100;
const PROGRESS_EVERY = 10;
/** A round that took longer is explained. */
const SLOW_MS = 100;
const KINDS = ["kill", "stop", "cut"] as const;
type Kind = (typeof KINDS)[number];

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    kind: { type: "string" },
    runs: { type: "string" },
    "peer-runs": { type: "string" },
    alone: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const kind = kindOf(values.kind ?? "kill");
const runs = counted("runs", values.runs, RUNS);
const peerRuns = counted(
  "peer-runs",
  values["peer-runs"],
  Math.min(runs, Math.max(PEER_RUNS_MIN, Math.round(runs / RUNS_PER_PEER_RUN))),
);

const result = await withStage({ isProxied: kind === "cut", withPeer: values.alone !== true && kind !== "cut" }, main);
console.log(people(result));
if (values.json === true) console.log(JSON.stringify(result));

interface Failover {
  readonly ms: number;
  readonly detectionMs: number;
  readonly discoveryMs: number;
}

async function main(stage: Stage) {
  const ours: Failover[] = [];
  const theirs: number[] = [];
  const { tenure, load } = stage;
  const leader = (await tenure.leader()).name;
  await load.open({ side: "tenure", ports: tenure.ports, leader, patienceMs: null, refusalsMax: null });
  for (let run = 1; run <= runs; run++) {
    ours.push(await tenureRound(stage));
    // Spread evenly among ours.
    if (stage.etcd !== null && Math.floor((run * peerRuns) / runs) > theirs.length) theirs.push(await etcdRound(stage));
    if (run % PROGRESS_EVERY === 0) say(`${run}/${runs}: ${line(ours.map(({ ms }) => ms))}; etcd: ${line(theirs)}`);
  }
  const { count: _, ...figures } = figuresOf(ours.map(({ ms }) => ms));
  const { count: __, ...peerFigures } = figuresOf(theirs);
  return {
    bench: "failover",
    kind,
    tenure: {
      runs: ours.length,
      ...figures,
      detection_ms: median(ours.map(({ detectionMs }) => detectionMs)),
      discovery_ms: median(ours.map(({ discoveryMs }) => discoveryMs)),
    },
    peer: stage.peer === null ? null : { ...stage.peer, runs: theirs.length, ...peerFigures },
    ratio: stage.peer === null ? null : rounded(figures.p50_ms / peerFigures.p50_ms, 3),
  };
}

// ---- Tenure ----------------------------------------------------------------------------------------

async function tenureRound({ tenure, load }: Stage): Promise<Failover> {
  await caughtUp(tenure);
  await load.begin({ side: "tenure", writers: WRITERS });
  await pause();
  const victim = await tenure.leader();
  const lines: EventLine[] = [];
  tenure.onEvent = (event) => lines.push(event);
  await load.watch(victim.name);
  const struckWallMs = Date.now();
  const struckMs = monotonicMs();
  strike(tenure, victim);
  const { ackedMs, node, foundWallMs } = await load.awaited();
  await load.halt();
  await heal(tenure, victim);
  tenure.onEvent = undefined;
  const after = lines.filter(({ peer, atMs }) => peer !== victim.peer && atMs >= struckWallMs);
  const campaign = after.find(({ event }) => event === "campaign");
  const established = after.find(({ event, peer }) => event === "established" && peer === tenure.at(node).peer);
  const ms = ackedMs - struckMs;
  if (ms > SLOW_MS)
    say(`${Math.round(ms)} ms after ${victim.name}: ${after.map((one) => told(one, struckWallMs)).join(", ")}`);
  return {
    ms,
    detectionMs: (campaign?.atMs ?? Number.NaN) - struckWallMs,
    discoveryMs: Math.max(0, (foundWallMs ?? Number.NaN) - (established?.atMs ?? Number.NaN)),
  };
}

function strike(tenure: Stage["tenure"], victim: KvNode): void {
  switch (kind) {
    case "kill":
      victim.killAtOnce();
      return;
    case "stop":
      victim.signal("SIGSTOP");
      return;
    case "cut":
      for (const link of [...victim.links.values(), ...tenure.linksTo(victim.name)]) link.cut();
      return;
  }
}

async function heal(tenure: Stage["tenure"], victim: KvNode): Promise<void> {
  switch (kind) {
    case "kill":
      await victim.gone;
      await victim.start();
      return;
    case "stop":
      victim.signal("SIGCONT");
      return;
    case "cut":
      await Promise.all([...victim.links.values(), ...tenure.linksTo(victim.name)].map((link) => link.heal()));
      return;
  }
}

// ---- etcd ------------------------------------------------------------------------------------------

async function etcdRound({ etcd, load }: Stage): Promise<number> {
  const victim = await etcd!.leader();
  const { ports } = etcd!;
  await load.open({ side: "etcd", ports, leader: victim, patienceMs: PEER_PATIENCE_MS, refusalsMax: null });
  await load.begin({ side: "etcd", writers: WRITERS });
  await pause();
  await load.watch(victim);
  const struckMs = monotonicMs();
  etcd!.signal(victim, kind === "stop" ? "SIGSTOP" : "SIGKILL");
  const { ackedMs } = await load.awaited();
  await load.halt();
  if (kind === "stop") etcd!.signal(victim, "SIGCONT");
  else {
    await etcd!.gone(victim);
    etcd!.restart(victim);
  }
  return ackedMs - struckMs;
}

// ---- for people ------------------------------------------------------------------------------------

/** Where the time went, for whoever wants to know why one took long. */
function told({ peer, event, term, atMs }: EventLine, struckWallMs: number): string {
  return `${nodeIdOf(peer)} ${event} (term ${term}) at ${atMs - struckWallMs} ms`;
}

function line(timesMs: readonly number[]): string {
  if (timesMs.length === 0) return "nothing yet";
  const { p50_ms, p99_ms, max_ms } = figuresOf(timesMs);
  return `p50 ${p50_ms} ms, p99 ${p99_ms} ms, max ${max_ms} ms`;
}

function people({ tenure, peer, ratio }: Awaited<ReturnType<typeof main>>): string {
  const ours = `${tenure.runs} × ${kind}: p50 ${tenure.p50_ms} ms, p99 ${tenure.p99_ms} ms, max ${tenure.max_ms} ms`;
  const parts = `detected in ${tenure.detection_ms} ms, found in ${tenure.discovery_ms} ms`;
  if (peer === null) return `${ours}; ${parts}`;
  return `${ours}; ${parts}; ${peer.name} ${peer.version}, ${peer.runs} ×: p50 ${peer.p50_ms} ms, p99 ${peer.p99_ms} ms; ratio ${ratio}`;
}

function kindOf(text: string): Kind {
  const found = KINDS.find((one) => one === text);
  if (found === undefined) throw new RangeError(`--kind takes ${KINDS.join(", ")}, not ${text}`);
  return found;
}
