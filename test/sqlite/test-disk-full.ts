// Feeds views in a directory on a small disk of its own until it is full, makes room, goes on; prints what came of it.

import { rmSync, writeFileSync } from "node:fs";
import { statfsSync } from "node:fs";
import { join } from "node:path";
import { TenureError } from "../../src/core/kit/errors.ts";
import { openViews, type SqliteViews } from "../../src/drivers/sqlite/index.ts";
import { newJob } from "./test-job.ts";

const directory = process.argv[2]!;
const filler = join(directory, "filler");
const quiet = (): void => undefined;
const logger = { info: quiet, warn: quiet, error: quiet };
const open = (name: string): Promise<SqliteViews> =>
  openViews({ path: join(directory, name), clusterId: "c1", logger });

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "none";
  } catch (error) {
    return TenureError.is(error) ? error.code : String(error);
  }
}

function put(views: SqliteViews, position: number): Promise<void> {
  const payload = `word${position} ${"x".repeat(20_000)}`;
  return views.put(position, [newJob(position + 1, {}, { payload }), newJob(1, { jobEpoch: position })], [], []);
}

async function isWhole(views: SqliteViews): Promise<boolean> {
  const position = await views.position();
  const job = (await views.get("job-1")).job;
  const last = await views.list({ limit: 1, search: `word${position}` });
  return job!.jobEpoch === position && last.jobs[0]?.id === `job-${position + 1}`;
}

function fill(): void {
  for (let size = 1024 * 1024; size >= 1; size = Math.floor(size / 4)) {
    try {
      for (;;) {
        const { bavail, bsize } = statfsSync(directory);
        if (bavail === 0) return;
        writeFileSync(filler, Buffer.alloc(Math.min(size, bavail * bsize)), { flag: "a" });
      }
    } catch {
      // Smaller pieces may still fit.
    }
  }
}

writeFileSync(filler, Buffer.alloc(2 * 1024 * 1024));
const views = await open("views.db");
let position = 1;
let refusal = "none";
let behind = "none";
while (refusal === "none" && position < 10_000) {
  [refusal, behind] = await Promise.all([codeOf(put(views, position)), codeOf(put(views, position + 1))]);
  if (behind === "none") position += 2;
}
const isWholeWhileFull = await isWhole(views);
position = (await views.position()) + 1;
// Two were refused together: what they had begun to write may leave room for one.
let stillFull = "none";
for (let left = 3; left > 0 && stillFull === "none"; left--) {
  stillFull = await codeOf(put(views, position));
  if (stillFull === "none") position++;
}
rmSync(filler);
await views.position();
for (let i = 0; i < 10; i++) await put(views, position + i);
const isWholeAfterwards = (await views.position()) === position + 9 && (await isWhole(views));
await views.close();

rmSync(join(directory, "views.db"));
fill();
const late = await open("late.db");
const openedOnAFullDisk = await codeOf(late.position());
rmSync(filler);
await late.position();
await put(late, 7);
const openedLater = await late.position();
await late.close();
process.stdout.write(
  JSON.stringify({ refusal, behind, stillFull, isWholeWhileFull, isWholeAfterwards, openedOnAFullDisk, openedLater }),
);
