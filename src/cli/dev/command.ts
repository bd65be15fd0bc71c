// `tenure dev` (`npm start`): three real nodes on this machine, sample jobs that their workers run, and a view of both: who leads,
// the last election with its votes, jobs per second, how long the last failover took. Keys kill, pause, drain and hand over; the
// same can be done from another terminal. A terminal gets a screen, everything else plain lines. With --for it kills its leader
// twice by itself, and says how that went. Nothing is left behind, whichever way it ends. With --sites: three sites of one node each (sites-command.ts).

import { kindsOf } from "../kit/description.ts";
import { DEV } from "./help.ts";
import { ERRORS } from "../../core/kit/errors.ts";
import { type Client, createClient } from "../../client/index.ts";
import { electionsOf, statusOf } from "../cluster/view.ts";
import { DevCluster } from "./cluster.ts";
import * as limits from "./limits.ts";
import { DevLoad, type Failover } from "./load.ts";
import { accessText, Show } from "./show.ts";
import { runSites } from "./sites-command.ts";
import { type Flags, onEnd, pause, readKeys } from "./terminal.ts";
import { parseDuration, parseFlags, UsageError } from "../kit/flags.ts";
import { duration, json } from "../kit/output.ts";

const EXIT_NOT_WELL = 1;
const EXIT_NEVER_LED = ERRORS.ERR_NO_LEADER.exit;
/** Of commands at once on each node that does not lead. */
const CAPACITY = 4;
/** One parent and two that dial it: what is cut off and what relays can both be seen. */
const SITES = 3;
/** With --for: the leader is killed after these shares of the time. */
const KILLS_AT: readonly number[] = [1 / 3, 2 / 3];

async function run({ forMs, json: isForPrograms }: Flags): Promise<number> {
  const show = new Show(isForPrograms);
  const stop = new AbortController();
  let code: number | null = null;
  let reason: string | null = null;
  const end = (exit: number | null): void => {
    code ??= exit;
    stop.abort();
  };
  onEnd(end);
  show.begin();
  const cluster = await DevCluster.create({
    restartAfterMs: limits.RESTART_AFTER_MS,
    capacity: CAPACITY,
    started: (id, pid) => show.tell(`${id} runs as process ${pid}`),
    died: (id, how) => {
      if (id === show.status.leader) show.mark("death", `the end of ${id}`);
      const words = how.startsWith("SIG") ? null : cluster.lastWords(id);
      const said = words === null ? "" : `${id} said: ${words}`;
      if (cluster.failedStarts(id) >= limits.FAILED_STARTS_MAX) {
        const why = said === "" ? `${id} has ended (${how})` : said;
        reason ??= `no server has come up, and ${id} has died ${limits.FAILED_STARTS_MAX} times; giving up. ${why}`;
        end(EXIT_NEVER_LED);
        return;
      }
      show.tell(`${id} has ended (${how}), and is started again in ${duration(limits.RESTART_AFTER_MS)}`);
      if (said !== "") show.tell(said);
    },
  });
  show.cluster = cluster;
  const { urls, key } = cluster;
  introduce(show, cluster);
  const client = createClient({ urls, key });
  const load = new DevLoad(urls, key, (text, afterMs) => show.tell(`jobs went on ${duration(afterMs)} after ${text}`));
  show.load = load;
  let summary: Summary | null = null;
  try {
    cluster.start();
    const keys = readKeys(
      (name) => void press(name, show, cluster, client).catch((error: unknown) => show.tell((error as Error).message)),
      () => end(null),
    );
    if (forMs !== undefined) void arrange(forMs, show, cluster, stop.signal).then(() => end(null));
    await Promise.all([
      look(show, cluster, client, stop.signal),
      count(show, client, stop.signal),
      load.run(stop.signal),
      draw(show, stop.signal),
    ]);
    keys();
    // Whoever stands still answers nobody.
    if (cluster.frozen !== null) cluster.thaw(cluster.frozen);
    if (show.hasLed && code === null) summary = await summarized(show, load, client);
  } finally {
    show.tell("stopping");
    await cluster.stop();
    show.tell(`ended; ${load.accepted} jobs were accepted${summary === null ? "" : `, ${summary.lost} were lost`}`);
    show.end();
  }
  if (reason !== null) process.stderr.write(`npm start: ${reason as string}\n`);
  if (isForPrograms && summary !== null) process.stdout.write(json(summary));
  return code ?? (summary === null ? EXIT_NEVER_LED : isWell(summary, forMs) ? 0 : EXIT_NOT_WELL);
}

function introduce(show: Show, cluster: DevCluster): void {
  show.tell(`the page: ${cluster.page}`);
  show.tell(`jobs and scopes are served at ${cluster.urls.join(", ")}: docs/jobs.md, docs/server.md`);
  show.tell(`as their operator: ${accessText(cluster)}`);
  if (import.meta.url.endsWith(".ts")) show.tell("then, for instance: npm run -s tenure -- job submit -- echo hello");
}

interface Summary {
  readonly failovers: readonly Failover[];
  /** That were accepted. */
  readonly jobs: number;
  readonly lost: number;
  readonly leader: string | null;
  readonly epoch: number | null;
}

async function summarized(show: Show, load: DevLoad, client: Client): Promise<Summary> {
  show.tell("looking for every job that was accepted");
  // Somebody may have died just now.
  const leader = await client.leader({ timeoutMs: limits.SUMMARY_LIMIT_MS }).catch(() => null);
  const lost = await load.lost();
  if (lost > 0) show.tell(`${lost} jobs that were accepted are lost`);
  return {
    failovers: load.failovers,
    jobs: load.accepted,
    lost,
    leader: leader?.leaderId ?? null,
    epoch: leader?.term ?? null,
  };
}

