// The supervisor of one node as a process. It starts the controller (`tenure server controller`) and, where `agent.enabled` is
// set and the node does not lead, the agent (`tenure agent start`).
//
// SIGTERM, SIGINT   both end in order, exit 0; a second one ends them at once. Before the controller is started none is
// SIGHUP            goes on to both, which read their certificates again; to one that starts, once it is up
// Its own death, by whatever way, is theirs.

import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import type { NodePlan } from "../../core/supervise/node.ts";
import { makeDirectories } from "../../drivers/disk/directories.ts";
import { type DirectoryLock, lockDirectory } from "../../drivers/disk/lock.ts";
import { killControllers, nodeCookie, systemChildren } from "../../drivers/processes/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { openLogSink } from "../../drivers/telemetry/log-sink.ts";
import type { Child, ChildEvents, ChildPart, Children } from "../../ports/processes/children.ts";
import { Supervisor } from "../../supervisor/index.ts";
import { SPEC, type SupervisorSpec } from "./supervisor-spec.ts";

/** A log of some hundred thousand entries is read within seconds, and the loop turns meanwhile. */
const PLAN: Omit<NodePlan, "moonlights"> = { hangMs: 10_000, startMs: 120_000, stopMs: 40_000 };

export async function supervise(spec: SupervisorSpec): Promise<number> {
  const { nodeId, level, moonlights, dataDir } = spec;
  const logs = openLogSink({ level, fields: { node: nodeId, part: "supervisor" } });
  const lock = locked(dataDir);
  if (TenureError.is(lock)) {
    process.stderr.write(`tenure: ${lock.message}\n`);
    await logs.close();
    process.exit(ERRORS[lock.code].exit);
  }
  const cookie = nodeCookie(dataDir);
  const supervisor = new Supervisor({
    plan: { ...PLAN, moonlights },
    children: reloadedWhenHeard(systemChildren(cookie, (part) => ({ command: process.execPath, ...spec[part] }))),
    clock: systemClock,
    logger: logs.logger,
    nowNs: () => process.hrtime.bigint(),
  });
  // Before anything is waited for: of a signal that nobody handles a process dies.
  const again = Promise.withResolvers<void>();
  let isStopping = false;
  const stopFor = (signal: "SIGTERM" | "SIGINT"): void => {
    if (isStopping) again.resolve();
    isStopping = true;
    supervisor.stop(signal);
  };
  process.on("SIGTERM", () => stopFor("SIGTERM"));
  process.on("SIGINT", () => stopFor("SIGINT"));
  process.on("SIGHUP", () => supervisor.reload());
  // It may hang, and then does not see that its supervisor is gone; whoever has our lock is the only one to have any.
  await Promise.race([killControllers(cookie), again.promise]);
  if (!isStopping) supervisor.start();
  const code = await supervisor.ended;
  await logs.close();
  lock?.release();
  process.exit(code);
}

/** A child that loads its code would die of SIGHUP: the signal is sent after the child's first message. */
function reloadedWhenHeard(children: Children): Children {
  const start = (part: ChildPart, events: ChildEvents): Child => {
    let isHeard = false;
    let isAsked = false;
    const child = children.start(part, {
      exited: (how) => events.exited(how),
      told: (message) => {
        if (!isHeard && isAsked) child.signal("SIGHUP");
        isHeard = true;
        events.told(message);
      },
    });
    const signal: Child["signal"] = (which) => {
      if (which === "SIGHUP" && !isHeard) isAsked = true;
      else child.signal(which);
    };
    return { ...child, signal };
  };
  return { start, endAgents: () => children.endAgents() };
}

/**
 * Two supervisors would start and kill each other's workers. Whoever has it must keep it: what nobody refers to is closed. Null: the
 * directory can't be used at all, which its controller says better.
 */
function locked(dataDir: string): DirectoryLock | TenureError | null {
  try {
    makeDirectories(dataDir, 0o700);
    return lockDirectory(dataDir, "supervisor");
  } catch (error) {
    return TenureError.is(error) && error.code === "DATA_DIRECTORY_IN_USE" ? error : null;
  }
}

const told = process.env[SPEC];
if (told !== undefined) {
  delete process.env[SPEC];
  const spec = JSON.parse(told) as SupervisorSpec;
  process.title = `tenure server ${spec.nodeId}`;
  await supervise(spec);
}
