// `tenure server start`: what a node's supervisor is told, from its configuration. The supervisor itself (supervisor.ts) needs
// little of what was loaded to check that, and lives as long as the node: so it takes this process's place.

import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServerConfig } from "../../contract/index.ts";
import { apiUrlOf } from "../../node/worlds/api.ts";
import { workerName } from "../../supervisor/index.ts";
import { MEMORY_ENVIRONMENT, memoryFlags } from "./memory.ts";
import { SUPERVISED } from "./supervised.ts";
import { SPEC, type SupervisorSpec } from "./supervisor-spec.ts";
import { SPEC_LENGTH_MAX } from "./limits.ts";

/** Jobs of a worker whose node stops may end by themselves for so long. */
const AGENT_DRAIN = "10s";

export async function superviseServer(config: ServerConfig, flags: readonly string[]): Promise<number> {
  const spec = specOf(config, flags, process.env);
  // Where somebody holds a channel to this process (`npm start`), it would be cut; a huge environment does not fit.
  const text = JSON.stringify(spec);
  if (process.execve !== undefined && !process.connected && text.length < SPEC_LENGTH_MAX) {
    const args = [process.execPath, ...process.execArgv, fileOf("./supervisor")];
    process.execve(process.execPath, args, { ...definedOf(process.env), [SPEC]: text });
  }
  const { supervise } = await import("./supervisor.ts");
  return supervise(spec);
}

export function specOf(config: ServerConfig, flags: readonly string[], environment: NodeJS.ProcessEnv): SupervisorSpec {
  const { nodeId, log, agent } = config;
  return {
    nodeId,
    dataDir: resolve(config.dataDir),
    level: log.level,
    moonlights: agent.enabled,
    controller: {
      args: [
        ...memoryFlags({ env: environment, execArgv: process.execArgv }),
        ...process.execArgv,
        fileOf("../main"),
        "server",
        "controller",
        ...flags,
      ],
      // What the operator has chosen goes first.
      env: { ...MEMORY_ENVIRONMENT, ...definedOf(environment), [SUPERVISED]: "1" },
    },
    agent: agentOf(config, environment),
  };
}

/** It is told nothing of the server's own settings: what it runs inherits its environment. */
function agentOf(config: ServerConfig, environment: NodeJS.ProcessEnv): SupervisorSpec["agent"] {
  const { nodeId, agent, api, log } = config;
  const urls = agent.servers.length > 0 ? agent.servers : [apiUrlOf(config, api.listen)];
  const labels = Object.entries(agent.labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]);
  const flags = ["--name", workerName(nodeId), "--capacity", String(agent.capacity), "--drain", AGENT_DRAIN, ...labels];
  const ca = agent.caFile === null ? [] : ["--ca", agent.caFile];
  // PGPASSWORD and the like are the server's way to its database.
  const others = Object.entries(definedOf(environment)).filter(([name]) => !/^(TENURE_|PG)/.test(name));
  return {
    args: [...process.execArgv, fileOf("../main"), "agent", "start", ...flags, ...ca],
    env: {
      ...Object.fromEntries(others),
      TENURE_URL: urls.join(","),
      // Whatever the service's user has in its home is not meant for it.
      TENURE_CONFIG: "/dev/null",
      TENURE_LOG_LEVEL: log.level,
      ...(agent.keyFile === null ? {} : { TENURE_API_KEY_FILE: agent.keyFile }),
    },
  };
}

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function fileOf(name: string): string {
  return fileURLToPath(new URL(`${name}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
}
