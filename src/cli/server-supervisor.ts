// The supervisor of one node as a process. It starts the controller (`tenure server controller`) and, where `agent.enabled` is
// set and the node does not lead, the agent (`tenure agent start`).
//
// SIGTERM, SIGINT   both end in order, exit 0; a second one ends them at once
// SIGHUP            goes on to the controller, which reads its certificates again
// Its own death, by whatever way, is theirs.

import type { NodePlan } from "../core/supervise/node.ts";
import { systemChildren } from "../drivers/processes/index.ts";
import { systemClock } from "../drivers/system/clock.ts";
import { openLogSink } from "../drivers/telemetry/log-sink.ts";
import { Supervisor } from "../supervisor/index.ts";
import { SPEC, type SupervisorSpec } from "./server-supervisor-spec.ts";

/** A log of some hundred thousand entries is read within seconds, and the loop turns meanwhile. */
const PLAN: Omit<NodePlan, "moonlights"> = { hangMs: 10_000, startMs: 120_000, stopMs: 40_000 };

export async function supervise(spec: SupervisorSpec): Promise<number> {
  const { nodeId, level, moonlights, cookie } = spec;
  const logs = openLogSink({ level, fields: { node: nodeId, part: "supervisor" } });
  const supervisor = new Supervisor({
    plan: { ...PLAN, moonlights },
    children: systemChildren(cookie, (part) => ({ command: process.execPath, ...spec[part] })),
    clock: systemClock,
    logger: logs.logger,
    nowNs: () => process.hrtime.bigint(),
  });
  process.title = `tenure server ${nodeId}`;
  process.on("SIGTERM", () => supervisor.stop("SIGTERM"));
  process.on("SIGINT", () => supervisor.stop("SIGINT"));
  process.on("SIGHUP", () => supervisor.reload());
  supervisor.start();
  const code = await supervisor.ended;
  await logs.close();
  process.exit(code);
}

const told = process.env[SPEC];
if (told !== undefined) {
  delete process.env[SPEC];
  await supervise(JSON.parse(told) as SupervisorSpec);
}
