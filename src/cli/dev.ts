// `npm start`: three real servers on this machine, a small load, and a view of both: who leads, the last election with its
// votes, commits per second. Keys kill, freeze and hand over; the same can be done from another terminal. A terminal gets a
// screen, everything else plain lines. Nothing is left behind, whichever way it ends.

import { setTimeout as sleep } from "node:timers/promises";
import { ERRORS, TenureError } from "../core/kit/errors.ts";
import { type Client, createClient, type ElectionView } from "../client/index.ts";
import { type ClusterStatus, electionsOf, statusOf } from "./cluster-view.ts";
import { DevCluster } from "./dev-cluster.ts";
import { DevLoad } from "./dev-load.ts";
import { adviceText, changesBetween, type DevModel, EMPTY_STATUS, plainText, screenText } from "./dev-view.ts";
import { EXIT_USAGE, parseFlags, UsageError } from "./flags.ts";
import { duration } from "./output.ts";

const EXIT_SIGINT = 130;
const EXIT_SIGTERM = 143;
const EXIT_NEVER_LED = ERRORS.ERR_NO_LEADER.exit;
const PARENT_LOOK_MS = 500;
const RESTART_AFTER_MS = 3_000;
/** What fails so often before any server has answered will not succeed by itself. */
const FAILED_STARTS_MAX = 3;
const LOOK_EVERY_MS = 100;
const LOOK_LIMIT_MS = 300;
const DRAW_EVERY_MS = 200;
const PLAIN_EVERY_MS = 2_000;
/** Commits are counted over so long. */
const RATE_WINDOW_MS = 2_000;
const HAPPENED_KEPT_MAX = 50;
const SECONDS_MAX = 86_400;
const SCREEN = {
  enter: "\u001B[?1049h\u001B[?25l",
  leave: "\u001B[?25h\u001B[?1049l",
  home: "\u001B[H\u001B[J",
} as const;

const HELP = `npm start [-- --seconds N]: three Tenure servers on this machine, in the terminal.

  --seconds N  end by itself after N seconds (default: with q or Ctrl-C)
  --help       this text

Keys: k kill -9 the leader; t transfer leadership; s freeze the leader, or let it go on; q quit.

exit codes: 0 ended as asked, after somebody led; 64 wrong use; 69 nobody ever led, or no server came up in three tries; 130, 143 ended by a signal
`;

/** What is known, and what is told; everything else asks it. */
class Show {
  status: ClusterStatus = EMPTY_STATUS;
  hasLed = false;
  cluster: DevCluster | null = null;
  load: DevLoad | null = null;
  readonly #startedMs = performance.now();
  readonly #isScreen = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  readonly #happened: string[] = [];
  #election: ElectionView | null = null;
  #commits: { readonly atMs: number; readonly commit: number }[] = [];
  #drawnMs = Number.NEGATIVE_INFINITY;

