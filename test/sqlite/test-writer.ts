// A process that feeds views at the path that it is given, and says after which position: for a test that kills it.
// Every put has two jobs: one new one, and job 0 with the position in it, so that data and position can be compared.

import { openViews } from "../../src/drivers/sqlite/index.ts";
import { newJob } from "./test-job.ts";

const quiet = (): void => undefined;
const views = await openViews({
  path: process.argv[2]!,
  clusterId: "c1",
  logger: { info: quiet, warn: quiet, error: quiet },
});
let position = await views.position();
const feed = async (): Promise<void> => {
  for (;;) {
    const mine = ++position;
    await views.put(mine, [newJob(mine + 1), newJob(1, { jobEpoch: mine })], [], []);
    process.stdout.write(`${mine}\n`);
  }
};
await Promise.all([feed(), feed(), feed()]);
