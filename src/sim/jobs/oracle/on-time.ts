// The last minute of a run, when faults are over and every job is: what clocks that are off have left behind.
//
// - A leader whose clock is off hands over to one whose is not (one).
// - The next event has the right time, also where nobody ran for days (near, one, gap).
// - Where clocks lie anyhow (some, most), all jump by a day together, so that they are believed, and leadership changes: a request is
//   still the same under its key, and no finished job is forgotten for it.

import type { Request } from "../../../ports/jobs.ts";
import type { JobsCluster } from "../cluster.ts";

/** Longer than it takes to find that a clock is off, and to hand over. */
const WITHIN_MS = 30_000;
const ASK_AGAIN_MS = 500;
/** Longer than from one look for jobs whose retention is over to the next. */
const RETENTION_LOOK_MS = 12_000;
const JUMP_MS = 25 * 3_600_000;

export async function onTime(cluster: JobsCluster, stepsMax: number): Promise<string | null> {
  const { world, clocks } = cluster;
  if (world.findings.length > 0) return null;
  const rest = (forMs: number): Promise<unknown> =>
    world.run(() => world.findings.length > 0, { untilMs: world.nowMs + forMs, stepsMax });
  const within = { untilMs: world.nowMs + WITHIN_MS, stepsMax };
  await world.run(() => cluster.leader() !== undefined && clocks.offLeader() === null, within);
  const off = clocks.offLeader();
  if (off !== null) return `${off} still leads ${WITHIN_MS} ms after its clock went off`;
  if (world.nowMs < clocks.settledAtMs) await rest(clocks.settledAtMs - world.nowMs);
  const keyed: Request = { caller: "end", idempotencyKey: "end", bodyHash: "end" };
  const problem = await written(cluster, stepsMax, keyed);
  if (problem !== null || !clocks.jumpAll(JUMP_MS)) return problem;
  // Until it is believed; then an event tells of it, and the next leader has to know it from there.
  await rest(2 * ASK_AGAIN_MS + 1_000);
  const told = await written(cluster, stepsMax, { caller: "end", idempotencyKey: null, bodyHash: "" });
  const leader = cluster.leader();
  if (leader !== undefined) world.call(leader, () => void cluster.server(leader)?.transfer(null));
  await rest(RETENTION_LOOK_MS);
  ask(cluster, keyed);
  await rest(ASK_AGAIN_MS);
  return told;
}

/** A queue is paused, or goes on: an event that changes nothing of any job. */
function ask(cluster: JobsCluster, request: Request): void {
  const leader = cluster.leader() ?? cluster.names[0]!;
  const service = cluster.server(leader)?.service;
  const isPaused = request.idempotencyKey !== null;
  cluster.world.call(leader, () => {
    void service?.pauseQueue(request, "end", isPaused).catch(() => undefined);
  });
}

async function written(cluster: JobsCluster, stepsMax: number, request: Request): Promise<string | null> {
  const { world, oracle } = cluster;
  const { head } = oracle;
  const untilMs = world.nowMs + WITHIN_MS;
  while (oracle.head === head && world.nowMs < untilMs && world.findings.length === 0) {
    ask(cluster, request);
    await world.run(() => oracle.head > head, { untilMs: world.nowMs + ASK_AGAIN_MS, stepsMax });
  }
  return oracle.head > head || world.findings.length > 0
    ? null
    : `nothing was committed for ${WITHIN_MS} ms, though there are no faults`;
}
