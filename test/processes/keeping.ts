// An agent in small, for keeper.test.ts: a keeper, and one job, the script in its second argument. Says who they are, and then
// does as its first argument says.

import { randomUUID } from "node:crypto";
import { Keeper, openProcesses } from "../../src/drivers/processes/index.ts";

/** `calm`: long enough that a busy machine is not taken for an agent that hangs. */
const LEASES_MS = { calm: 10_000, others: 3_000 };
const HANG_MS = 60_000;

const [how, script = "exec sleep 300"] = process.argv.slice(2);
const cookie = { name: "TENURE_AGENT_PROCESS", value: randomUUID() };
const keeper = new Keeper({
  cookie,
  leaseMs: how === "calm" ? LEASES_MS.calm : LEASES_MS.others,
  hasSupervisor: how === "orphan",
  onTrouble: (what) => console.log(JSON.stringify({ trouble: what })),
});
const started = await openProcesses({ onGroup: (group, isAlive) => keeper.group(group, isAlive) }).start({
  command: ["sh", "-c", script],
  environment: { PATH: process.env["PATH"] ?? "", [cookie.name]: cookie.value },
  directory: null,
  cookie: { name: "TENURE_JOB_COOKIE", value: randomUUID() },
  mayStart: () => true,
  onOutput: () => undefined,
});
if (started.kind === "refused") throw new Error(started.message);
console.log(JSON.stringify({ agent: process.pid, job: started.pid, keeper: keeper.pid }));
setInterval(() => undefined, HANG_MS);
// The keeper has heard of the job, and the job is what it is to be: SIGUSR2 is the test's word.
process.on("SIGUSR2", () => {
  const untilMs = Date.now() + HANG_MS;
  if (how === "spin") while (Date.now() < untilMs);
  // Not stopped: it sleeps in a call that does not return.
  if (how === "hang" || how === "orphan") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HANG_MS);
});
