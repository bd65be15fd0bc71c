// Schedules whose times passed while no server ran: three hours by the servers' wall clocks, which a preloaded module sets forward as
// the hours themselves would have. Whoever leads next catches up, and goes on leading while it does (decision 0023).

import { expect, it, onTestFinished } from "vitest";
import { SCHEDULE_CATCH_UP_MAX } from "../../src/core/kit/limits.ts";
import { createClient } from "../../src/client/index.ts";
import { auditNodes, type NodeAudit } from "../chaos/jobs-audit.ts";
import { startTenureCluster, waitFor } from "../servers/index.ts";

const SCHEDULES = 40;
const MINUTE_MS = 60_000;
const MISSED_MS = 180 * MINUTE_MS;
const LEADER_WITHIN_MS = 5_000;
/** One may be for the machine: an election at the start that two nodes begin together, or another test on the same cores. */
const MORE_EPOCHS_MAX = 2;
const LIMIT_MS = 90_000;

it(
  "40 schedules, three hours without a server: there is a leader within 5 s, it stays, and every owed time is fired once",
  async () => {
    const cluster = await startTenureCluster();
    onTestFinished(() => cluster.end());
    const { key, nodes } = cluster;
    const client = createClient({ urls: cluster.urls, key, timeoutMs: LIMIT_MS });
    const schedule = { cron: "* * * * *", spec: { kind: "report" }, overlap: "allow", catchUp: "all" } as const;
    for (let at = 0; at < SCHEDULES; at++) await client.putSchedule(`s${at}`, schedule);
    await Promise.all(nodes.map((node) => node.kill9()));
    const stoppedMs = Date.now();
    const calendar = `const real = Date.now; Date.now = () => real() + ${MISSED_MS};`;
    for (const node of nodes) {
      node.nodeFlags = ["--import", `data:text/javascript,${encodeURIComponent(calendar)}`];
      node.start();
    }
    const views = (): ReturnType<(typeof nodes)[0]["view"]>[] => nodes.map((node) => node.view());
    await waitFor("all servers to answer", async () => (await Promise.all(views())).every((view) => view !== null));
    const beganMs = Date.now();
    await cluster.waitForLeader();
    const leaderMs = Date.now() - beganMs;
    const termOf = async (): Promise<number> =>
      Math.max(...(await Promise.all(views())).map((view) => view?.term ?? 0));
    const term = await termOf();
    const owed = SCHEDULES * SCHEDULE_CATCH_UP_MAX;
    await waitFor(`${owed} jobs of missed times`, async () => (await client.stats()).submitted >= owed, LIMIT_MS);
    const caughtUpMs = Date.now() - beganMs;
    const epochs = (await termOf()) - term;
    console.info(`a leader after ${leaderMs} ms, ${owed} jobs after ${caughtUpMs} ms, ${epochs} more epochs meanwhile`);
    expect(leaderMs).toBeLessThanOrEqual(LEADER_WITHIN_MS);
    expect(epochs).toBeLessThanOrEqual(MORE_EPOCHS_MAX);
    const audits = await auditNodes(nodes);
    expect(new Set(audits.map(({ sha256 }) => sha256)).size).toBe(1);
    expect(audits.map(({ verdict }) => verdict.valid)).toEqual([true, true, true]);
    for (let at = 0; at < SCHEDULES; at++) judge(audits[0]!, `s${at}`, stoppedMs);
  },
  3 * LIMIT_MS,
);

/** After the stop: a hundred times at least, each once, minute after minute, and of the missed ones no more than that. */
function judge({ events }: NodeAudit, name: string, stoppedMs: number): void {
  const fired = events.filter(({ eventType, entityId }) => eventType === "schedule:fired" && entityId === name);
  const times = fired.map(({ payload }) => (payload as { atMs: number }).atMs);
  expect(new Set(times).size, name).toBe(times.length);
  const late = times.filter((atMs) => atMs > stoppedMs);
  expect(late.length, name).toBeGreaterThanOrEqual(SCHEDULE_CATCH_UP_MAX);
  expect(late, name).toEqual(late.map((_, at) => late[0]! + at * MINUTE_MS));
  expect(late.filter((atMs) => atMs <= stoppedMs + MISSED_MS).length, name).toBeLessThanOrEqual(SCHEDULE_CATCH_UP_MAX);
  for (const { payload } of fired) expect((payload as { jobId: unknown }).jobId).toEqual(expect.any(String));
}
