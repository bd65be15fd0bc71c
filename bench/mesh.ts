// `npm run bench -- mesh [--sites 5,10,25] [--events N] [--rate N] [--seconds N] [--million] [--alone] [--json]`: what sites cost one another.
//
// - sites: 200 events a second are committed at one of n sites, ten in a submission. From the answer to a submission until every site has applied
//   its events, as a probe at each site is sent them (bench/mesh-probe.ts).
// - append, join, heal, boot, audit, memory: bench/mesh-history.ts. --million: with a million events.
// - idle: bench/mesh-idle.ts. hostile: bench/mesh-flood.ts.
// - hypercore (bench/mesh-hypercore.ts): as many blocks of the same size.

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { figuresOf } from "../test/chaos/figures.ts";
import { flooded } from "./mesh-flood.ts";
import { BATCH, history } from "./mesh-history.ts";
import { hypercore } from "./mesh-hypercore.ts";
import { idle } from "./mesh-idle.ts";
import { introduceProbe, Probe } from "./mesh-probe.ts";
import { MeshTree } from "./mesh-sites.ts";
import { counted, rounded, say } from "./stage.ts";

const EVENTS = 100_000;
const MILLION = 1_000_000;
const SITES = "5,10,25";
const RATE = 200;
const SECONDS = 20;
const PER_SUBMISSION = 10;
/** Before what is measured: programs that have just started are still being compiled. */
const WARM_MS = 3_000;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    sites: { type: "string" },
    events: { type: "string" },
    rate: { type: "string" },
    seconds: { type: "string" },
    million: { type: "boolean" },
    alone: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const events = counted("events", values.events, values.million === true ? MILLION : EVENTS);
const rate = counted("rate", values.rate, RATE);
const seconds = counted("seconds", values.seconds, SECONDS);

const sites = [];
for (const text of (values.sites ?? SITES).split(",")) sites.push(await spread(counted("sites", text, 1)));
const { bytes_per_event, ...one } = await history(events);
const idleLinks = await idle();
const hostile = await flooded();
const peer = values.alone === true ? null : await hypercore(events, BATCH, bytes_per_event);
const peers =
  peer === null
    ? []
    : [
        {
          peer: "hypercore",
          version: peer.version,
          append_ratio: rounded(one.append_per_s / peer.append_per_s, 2),
          replicate_ratio: rounded(one.intake_per_s / peer.replicate_per_s, 2),
        },
      ];
const result = { bench: "mesh", sites, ...one, idle: idleLinks, hostile, peers };
for (const { n, p50_ms, p99_ms } of sites)
  console.log(`${n} sites: p50 ${p50_ms} ms, p99 ${p99_ms} ms until all have it`);
console.log(`one site commits ${one.append_per_s} events/s, takes ${one.intake_per_s}/s of another's`);
console.log(
  `join with ${one.join.events}: ${one.join.s} s (${one.memory.joiner_mb_first_half} MB in the first half, ${one.memory.joiner_mb_second_half} MB in the second); boot ${one.boot.s} s; audit ${one.audit.s} s, ${one.audit.mb} MB`,
);
console.log(
  `heal of ${one.heal.events}: ${one.heal.s} s (linked after ${one.heal.linked_s} s), ${one.heal.requests} answers`,
);
console.log(
  `${idleLinks.links} idle links: ${idleLinks.over_unlinked.mb} MB, ${idleLinks.over_unlinked.core_percent} % of a core; over standalone ${idleLinks.over_standalone.mb} MB, ${idleLinks.over_standalone.core_percent} %`,
);
console.log(`a hostile peer (${hostile.pages_per_s} bad pages/s): ${hostile.effect_percent} % fewer own jobs`);
if (peer !== null) console.log(`hypercore ${peer.version}: ${peer.append_per_s}/s, ${peer.replicate_per_s}/s`);
if (values.json === true) console.log(JSON.stringify(result));

async function spread(n: number) {
  say(`${n} sites`);
  const tree = await MeshTree.start(n);
  const probes: Probe[] = [];
  try {
    await introduceProbe(tree.sites);
    await tree.linked();
    const line = await tree.author.ownLine();
    const size = await tree.measured[0]!.sizeOf(line);
    for (const site of tree.sites.slice(1)) probes.push(await Probe.open(site, line, size));
    const timesMs: Promise<number>[] = [];
    const fromMs = performance.now();
    const everyMs = (PER_SUBMISSION * 1_000) / rate;
    const endMs = fromMs + WARM_MS + seconds * 1_000;
    for (let turn = 1; performance.now() < endMs; turn++) {
      await tree.author.submit(PER_SUBMISSION);
      const committedMs = performance.now();
      const reached = Promise.all(probes.map((probe) => probe.reached(size + turn * PER_SUBMISSION)));
      if (committedMs > fromMs + WARM_MS) timesMs.push(reached.then((atMs) => Math.max(...atMs) - committedMs));
      await sleep(Math.max(0, fromMs + turn * everyMs - performance.now()));
    }
    const { p50_ms, p99_ms, count } = figuresOf(await Promise.all(timesMs));
    return { n, samples: count, p50_ms, p99_ms };
  } finally {
    for (const probe of probes) probe.close();
    await tree.end();
  }
}
