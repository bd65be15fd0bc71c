// An agent in small, for keeper.test.ts: a keeper, and one job. Says who they are, and then does as it is told by its argument.

import { randomUUID } from "node:crypto";
import { Keeper, openProcesses } from "../../src/drivers/processes/index.ts";

const LEASE_MS = 3_000;
const HANG_MS = 60_000;

const [how] = process.argv.slice(2);
const cookie = { name: "TENURE_AGENT_PROCESS", value: randomUUID() };
const keeper = new Keeper({
  cookie,
  leaseMs: LEASE_MS,
  hasSupervisor: how === "orphan",
  onTrouble: (what) => console.log(JSON.stringify({ trouble: what })),
});
const started = await openProcesses({ onGroup: (group, isAlive) => keeper.group(group, isAlive) }).start({
  command: ["sleep", "300"],
  environment: { PATH: process.env["PATH"] ?? "", [cookie.name]: cookie.value },
  directory: null,
  cookie: { name: "TENURE_JOB_COOKIE", value: randomUUID() },
  mayStart: () => true,
  onOutput: () => undefined,
});
if (started.kind === "refused") throw new Error(started.message);
console.log(JSON.stringify({ agent: process.pid, job: started.pid, keeper: keeper.pid }));
// What was said has left, and the keeper has heard of the job.
await new Promise((resolve) => setTimeout(resolve, 300));
if (how === "idle") setInterval(() => undefined, HANG_MS);
// Not stopped: it sleeps in a call that does not return.
else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HANG_MS);
