// `tenure server start|controller|recover|restore`: one node of Tenure's own cluster, and what an operator does to its data directory
// when the cluster itself can't help any more.

import { kindsOf, verbsOf } from "../kit/description.ts";
import { SERVER } from "./help.ts";
import { dirname, resolve } from "node:path";
import { listOf, type MeshFlags, parseServerConfig, type Places, type ServerConfig } from "../../contract/index.ts";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { electionConfig } from "../../core/raft/index.ts";
import { backendSource } from "../connection/backend.ts";
import { readConfigFile } from "../files/config.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { json, OUTPUTS, withLongOutput } from "../kit/output.ts";
import { withLargePages } from "./memory.ts";
import { printed } from "../kit/print.ts";
import { chosen, noName } from "../kit/words.ts";

const VERBS = verbsOf(SERVER);
const FLAGS = kindsOf(SERVER);
const MESH_FLAGS = ["mode", "controller-id", "controller-name", "parent-url"] as const;

export async function server(args: readonly string[]): Promise<number> {
  const { values, words } = parseFlags(withLongOutput(args), FLAGS);
  if (values.help !== undefined) return printed(SERVER.help);
  const verb = chosen(words[0], VERBS);
  noName(words);
  const output = oneOf("-o", values.output ?? "table", OUTPUTS);
  if (verb !== "start" && verb !== "controller") refuseFlags(verb, values, ["backend", "join", ...MESH_FLAGS]);
  const { backend, join } = values;
  const config = readConfig(values.config, { backend, mesh: meshFlags(values), join: listed(join) });
  switch (verb) {
    case "start":
    case "controller": {
      refuseFlags(verb, values, ["force-new-cluster", "snapshot", "history", "paused"]);
      if (config.backend !== null && values.bootstrap !== undefined) {
        throw new UsageError("--bootstrap founds a cluster of its own, and with a backend there is none: leave it out");
      }
      if (verb === "start") {
        const { superviseServer } = await import("./supervise.ts");
        return superviseServer(
          config,
          args.filter((arg) => arg !== verb),
        );
      }
      // A disk that hangs may hold several threads; names still have to be looked up. Read before the first is used.
      process.env["UV_THREADPOOL_SIZE"] ??= "8";
      withLargePages(process);
      const { runServer } = await import("./run.ts");
      return runServer(config, { bootstrap: values.bootstrap !== undefined });
    }
    case "recover": {
      refuseBackend(config);
      refuseFlags(verb, values, ["bootstrap", "snapshot", "history", "paused"]);
      if (values["force-new-cluster"] === undefined) {
        throw new UsageError(
          "recover makes this node's data the whole truth of a new cluster: what the others have and this one never received is lost. Say --force-new-cluster if a quorum is gone for good",
        );
      }
      const { recoverDirectory } = await import("../../node/worlds/recover.ts");
      return report(await recoverDirectory(config), output);
    }
    case "restore": {
      refuseBackend(config);
      refuseFlags(verb, values, ["bootstrap", "force-new-cluster"]);
      if (values.snapshot === undefined)
        throw new UsageError("--snapshot is missing: name the file that `snapshot save` wrote");
      const { restoreDirectory } = await import("../../node/worlds/recover.ts");
      const { snapshot: path, history: historyFrom } = values;
      const isPaused = values.paused !== undefined;
      return report(await restoreDirectory(config, { path, historyFrom, isPaused }), output);
    }
    default:
      return assertNever(verb, "tenure server");
  }
}

function meshFlags(values: Partial<Record<(typeof MESH_FLAGS)[number], string>>): MeshFlags {
  return {
    mode: values.mode,
    controller_id: values["controller-id"],
    controller_name: values["controller-name"],
    parent_urls: listed(values["parent-url"]),
  };
}

function listed(text: string | undefined): readonly string[] | undefined {
  return text === undefined ? undefined : listOf(text);
}

function refuseFlags(verb: string, values: Partial<Record<string, string>>, names: readonly string[]): void {
  const given = names.find((name) => values[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} is not for ${verb}`);
}

function refuseBackend({ backend }: ServerConfig): void {
  if (backend === null) return;
  throw new UsageError("this node keeps its log in a database: recover and restore that with the database's own tools");
}

/** What a command line says of the configuration. */
type ConfigFlags = Omit<Places, "environment">;

/** Reads and checks the configuration as a server would. */
export function readConfig(path: string | undefined, flags: ConfigFlags = {}): ServerConfig {
  // Where the nodes find each other in a database, the environment may say the little that is left.
  if (path === undefined && (flags.backend ?? process.env["TENURE_SERVER_BACKEND"] ?? "") === "") {
    throw new UsageError("--config is missing: name the configuration file");
  }
  return configOf(path === undefined ? {} : readConfigFile(path), path, flags);
}

/** `raw` is what the file says, which lies at `path`. */
export function configOf(raw: unknown, path: string | undefined, flags: ConfigFlags = {}): ServerConfig {
  return parseServerConfig(raw, {
    ...flags,
    environment: process.env,
    configDir: resolve(path === undefined ? "." : dirname(path)),
    checkElection: electionConfig,
    checkBackend,
    file: path,
  });
}

/** Its parameters are as much of the configuration as any field. */
function checkBackend(url: string): string | undefined {
  try {
    backendSource(url, process.env);
    return undefined;
  } catch (error) {
    if (!(error instanceof UsageError) && !(TenureError.is(error) && error.code === "CONFIG_INVALID")) throw error;
    return error.message.replace(/^--backend /, "").replace(/\.$/, "");
  }
}

function report(facts: { readonly text: string; readonly data: object }, output: (typeof OUTPUTS)[number]): number {
  return printed(output === "json" ? json(facts.data) : facts.text);
}