function isWell({ failovers, lost }: Summary, forMs: number | undefined): boolean {
  return lost === 0 && (forMs === undefined || failovers.length >= KILLS_AT.length);
}

/** What happens by itself: each kill when its time has come and all three run; the end when both were survived, or late. */
async function arrange(forMs: number, show: Show, cluster: DevCluster, signal: AbortSignal): Promise<void> {
  const startedMs = performance.now();
  const lateMsMax = Math.min(forMs, limits.KILL_LATE_MS_MAX);
  const passedMs = (): number => performance.now() - startedMs;
  const until = async (shareMs: number, isSo: () => boolean, lateMs: number): Promise<void> => {
    while (!signal.aborted && (passedMs() < shareMs || (!isSo() && passedMs() < shareMs + lateMs))) {
      await pause(limits.DEV_CHECK_MS, signal);
    }
  };
  for (const share of KILLS_AT) {
    const { length: survived } = show.load?.failovers ?? [];
    await until(forMs * share, () => show.isWhole, lateMsMax);
    if (signal.aborted) return;
    killLeader(show, cluster);
    await until(0, () => (show.load?.failovers.length ?? 0) > survived, forMs + lateMsMax);
  }
  await until(forMs, () => true, 0);
}

async function look(show: Show, cluster: DevCluster, client: Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const answers = await client.nodes({ signal, timeoutMs: limits.CHECK_LIMIT_MS }).catch(() => []);
    if (signal.aborted) return;
    for (const { view } of answers) if (view !== null) cluster.ready(view.nodeId);
    show.saw(statusOf(answers), electionsOf(answers));
    await pause(limits.DEV_CHECK_MS, signal);
  }
}

async function count(show: Show, client: Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const stats = await client.stats({ signal, timeoutMs: limits.CHECK_LIMIT_MS }).catch(() => null);
    if (stats !== null) show.counted(stats.finished);
    await pause(limits.COUNT_EVERY_MS, signal);
  }
}

async function draw(show: Show, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    show.draw();
    await pause(limits.DRAW_EVERY_MS, signal);
  }
}

function killLeader(show: Show, cluster: DevCluster): void {
  const { leader } = show.status;
  if (leader === null) return show.tell("nobody leads at this moment");
  show.mark("kill", `kill -9 of ${leader}`);
  show.tell(`kill -9 ${leader}`);
  cluster.kill(leader);
}

async function press(name: string, show: Show, cluster: DevCluster, client: Client): Promise<void> {
  const { leader } = show.status;
  if (name === "p" && cluster.frozen !== null) {
    show.tell(`${cluster.frozen} goes on (SIGCONT)`);
    show.load?.forget("pause");
    cluster.thaw(cluster.frozen);
    return;
  }
  if (name === "k") return killLeader(show, cluster);
  if (!["p", "t", "d"].includes(name)) return;
  if (leader === null) return show.tell("nobody leads at this moment");
  const startedMs = performance.now();
  if (name === "p") {
    show.mark("pause", `the pause of ${leader}`);
    show.tell(`${leader} is paused (SIGSTOP); p lets it go on`);
    cluster.freeze(leader);
  } else if (name === "t") {
    show.mark("transfer", "the wish to transfer");
    const { oldLeaderId, newLeaderId } = await client.transfer().catch((error: unknown) => {
      show.load?.forget("transfer");
      throw error;
    });
    show.tell(`${oldLeaderId} → ${newLeaderId ?? "?"} in ${duration(performance.now() - startedMs)}`);
  } else await drain(leader, show, cluster, client);
}

async function drain(nodeId: string, show: Show, cluster: DevCluster, client: Client): Promise<void> {
  const startedMs = performance.now();
  show.mark("drain", `the drain of ${nodeId}`);
  const { leaderId } = await client.drainNode(cluster.urlOf(nodeId), { nodeId }).catch((error: unknown) => {
    show.load?.forget("drain");
    throw error;
  });
  const took = duration(performance.now() - startedMs);
  show.tell(
    `${nodeId} is drained, and ${leaderId ?? "nobody yet"} leads, in ${took}; it may lead again in ${duration(limits.DRAINED_MS)}`,
  );
  setTimeout(
    () => void client.drainNode(cluster.urlOf(nodeId), { nodeId, drain: false }).catch(() => undefined),
    limits.DRAINED_MS,
  );
}

export async function dev(args: readonly string[]): Promise<number> {
  const { values, words } = parseFlags(args, kindsOf(DEV));
  if (words.length > 0) throw new UsageError(`${JSON.stringify(words[0])} belongs to no flag`);
  if (values.help !== undefined) {
    process.stdout.write(DEV.help);
    return 0;
  }
  // `npm start | head` has read enough.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  const forMs = values.for === undefined ? undefined : parseDuration("--for", values.for, limits.FOR_MS_MAX);
  if (forMs === 0) throw new UsageError("--for takes a duration such as 30s, not 0");
  const flags = { forMs, json: values.json !== undefined };
  if (values.sites !== undefined && values.sites !== String(SITES)) {
    throw new UsageError(`--sites takes ${SITES}, not ${JSON.stringify(values.sites)}`);
  }
  const code = await (values.sites === undefined ? run(flags) : runSites(flags));
  // A key that is read, or a timer, must not hold it.
  process.stdout.write("", () => process.exit(code));
  return code;
}
