// `npm run bench -- mesh [--sites 5,10,25] [--events N] [--rate N] [--seconds N] [--million] [--alone] [--json]`: what sites cost one another.
//
// - sites: 200 events a second are committed at one of n sites. From the answer to a submission until every site has applied what the author
//   had then (a little more than the submission's own events): each site is polled every 2 ms, from one sample at a time.
// - append: events a second that one site commits, in submissions of 500 jobs.
// - join: a site with an empty disk and all of those events; intake_per_s is its rate from the first event to the last.
// - heal: the same site is cut off while a tenth as many are committed; how long until it has them, and how many answers that took.
// - boot: that site is killed and started again. audit: `tenure mesh audit` of the author's line. --million: all of it with a million events.
// - hypercore (bench/mesh-hypercore.ts): as many blocks of the same size.

import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { figuresOf } from "../test/chaos/figures.ts";
import { COMPILE_CACHE } from "../test/servers/compile-cache.ts";
import { OPERATOR_KEY, startProxy, type TcpProxy, waitFor } from "../test/servers/index.ts";
import { TENURE_MAIN } from "../test/servers/tenure-node.ts";
import { hypercore } from "./mesh-hypercore.ts";
import { type MeasuredSite, MeshTree } from "./mesh-sites.ts";
import { counted, rounded, say } from "./stage.ts";

const EVENTS = 100_000;
const MILLION = 1_000_000;
const SITES = "5,10,25";
const RATE = 200;
const SECONDS = 30;
const PER_SUBMISSION = 10;
const BATCH = 500;
/** Of the events, so many are missing after a cut. */
const HEAL_PART = 10;
const LIMIT_MS = 900_000;
const JOINER = "joiner";
const run = promisify(execFile);

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
const one = await history();
const peer = values.alone === true ? null : await hypercore(events, BATCH, one.bytes_per_event);
const result = {
  bench: "mesh",
  sites,
  append_per_s: one.append_per_s,
  intake_per_s: one.intake_per_s,
  join: one.join,
  heal: one.heal,
  boot: one.boot,
  audit: one.audit,
  peers:
    peer === null
      ? []
      : [
          {
            peer: "hypercore",
            version: peer.version,
            append_ratio: rounded(one.append_per_s / peer.append_per_s, 2),
            replicate_ratio: rounded(one.intake_per_s / peer.replicate_per_s, 2),
          },
        ],
};
for (const { n, p50_ms, p99_ms } of sites)
  console.log(`${n} sites: p50 ${p50_ms} ms, p99 ${p99_ms} ms until all have it`);
console.log(`one site commits ${one.append_per_s} events/s, takes ${one.intake_per_s}/s of another's`);
console.log(`join with ${one.join.events}: ${one.join.s} s; boot ${one.boot.s} s; audit ${one.audit.s} s`);
console.log(`heal of ${one.heal.events}: ${one.heal.s} s, ${one.heal.requests} answers`);
if (peer !== null) console.log(`hypercore ${peer.version}: ${peer.append_per_s}/s, ${peer.replicate_per_s}/s`);
if (values.json === true) console.log(JSON.stringify(result));

async function spread(n: number) {
  say(`${n} sites`);
  const tree = await MeshTree.start(n);
  try {
    const line = await tree.author.ownLine();
    const timesMs: number[] = [];
    let sampling: Promise<void> | null = null;
    const fromMs = performance.now();
    const everyMs = (PER_SUBMISSION * 1_000) / rate;
    for (let turn = 1; performance.now() - fromMs < seconds * 1_000; turn++) {
      await tree.author.submit(PER_SUBMISSION);
      const committedMs = performance.now();
      sampling ??= sample(tree, line, committedMs).then((ms) => {
        timesMs.push(ms);
        sampling = null;
      });
      await sleep(Math.max(0, fromMs + turn * everyMs - performance.now()));
    }
    await sampling;
    const { p50_ms, p99_ms, count } = figuresOf(timesMs);
    return { n, samples: count, p50_ms, p99_ms };
  } finally {
    await tree.end();
  }
}

