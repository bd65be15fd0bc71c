// One step of the benchmark of events, in a process of its own so that its memory is only its own:
//   fill DIRECTORY EVENTS      seals events and appends them to an archive, on the disk, synced
//   verify DIRECTORY           goes through all of it as a server does, and looks at its memory meanwhile
// Prints one JSON object.

import { systemClock } from "../src/drivers/system/clock.ts";
import { systemDigest } from "../src/drivers/system/digest.ts";
import { openDataDirectory } from "../src/drivers/disk/index.ts";
import { Archive } from "../src/logs/index.ts";
import { EventSource } from "./events-source.ts";

const APPENDED_AT_ONCE = 1_000;
const DURABLE_EVERY = 50_000;
const SAMPLE_MS = 50;
const BYTES_PER_MIB = 1024 * 1024;

const [step, path, count] = process.argv.slice(2) as [string, string, string | undefined];
const directory = await openDataDirectory(path);
const { archive } = await Archive.open({
  disk: directory.disk,
  digest: systemDigest,
  clock: systemClock,
  failed: (error) => {
    throw error;
  },
});
console.log(JSON.stringify(step === "fill" ? await fill(Number(count)) : await verify()));
process.exit();

async function fill(events: number): Promise<object> {
  const source = new EventSource();
  const startedMs = performance.now();
  let bytes = 0;
  for (let made = 0; made < events; made += APPENDED_AT_ONCE) {
    const batch = Array.from({ length: Math.min(APPENDED_AT_ONCE, events - made) }, () => source.next());
    for (const one of batch) bytes += one.bytes.length;
    archive.append(batch);
    if ((made + APPENDED_AT_ONCE) % DURABLE_EVERY === 0) await archive.durable(archive.lastSequence);
  }
  await archive.durable(archive.lastSequence);
  return { seconds: (performance.now() - startedMs) / 1_000, megabytes: bytes / BYTES_PER_MIB };
}

async function verify(): Promise<object> {
  const rssMb: number[] = [];
  const sample = setInterval(() => rssMb.push(process.memoryUsage.rss() / BYTES_PER_MIB), SAMPLE_MS);
  const startedMs = performance.now();
  for await (const one of archive.verify()) {
    if (one.kind === "broken" || one.kind === "missing") throw new Error(JSON.stringify(one));
    if (one.kind !== "end") continue;
    clearInterval(sample);
    const { isIntact, events, longestSliceMs } = one;
    return { isIntact, events, longestSliceMs, seconds: (performance.now() - startedMs) / 1_000, rssMb };
  }
  throw new Error("the verification ended without a result");
}