  begin(): void {
    if (this.#isScreen) process.stdout.write(SCREEN.enter);
    this.tell("starting three servers");
  }

  end(): void {
    if (!this.#isScreen) return;
    process.stdout.write(SCREEN.leave);
    for (const line of this.#happened.slice(-HAPPENED_KEPT_MAX)) process.stdout.write(`${line}\n`);
  }

  tell(text: string): void {
    const line = `${((performance.now() - this.#startedMs) / 1_000).toFixed(3).padStart(8)} s  ${text}`;
    this.#happened.push(line);
    if (this.#happened.length > HAPPENED_KEPT_MAX) this.#happened.shift();
    if (!this.#isScreen) process.stdout.write(`${line}\n`);
    else this.draw();
  }

  saw(status: ClusterStatus, elections: readonly ElectionView[]): void {
    const nowMs = performance.now();
    this.#election = elections.find(({ stage, result }) => stage === "vote" && result === "won") ?? this.#election;
    const changes = changesBetween(this.status, status, this.#election);
    const isNewLeader = status.leader !== null && status.leader !== this.status.leader;
    this.status = status;
    if (status.leader !== null) this.hasLed = true;
    if (status.view !== null) this.#commits.push({ atMs: nowMs, commit: status.view.commit });
    this.#commits = this.#commits.filter(({ atMs }) => nowMs - atMs <= RATE_WINDOW_MS);
    for (const change of changes) this.tell(change);
    if (isNewLeader && !this.#isScreen) {
      this.tell(adviceText(this.#model(nowMs).nodes.find(({ id }) => id === status.leader)));
    }
  }

  draw(): void {
    const nowMs = performance.now();
    if (this.#isScreen) {
      this.#drawnMs = nowMs;
      process.stdout.write(SCREEN.home + screenText(this.#model(nowMs)).replaceAll("\n", "\u001B[K\n"));
    } else if (nowMs - this.#drawnMs >= PLAIN_EVERY_MS && this.status.view !== null) {
      this.#drawnMs = nowMs;
      this.tell(plainText(this.#model(nowMs)));
    }
  }

  #model(nowMs: number): DevModel {
    const [first, last] = [this.#commits[0], this.#commits.at(-1)];
    const spanMs = first === undefined || last === undefined ? 0 : last.atMs - first.atMs;
    return {
      uptimeMs: nowMs - this.#startedMs,
      nodes: this.cluster?.nodes(nowMs) ?? [],
      status: this.status,
      election: this.#election,
      commitsPerSecond:
        spanMs < RATE_WINDOW_MS / 4 ? null : (Math.max(0, last!.commit - first!.commit) * 1_000) / spanMs,
      acknowledged: this.load?.acknowledged ?? 0,
      happened: this.#happened,
      directory: this.cluster?.directory ?? "…",
    };
  }
}

async function run(seconds: number | undefined): Promise<number> {
  const show = new Show();
  const stop = new AbortController();
  let code: number | null = null;
  let reason: string | null = null;
  const end = (exit: number | null): void => {
    code ??= exit;
    stop.abort();
  };
  process.once("SIGINT", () => end(EXIT_SIGINT));
  process.once("SIGTERM", () => end(EXIT_SIGTERM));
  process.once("SIGHUP", () => end(EXIT_SIGTERM));
  // npm that is told to end tells nobody: whoever has started this is gone then.
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || end(EXIT_SIGTERM), PARENT_LOOK_MS).unref();
  show.begin();
  const cluster = await DevCluster.create({
    restartAfterMs: RESTART_AFTER_MS,
    started: (id, pid) => show.tell(`${id} runs as process ${pid}`),
    died: (id, how) => {
      if (id === show.status.leader) show.load?.mark(`the end of ${id}`);
      const words = how.startsWith("SIG") ? null : cluster.lastWords(id);
      const said = words === null ? "" : `${id} said: ${words}`;
      if (cluster.failedStarts(id) >= FAILED_STARTS_MAX) {
        const why = said === "" ? `${id} has ended (${how})` : said;
        reason ??= `no server has come up, and ${id} has died ${FAILED_STARTS_MAX} times; giving up. ${why}`;
        end(EXIT_NEVER_LED);
        return;
      }
      show.tell(`${id} has ended (${how}), and is started again in ${duration(RESTART_AFTER_MS)}`);
      if (said !== "") show.tell(said);
    },
  });
  show.cluster = cluster;
  const { urls, key } = cluster;
  show.tell(`jobs and scopes are served at ${urls.join(", ")}: docs/jobs.md, docs/server.md`);
  show.tell(`as their operator: export TENURE_URL=${urls.join(",")} TENURE_API_KEY=${key}`);
  const client = createClient({ urls, key });
  const load = new DevLoad(urls, key, (what, afterMs) =>
    show.tell(`writes went on ${duration(afterMs)} after ${what}`),
  );
  show.load = load;
  try {
    cluster.start();
    const keys = readKeys(
      (name) => void press(name, show, cluster, client).catch((error: unknown) => show.tell((error as Error).message)),
      () => end(null),
    );
    if (seconds !== undefined) setTimeout(() => end(null), seconds * 1_000);
    await Promise.all([look(show, cluster, client, stop.signal), load.run(stop.signal), draw(show, stop.signal)]);
    keys();
  } finally {
    show.tell("stopping");
    await cluster.stop();
    show.tell(`ended; ${load.acknowledged} writes were acknowledged`);
    show.end();
  }
  if (reason !== null) process.stderr.write(`npm start: ${reason as string}\n`);
  return code ?? (show.hasLed ? 0 : EXIT_NEVER_LED);
}

async function look(show: Show, cluster: DevCluster, client: Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const answers = await client.nodes({ signal, timeoutMs: LOOK_LIMIT_MS }).catch(() => []);
    if (signal.aborted) return;
    for (const { view } of answers) if (view !== null) cluster.ready(view.nodeId);
    show.saw(statusOf(answers), electionsOf(answers));
    await pause(LOOK_EVERY_MS, signal);
  }
}

async function draw(show: Show, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    show.draw();
    await pause(DRAW_EVERY_MS, signal);
  }
}

/** A rejection means that it was aborted, which the loops look at. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

async function press(name: string, show: Show, cluster: DevCluster, client: Client): Promise<void> {
  const { leader } = show.status;
  if (name === "s" && cluster.frozen !== null) {
    show.tell(`${cluster.frozen} goes on (SIGCONT)`);
    cluster.thaw(cluster.frozen);
    return;
  }
  if (leader === null) {
    show.tell("nobody leads at this moment");
    return;
  }
  if (name === "k") {
    show.load?.mark(`kill -9 of ${leader}`);
    show.tell(`kill -9 ${leader}`);
    cluster.kill(leader);
  } else if (name === "s") {
    show.load?.mark(`the freezing of ${leader}`);
    show.tell(`${leader} is frozen (SIGSTOP); s lets it go on`);
    cluster.freeze(leader);
  } else if (name === "t") {
    const startedMs = performance.now();
    show.load?.mark("the wish to transfer");
    const { oldLeaderId, newLeaderId } = await client.transfer();
    show.tell(`${oldLeaderId} → ${newLeaderId ?? "?"} in ${duration(performance.now() - startedMs)}`);
  }
}

/** Single keys, where there is a keyboard. Returns the way to stop. */
function readKeys(pressed: (name: string) => void, quit: () => void): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => undefined;
  stdin.setRawMode(true).setEncoding("utf8").resume();
  stdin.on("data", (text: string) => {
    for (const letter of text) {
      // In raw mode Ctrl-C is a letter, and raises no signal.
      if (letter === "\u0003") process.kill(process.pid, "SIGINT");
      else if (letter === "q") quit();
      else pressed(letter.toLowerCase());
    }
  });
  return () => {
    stdin.setRawMode(false).pause();
  };
}

function secondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds > 0 && seconds <= SECONDS_MAX))
    throw new UsageError(`--seconds takes a number up to ${SECONDS_MAX}, not ${JSON.stringify(text)}`);
  return seconds;
}

// ---- the command: at the end, because classes exist only below their declaration -------------------------

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `npm start | head` has read enough.
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});
try {
  const { values, words } = parseFlags(process.argv.slice(2), { seconds: "value", help: "switch" } as const);
  if (words.length > 0) throw new UsageError(`${JSON.stringify(words[0])} belongs to no flag`);
  if (values.help === undefined) process.exitCode = await run(secondsOf(values.seconds));
  else process.stdout.write(HELP);
} catch (error) {
  if (!(error instanceof UsageError) && !TenureError.is(error)) throw error;
  process.stderr.write(`npm start: ${error.message} (npm start -- --help)\n`);
  process.exitCode = error instanceof UsageError ? EXIT_USAGE : ERRORS[error.code].exit;
}
process.stdout.write("", () => process.exit());
