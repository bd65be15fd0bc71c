// An agent as a process: it leases exec jobs, runs their commands, and ends in order. Used by `tenure agent start` and by the
// agent that a server's supervisor starts.
//
// SIGTERM, SIGINT      no new jobs; running ones have drainMs, then they are ended and handed back; exit 0
// once more            jobs are killed and handed back, exit 143 or 130; not where a supervisor started it, which kills in its own way:
//                      who signals a whole service (systemd, tini -g) reaches both, and the supervisor tells its agent as well
// SIGHUP               certificates are read again; where they can't be used, the old ones stay in use
// replaced, removed    jobs are killed, exit 76
// its supervisor died  (where there is a channel to one) jobs are killed, exit 69
// kill -9, SIGSTOP     the keeper kills the jobs

import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { Complaints, ExecJobs, jobEnvironment } from "../../agent/index.ts";
import type { Client } from "../../client/index.ts";
import { LeaseSecrets } from "../../controller/jobs/lease-secrets.ts";
import type { Json } from "../../core/kit/json.ts";
import type { TenureError } from "../../core/kit/errors.ts";
import { AGENT_COOKIE, Keeper, killFamily, openProcesses } from "../../drivers/processes/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { openLogSink } from "../../drivers/telemetry/log-sink.ts";
import { type Agent, createAgent } from "../../entry/agent.ts";
import type { Logger } from "../../ports/logger.ts";
import { ALIVE_EVERY_MS, HURRY_MS, JOB_KILL_MS } from "./limits.ts";
import type { AgentStartFlags } from "./start-flags.ts";

export interface AgentRunOptions extends Omit<AgentStartFlags, "connection" | "name"> {
  readonly client: Pick<Client, "work">;
  /** Reads the client's certificates again; rejects where they can't be used. */
  readonly reload: () => Promise<void>;
  readonly name: string;
}

/** New with each process: a supervisor's cookie may be the next agent's too, which is not ours to kill. */
const OWN_COOKIE = "TENURE_AGENT_PROCESS";
const EXIT_SUPERVISOR_GONE = 69;
const EXIT_REPLACED = 76;
const OOM_FILE = "/proc/self/oom_score_adj";
const EXITS = { SIGINT: 130, SIGTERM: 143 } as const;

type Ending =
  | { readonly kind: "ended"; readonly error: TenureError | null }
  | { readonly kind: "stopped" }
  | { readonly kind: "second-signal"; readonly code: number }
  | { readonly kind: "supervisor-gone" };

/** A service that the kernel is to spare (OOMScoreAdjust) does not mean its jobs, which inherit it. */
function spareNobody(): void {
  try {
    if (Number(readFileSync(OOM_FILE, "utf8")) < 0) writeFileSync(OOM_FILE, "0");
  } catch {
    // There is no such thing here.
  }
}

export async function runAgent(options: AgentRunOptions): Promise<number> {
  spareNobody();
  const { name, leaseMs } = options;
  const logs = openLogSink({ level: options.logLevel, fields: { agent: name } });
  const { logger } = logs;
  const cookie = { name: OWN_COOKIE, value: randomUUID() };
  const keeper = new Keeper({
    cookie,
    leaseMs,
    hasSupervisor: process.send !== undefined,
    onTrouble: (what) => logger.error({ event: "keeper" }, what),
  });
  const jobs = new ExecJobs({
    clock: systemClock,
    processes: openProcesses({ onGroup: (group, isAlive) => keeper.group(group, isAlive) }),
    logger,
    graceMs: options.graceMs,
    environment: jobEnvironment(process.env),
    cookies: { [cookie.name]: cookie.value, [AGENT_COOKIE]: process.env[AGENT_COOKIE] ?? cookie.value },
    newCookie: randomUUID,
  });
  const complaints = new Complaints(logger, systemClock);
  const agent = createAgent<{ exec: { payload: Json; result: Json } }>({
    client: options.client,
    name,
    capacity: options.capacity,
    labels: options.labels,
    platform: options.platform,
    leaseMs,
    handlers: { exec: (job, context) => jobs.run(job, context) },
    onError: (error) => complaints.tell(error),
  });
  try {
    return await lifetime(agent, jobs, logger, options);
  } finally {
    jobs.kill();
    // A directory that hangs may keep one from starting, or from being refused.
    await withinMs(JOB_KILL_MS, jobs.idle());
    // Whoever lost the cookie of its job has the agent's.
    await killFamily({ cookie, roots: [], groups: [], withinMs: JOB_KILL_MS });
    await keeper.close();
    await logs.close();
  }
}

