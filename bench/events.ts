// `npm run bench -- events [--events N] [--window-ms N] [--json]`: what the history of events costs.
//
// - verify: the verifier alone, over events in memory: the chain, and the chain with the tree; in turns, medians.
// - archive: N events written to a real archive and verified there as a server does it, in a process whose memory is looked
//   at meanwhile: the median of the first quarter (after a warm-up) next to that of the last. N is 500,000 unless it is given.
// - since: pages of /api/events/since of one real server, one reader; and /api/events/verify of the same.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { EMPTY_CHAIN, MerkleFrontier, Verifier } from "../src/core/events/index.ts";
import { systemDigest } from "../src/drivers/system/digest.ts";
import { figuresOf, median } from "../test/chaos/figures.ts";
import { removeDirectory, temporaryDirectory } from "../test/servers/directories.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster } from "../test/servers/index.ts";
import { EventSource } from "./events-source.ts";
import { Generator } from "./generator.ts";
import { HttpConnection } from "./http-connection.ts";
import { counted, rounded, say } from "./stage.ts";

const EVENTS = 500_000;
const IN_MEMORY = 60_000;
const ROUNDS = 5;
const WINDOW_MS = 4_000;
const PAGE = 1_000;
const JOBS = 20_000;
const SUBMIT_BATCH = 1_000;
const BYTES_PER_MIB = 1024 * 1024;
const OUTPUT_BYTES_MAX = 64 * BYTES_PER_MIB;
const PROGRAM = fileURLToPath(new URL("./events-process.ts", import.meta.url));
const run = promisify(execFile);

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { events: { type: "string" }, "window-ms": { type: "string" }, json: { type: "boolean" } },
});
const events = counted("events", values.events, EVENTS);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);

const result = {
  bench: "events",
  events,
  verify: verifierAlone(Math.min(events, IN_MEMORY)),
  archive: await archive(),
  since: await since(),
};
const { verify, archive: kept, since: pages } = result;
console.log(`verify: ${verify.chain_per_s}/s the chain, ${verify.tree_per_s}/s with the tree`);
console.log(
  `archive of ${events}: written ${kept.written_per_s}/s, verified ${kept.verified_per_s}/s, ${kept.rss_mb.join(" → ")} MB`,
);
console.log(
  `since: ${pages.events_per_s}/s, ${pages.mb_per_s} MB/s, p50 ${pages.p50_ms} ms, p99 ${pages.p99_ms} ms a page`,
);
if (values.json === true) console.log(JSON.stringify(result));

function verifierAlone(count: number) {
  const source = new EventSource();
  const sealed = Array.from({ length: count }, () => source.next().bytes);
  const rates: { chain: number[]; tree: number[] } = { chain: [], tree: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const kind of ["chain", "tree"] as const) {
      const tree = kind === "tree" ? new MerkleFrontier(systemDigest) : undefined;
      const verifier = new Verifier({ checkpoint: EMPTY_CHAIN, digest: systemDigest, tree });
      const startedMs = performance.now();
      for (let at = 0; at < count; at++) verifier.feed(at + 1, sealed[at]!);
      const { valid } = verifier.end();
      if (!valid) throw new Error("what was sealed does not verify");
      // The first round warms up.
      if (round > 0) rates[kind].push((count * 1_000) / (performance.now() - startedMs));
    }
  }
  return { chain_per_s: Math.round(median(rates.chain)), tree_per_s: Math.round(median(rates.tree)) };
}

async function archive() {
  const directory = await temporaryDirectory("bench-events", undefined);
  try {
    const path = join(directory, "archive");
    say(`writing ${events} events`);
    const filled = await step<{ seconds: number; megabytes: number }>("fill", path, String(events));
    say(`verifying ${Math.round(filled.megabytes)} MB`);
    const seen = await step<{
      isIntact: boolean;
      events: number;
      longestSliceMs: number;
      seconds: number;
      rssMb: number[];
    }>("verify", path);
    if (!seen.isIntact || seen.events !== events) throw new Error(`${seen.events} of ${events} events were verified`);
    const quarter = Math.max(1, Math.floor(seen.rssMb.length / 4));
    const early = seen.rssMb.slice(quarter, 2 * quarter);
    return {
      megabytes: Math.round(filled.megabytes),
      written_per_s: Math.round(events / filled.seconds),
      verified_per_s: Math.round(events / seen.seconds),
      longest_slice_ms: rounded(seen.longestSliceMs, 1),
      rss_mb: [early.length === 0 ? seen.rssMb : early, seen.rssMb.slice(-quarter)].map((part) =>
        rounded(median(part), 1),
      ),
    };
  } finally {
    await removeDirectory(directory);
  }
}

async function step<T>(...args: readonly string[]): Promise<T> {
  const { stdout } = await run(process.execPath, ["--no-warnings", PROGRAM, ...args], { maxBuffer: OUTPUT_BYTES_MAX });
  return JSON.parse(stdout) as T;
}

async function since() {
  const cluster = await startTenureCluster({ nodes: 1, election: CALM_ELECTION });
  const generator = new Generator();
  try {
    const { url } = cluster.node(await cluster.leader());
    await generator.open("sdk", [url], OPERATOR_KEY);
    await generator.submit(Math.min(JOBS, events), SUBMIT_BATCH);
    const connection = new HttpConnection(url, OPERATOR_KEY);
    const timesMs: number[] = [];
    let [read, bytes, after] = [0, 0, 0];
    const startedMs = performance.now();
    while (performance.now() - startedMs < windowMs) {
      const askedMs = performance.now();
      const { status, body } = await connection.getRaw(`/api/events/since/${after}?limit=${PAGE}`);
      if (status !== 200) throw new Error(`a page was answered with ${status}: ${body.toString()}`);
      timesMs.push(performance.now() - askedMs);
      const through = Number(/"throughSequence":(\d+)\}$/.exec(body.subarray(-64).toString("latin1"))?.[1]);
      read += through - after;
      bytes += body.length;
      after = through - after < PAGE ? 0 : through;
    }
    const seconds = (performance.now() - startedMs) / 1_000;
    connection.close();
    const { p50_ms, p99_ms } = figuresOf(timesMs);
    return {
      page: PAGE,
      events_per_s: Math.round(read / seconds),
      mb_per_s: rounded(bytes / BYTES_PER_MIB / seconds, 1),
      p50_ms,
      p99_ms,
    };
  } finally {
    generator.end();
    await cluster.end();
  }
}