async function sample(tree: MeshTree, line: string, committedMs: number): Promise<number> {
  const size = await tree.measured[0]!.sizeOf(line);
  await Promise.all(tree.measured.slice(1).map((site) => site.has(line, size)));
  return performance.now() - committedMs;
}

async function history() {
  const tree = await MeshTree.start(1, [JOINER]);
  const { author } = tree;
  let proxy: TcpProxy | null = null;
  try {
    say(`${events} events`);
    const line = await author.ownLine();
    const append_per_s = await append(tree, events);
    const size = await tree.measured[0]!.sizeOf(line);
    const { hostname, port } = new URL(author.url);
    proxy = await startProxy({ host: hostname, port: Number(port) });
    say("join");
    const startedMs = performance.now();
    const joiner = await tree.add(JOINER, [], `http://127.0.0.1:${proxy.port}`);
    await joiner.has(line, 1);
    const firstMs = performance.now();
    const had = await joiner.sizeOf(line);
    await joiner.has(line, size);
    const endMs = performance.now();
    const join = { events: size, s: rounded((endMs - startedMs) / 1_000, 2) };
    const intake_per_s = Math.round(((size - had) * 1_000) / Math.max(1, endMs - firstMs));
    const heal = await healed(tree, joiner, proxy, line);
    const boot = await booted(joiner, line);
    const audit = await audited(tree);
    const bytes_per_event = await bytesOf(tree, line);
    return { append_per_s, intake_per_s, join, heal, boot, audit, bytes_per_event };
  } finally {
    await tree.end();
    await proxy?.end();
  }
}

async function append(tree: MeshTree, count: number): Promise<number> {
  const startedMs = performance.now();
  for (let made = 0; made < count; made += BATCH) await tree.author.submit(Math.min(BATCH, count - made));
  return Math.round((count * 1_000) / (performance.now() - startedMs));
}

async function healed(tree: MeshTree, joiner: MeasuredSite, proxy: TcpProxy, line: string) {
  say("heal");
  proxy.cut("both", "refused");
  await append(tree, Math.ceil(events / HEAL_PART));
  const size = await tree.measured[0]!.sizeOf(line);
  const missing = size - (await joiner.sizeOf(line));
  let requests = 0;
  proxy.rewrite = (bytes) => {
    requests += bytes.toString("latin1").split("HTTP/1.1 ").length - 1;
    return bytes;
  };
  const startedMs = performance.now();
  await proxy.heal();
  await joiner.has(line, size);
  return { events: missing, requests, s: rounded((performance.now() - startedMs) / 1_000, 2) };
}

async function booted({ site }: MeasuredSite, line: string) {
  say("boot");
  const size = (await site.heads()).get(line)?.size ?? 0;
  await site.node.kill9();
  const startedMs = performance.now();
  site.node.start();
  const isBack = async (): Promise<boolean> =>
    ((await site.heads().catch(() => null))?.get(line)?.size ?? 0) >= size &&
    (await site.node.view())?.role === "LEADER";
  await waitFor("the site to be back", isBack, LIMIT_MS);
  return { events: size, s: rounded((performance.now() - startedMs) / 1_000, 2) };
}

async function audited(tree: MeshTree) {
  say("audit");
  const { url } = tree.author;
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE };
  const startedMs = performance.now();
  const args = ["--no-warnings", TENURE_MAIN, "mesh", "audit", url, "--json", "--key", OPERATOR_KEY];
  const { stdout } = await run(process.execPath, args, { env, timeout: LIMIT_MS });
  const s = rounded((performance.now() - startedMs) / 1_000, 2);
  const { valid, lines } = JSON.parse(stdout) as { valid: boolean; lines: readonly { through: number }[] };
  if (!valid) throw new Error(`the audit: ${stdout}`);
  return { events: lines.at(-1)!.through, s };
}

/** Of the last event, as it travels. */
async function bytesOf(tree: MeshTree, line: string): Promise<number> {
  const size = await tree.measured[0]!.sizeOf(line);
  const path = `/v1/mesh/pages?line=${line}&after=${size - 1}`;
  const { page } = await tree.author.get<{ page: { items: readonly string[] } | null }>(path);
  return Buffer.byteLength(page?.items.at(-1) ?? "");
}