async function lifetime(agent: Agent, jobs: ExecJobs, logger: Logger, options: AgentRunOptions): Promise<number> {
  const { drainMs, graceMs } = options;
  const ending = Promise.withResolvers<Ending>();
  const starting = new AbortController();
  let stopped: Promise<void> | null = null;
  const onSignal = (signal: "SIGINT" | "SIGTERM"): void => {
    if (stopped !== null) {
      if (process.send === undefined) ending.resolve({ kind: "second-signal", code: EXITS[signal] });
      return;
    }
    const text = "no new jobs, running ones may end; once more ends it at once";
    logger.info({ event: "draining", signal, running: agent.running, drain_ms: drainMs }, text);
    starting.abort();
    stopped = agent.stop({ drainMs, graceMs: graceMs + JOB_KILL_MS });
    stopped.then(() => ending.resolve({ kind: "stopped" }), ending.reject);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("SIGHUP", () => void reloaded(options.reload, logger));
  const leash = watchSupervisor(() => ending.resolve({ kind: "supervisor-gone" }));
  void agent.ended.then((error) => error !== null && ending.resolve({ kind: "ended", error }));
  const begun = agent.start({ signal: starting.signal }).then(() => {
    if (stopped !== null) return;
    const { name, capacity, platform } = options;
    // As the cluster shows it: who has the session itself may end its jobs.
    const session = agent.session === null ? null : new LeaseSecrets(systemDigest).sessionHash(agent.session);
    logger.info({ event: "started", session, capacity, platform }, `${name} runs jobs of the kind exec`);
  });
  begun.catch((error: unknown) => stopped === null && ending.reject(error));
  try {
    return await codeOf(await ending.promise, agent, jobs, logger);
  } finally {
    leash();
  }
}

async function reloaded(reload: () => Promise<void>, logger: Logger): Promise<void> {
  try {
    await reload();
    logger.info({ event: "reloaded" }, "certificates were read again; new connections use them");
  } catch (error) {
    logger.error({ event: "reload-failed", error: (error as Error).message }, "the old certificates stay in use");
  }
}

async function codeOf(ending: Ending, agent: Agent, jobs: ExecJobs, logger: Logger): Promise<number> {
  switch (ending.kind) {
    case "stopped":
      logger.info({ event: "stopped" }, "stopped");
      return 0;
    case "ended": {
      const { code, message } = ending.error!;
      logger.error({ event: "replaced", code }, message);
      // A code of its own: who restarts it would take the name back, and the jobs with it, for ever.
      return EXIT_REPLACED;
    }
    case "second-signal":
      jobs.kill();
      await withinMs(HURRY_MS, agent.stop());
      logger.warn({ event: "stopped" }, "ended at once, its jobs were killed");
      return ending.code;
    case "supervisor-gone":
      jobs.kill();
      await withinMs(HURRY_MS, agent.stop({ drainMs: 0, graceMs: JOB_KILL_MS }));
      logger.error({ event: "stopped" }, "the supervisor is gone, so this agent and its jobs end");
      return EXIT_SUPERVISOR_GONE;
    default:
      return ending satisfies never;
  }
}

/** Tells a supervisor that this process is not stuck, and hears of its end. */
function watchSupervisor(onGone: () => void): () => void {
  if (process.send === undefined) return () => undefined;
  const timer = setInterval(
    () => process.send?.({ kind: "alive" }, undefined, undefined, () => undefined),
    ALIVE_EVERY_MS,
  );
  process.once("disconnect", onGone);
  if (!process.connected) onGone();
  return () => clearInterval(timer);
}

async function withinMs(limitMs: number, promise: Promise<void>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  await Promise.race([late, promise]);
  clearTimeout(timer);
}
