// `tenure server controller` as a process: signals, the log, and how it ends.
//
// SIGTERM, SIGINT   leadership is handed over, requests under way are answered, exit 0; a second one ends it at once, where no
//                   supervisor does that
// SIGHUP            certificates are read again; while the node starts, once it is up
// a failed sync, a broken invariant   logged, exit with the code of the registry: nothing was promised since

import { readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import type { Diagnostics } from "../../api/index.ts";
import type { ServerConfig } from "../../contract/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import { openLogSink, type LogSink } from "../../drivers/telemetry/index.ts";
import type { ServerNode, ServerNodeOptions } from "../../node/worlds/embedded.ts";
import { backendSource } from "../connection/backend.ts";
import { isEnabled } from "../run/flags.ts";
import { diagnosticsOf } from "./diagnostics.ts";
import { followSupervisor, isSupervised, type Supervised } from "./supervised.ts";
import { STOP_MS_MAX } from "./limits.ts";

const EXIT_SOFTWARE = 70;
const STOP_LATE = "stopping took too long, probably because the disk hangs; what was not synced was promised to nobody";

export async function runServer(config: ServerConfig, flags: { readonly bootstrap: boolean }): Promise<number> {
  const logs = openLogSink({ level: config.log.level, fields: { node: config.nodeId } });
  const ending = Promise.withResolvers<number>();
  const fatal = (error: unknown): void => ending.resolve(logFatal(logs, error));
  process.on("uncaughtException", fatal);
  process.on("unhandledRejection", fatal);
  const stop = new AbortController();
  const supervised = isSupervised() ? followSupervisor(logs.logger) : null;
  const stopFor = (signal: NodeJS.Signals): void => {
    // A signal to all of them comes from its sender and from the supervisor.
    if (stop.signal.aborted && supervised !== null) return;
    if (stop.signal.aborted) ending.resolve(exitOf(signal));
    logs.logger.info({ event: "stopping", signal }, "stopping in order; once more ends it at once");
    stop.abort(new TenureError("BACKEND_UNAVAILABLE", `stopped by ${signal}`));
  };
  process.on("SIGTERM", stopFor);
  process.on("SIGINT", stopFor);
  const isUp = reloadOnSignal(logs);
  const run = lifetime(config, flags.bootstrap, logs, stop.signal, fatal, supervised, isUp);
  // A rejection that got past here would end the process with 0, after the last thing that holds it open.
  const code = await Promise.race([run.catch((error: unknown) => logFatal(logs, error)), ending.promise]);
  await logs.close();
  // What is left open after a fatal error must not keep a process alive that may promise nothing any more.
  process.exit(code);
}

async function lifetime(
  config: ServerConfig,
  bootstrap: boolean,
  logs: LogSink,
  signal: AbortSignal,
  onFatal: (error: unknown) => void,
  supervised: Supervised | null,
  isUp: (node: Pick<ServerNode, "reload">) => void,
): Promise<number> {
  let node: Pick<ServerNode, "reload" | "stop">;
  try {
    const clearance = supervised?.clearance;
    const diagnostics = (): Diagnostics => diagnosticsOf(config, logs);
    const options = { bootstrap, version: packageVersion(), logs, signal, onFatal, clearance, diagnostics };
    node = await startNode(config, options);
    supervised?.up();
  } catch (error) {
    if (signal.aborted) return 0;
    if (!TenureError.is(error)) throw error;
    process.stderr.write(`tenure: ${error.message}\n`);
    return logFatal(logs, error);
  }
  isUp(node);
  // It may have come while the node was starting.
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
  const late = setTimeout(() => onFatal(new TenureError("TERM_OVERRUN", STOP_LATE)), STOP_MS_MAX);
  await node.stop();
  clearTimeout(late);
  logs.logger.info({ event: "stopped" }, "stopped");
  return 0;
}

/**
 * The code of the other kind of node is not loaded. Where Node keeps what it has compiled (NODE_COMPILE_CACHE), it writes that
 * down when a process ends itself, which a leader whose supervisor was killed does: written now, that takes no second then.
 */
async function startNode(
  config: ServerConfig,
  options: ServerNodeOptions & { readonly signal: AbortSignal },
): Promise<Pick<ServerNode, "reload" | "stop">> {
  if (config.backend === null) {
    const { startServerNode } = await import("../../node/worlds/embedded.ts");
    flushCompileCache();
    return startServerNode(config, options);
  }
  const { startPostgresNode } = await import("../../node/worlds/postgres.ts");
  flushCompileCache();
  const source = backendSource(config.backend, process.env);
  assert(source.kind === "postgres", "the configuration takes a Postgres URL only");
  const enabled = isEnabled(process.env["TENURE_LEADER_ENABLED"]);
  return startPostgresNode(config, { ...options, postgres: source.options, enabled });
}

/** From now on. What is asked for before the node is up is done then: it may have read its certificates before they were renewed. */
function reloadOnSignal(logs: LogSink): (node: Pick<ServerNode, "reload">) => void {
  let running: Pick<ServerNode, "reload"> | null = null;
  let isAsked = false;
  process.on("SIGHUP", () => {
    if (running === null) isAsked = true;
    else reloadCertificates(running, logs);
  });
  return (node) => {
    running = node;
    if (isAsked) reloadCertificates(node, logs);
  };
}

function reloadCertificates(node: Pick<ServerNode, "reload">, logs: LogSink): void {
  try {
    node.reload();
    logs.logger.info({ event: "reloaded" }, "certificates were read again; new connections use them");
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    logs.logger.error({ event: "reload-failed", error: message }, "the old certificates stay in use");
  }
}

function logFatal(logs: LogSink, error: unknown): number {
  const code = TenureError.is(error) ? error.code : null;
  const message =
    error instanceof Error ? (code === null ? (error.stack ?? error.message) : error.message) : String(error);
  logs.logger.error({ event: "fatal", code: code ?? "bug" }, message);
  return code === null ? EXIT_SOFTWARE : ERRORS[code].exit;
}

function exitOf(signal: NodeJS.Signals): number {
  return signal === "SIGINT" ? 130 : 143;
}

function packageVersion(): string {
  const file = new URL("../../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
