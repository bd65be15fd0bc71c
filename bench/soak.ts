// `npm run bench -- soak [--minutes N] [--clients N] [--json]`: three nodes at full load for long. Nobody may campaign, and
// memory and descriptors must not grow: the median of the last quarter next to that of the second (the first is for warming
// up, and for the log's snapshots to come into their stride). Linux only: it reads /proc.

import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { median } from "../test/chaos/figures.ts";
import type { KvNode } from "../test/kv/node-handle.ts";
import { counted, rounded, say, type Stage, withStage } from "./stage.ts";

const MINUTES = 30;
const CLIENTS = 64;
const WINDOW_MS = 10_000;
const KIB_PER_MIB = 1024;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { minutes: { type: "string" }, clients: { type: "string" }, json: { type: "boolean" } },
});
const minutes = counted("minutes", values.minutes, MINUTES);
const clients = counted("clients", values.clients, CLIENTS);
const windows = Math.max(4, Math.round((minutes * 60_000) / WINDOW_MS));

interface Sample {
  readonly rssMb: number;
  readonly descriptors: number;
}

const result = await withStage({ isProxied: false, withPeer: false }, main);
console.log(
  `${minutes} minutes, ${clients} clients: ${result.writes} writes, ${result.elections} elections, ${result.failed} failed`,
);
for (const node of result.nodes)
  console.log(`${node.name}: ${node.rss_mb.join(" → ")} MB, ${node.descriptors.join(" → ")} descriptors`);
if (values.json === true) console.log(JSON.stringify(result));

async function main({ tenure, load }: Stage) {
  const nodes = [...tenure.nodes.values()];
  const samples = new Map<string, Sample[]>(nodes.map(({ name }) => [name, []]));
  const leader = await tenure.leader();
  const termBefore = (await leader.tryStatus())?.term ?? 0;
  await load.open({ side: "tenure", ports: tenure.ports, leader: leader.name, patienceMs: null, refusalsMax: null });
  let writes = 0;
  let failed = 0;
  for (let window = 1; window <= windows; window++) {
    const one = await load.window({ side: "tenure", clients, warmMs: 0, ms: WINDOW_MS });
    writes += Math.round((one.perSecond * WINDOW_MS) / 1000);
    failed += one.failed;
    for (const node of nodes) samples.get(node.name)!.push(sampleOf(node));
    const memory = nodes.map(({ name }) => Math.round(samples.get(name)!.at(-1)!.rssMb)).join(", ");
    say(`${window}/${windows}: ${Math.round(one.perSecond)}/s, p99 ${one.p99Ms.toFixed(1)} ms, ${memory} MB`);
  }
  const termAfter = Math.max(
    ...(await Promise.all(nodes.map((node) => node.tryStatus()))).map((one) => one?.term ?? 0),
  );
  return {
    bench: "soak",
    minutes,
    clients,
    writes,
    failed,
    /** Terms that began meanwhile: nobody asked for any. */
    elections: termAfter - termBefore,
    nodes: nodes.map(({ name }) => ({ name, ...growthOf(samples.get(name)!) })),
  };
}

function sampleOf({ pid }: KvNode): Sample {
  const rssKib = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  return { rssMb: rssKib / KIB_PER_MIB, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

function growthOf(samples: readonly Sample[]) {
  const quarter = Math.floor(samples.length / 4);
  const [early, late] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)];
  const of = (part: readonly Sample[], figure: keyof Sample): number =>
    rounded(median(part.map((one) => one[figure])), 1);
  return {
    rss_mb: [of(early, "rssMb"), of(late, "rssMb")],
    descriptors: [of(early, "descriptors"), of(late, "descriptors")],
  };
}
