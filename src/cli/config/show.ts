// A server's configuration as it is in effect: every field that there is, its value, and who said so. The fields are those of
// the contract's schema, so that none is forgotten. A password in the backend's URL is never shown.

import {
  SERVER_DEFAULTS,
  SERVER_ENVIRONMENT,
  type ServerConfig,
  ServerConfigFile,
  showAddress,
  toSnake,
} from "../../contract/index.ts";
import { SNAPSHOT_AFTER_BYTES, SNAPSHOT_AFTER_ENTRIES, SNAPSHOT_KEEP_ENTRIES } from "../../core/kit/limits.ts";
import { electionConfig } from "../../core/raft/index.ts";
import { type Paint, PLAIN } from "../kit/colour.ts";
import { suggestion } from "../kit/flags.ts";
import { printable, table } from "../kit/output.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting {
  /** `api.listen` */
  readonly key: string;
  /** Null: there is none. */
  readonly value: unknown;
  readonly from: "environment" | "file" | "default";
  /** Of the environment. */
  readonly variable: string | null;
}

/** What means nothing where the log is in a database; a file that has it is refused. */
const OWN_LOG_ONLY = ["peer", "peers", "bootstrap", "election", "history", "tc"];

/** `raw` is what the file says, and `config` what was made of it with this environment. */
export function settingsOf(raw: unknown, config: ServerConfig, environment: Environment): Setting[] {
  const inEffect = effective(config);
  return fieldsOf(ServerConfigFile, [])
    .filter(([section = ""]) => config.backend === null || !OWN_LOG_ONLY.includes(section))
    .map((path) => {
      const value = at(inEffect, path) ?? null;
      return { key: path.join("."), value, ...originOf(path, raw, config, environment) };
    });
}

/** An object with fields of its own goes on; a list, or a map of the user's own names, is one value. */
function fieldsOf(schema: object, path: readonly string[]): (readonly string[])[] {
  const { properties } = schema as { readonly properties?: Readonly<Record<string, object>> };
  if (properties === undefined) return [path];
  return Object.entries(properties).flatMap(([name, inner]) => fieldsOf(inner, [...path, name]));
}

function originOf(
  path: readonly string[],
  raw: unknown,
  { nodeId, peer }: ServerConfig,
  environment: Environment,
): Pick<Setting, "from" | "variable"> {
  const key = path.join(".");
  const variable = Object.entries(SERVER_ENVIRONMENT).find(([, field]) => field.join(".") === key)?.[0];
  if (variable !== undefined && (environment[variable] ?? "").trim() !== "") return { from: "environment", variable };
  // A file that all nodes share says in `peers` where this one is reached.
  const isOfPeers =
    key === "peer.advertise" && peer.advertise !== null && at(raw, ["peers", nodeId]) === peer.advertise;
  return { from: at(raw, path) !== undefined || isOfPeers ? "file" : "default", variable: null };
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => {
    const isThere = typeof found === "object" && found !== null && Object.hasOwn(found, name);
    return isThere ? (found as Record<string, unknown>)[name] : undefined;
  }, value);
}

/** In the file's own fields: paths from the root on, and every default filled in. */
export function effective(config: ServerConfig): Readonly<Record<string, unknown>> {
  const { backend, peer, api, bootstrapExpect, election, snapshots, ...rest } = config;
  return {
    ...toSnake({ nodeId: rest.nodeId, dataDir: rest.dataDir, keys: rest.keys, disk: rest.disk, history: rest.history }),
    log: rest.log,
    // Its names are node ids.
    peers: rest.peers,
    backend: backend === null ? null : withoutSecrets(backend),
    peer: { ...toSnake(peer), listen: showAddress(peer.listen) },
    api: { ...toSnake(api), listen: showAddress(api.listen) },
    bootstrap: { expect: bootstrapExpect },
    // The labels' names are the user's.
    agent: { ...toSnake({ ...rest.agent, labels: {} }), labels: rest.agent.labels },
    mesh: meshInEffect(rest.mesh),
    tc: { join: rest.tc?.join ?? null, disable_auth: rest.tc?.disableAuth ?? SERVER_DEFAULTS["tc.disable_auth"] },
    election: toSnake(electionConfig(election)),
    snapshots: {
      after_entries: snapshots.afterEntries ?? SNAPSHOT_AFTER_ENTRIES,
      after_bytes: snapshots.afterBytes ?? SNAPSHOT_AFTER_BYTES,
      keep_entries: snapshots.keepEntries ?? SNAPSHOT_KEEP_ENTRIES,
    },
  };
}

/** A parent of `parent_url` is shown among `parent_urls`. */
function meshInEffect({ certificate, ...mesh }: ServerConfig["mesh"]): object {
  const files = { cert_file: certificate?.certFile ?? null, cert_key_file: certificate?.keyFile ?? null };
  return { ...toSnake(mesh), ...files };
}

const HIDDEN = "…";
const OPEN_PARAMETERS = /^(tenure_[a-z_]+|sslmode|application_name)$/;

/** What can't be distinguished for certain is hidden as a whole: a password may have letters that end a part of a URL. */
export function withoutSecrets(text: string): string {
  const url = URL.parse(text);
  const parameters = [...(url?.searchParams ?? [])];
  const isClear =
    url !== null &&
    url.hash === "" &&
    !/[@:]/.test(url.pathname) &&
    parameters.every(([name]) => /^[A-Za-z_]+$/.test(name));
  if (!isClear) return `${/^[a-z]+/.exec(text)?.[0] ?? ""}://${HIDDEN}`;
  const user = url.username === "" && url.password === "" ? "" : `${url.username}${url.password && `:${HIDDEN}`}@`;
  const query = parameters.map(([name, value]) => `${name}=${OPEN_PARAMETERS.test(name) ? value : HIDDEN}`);
  return `${url.protocol}//${user}${url.host}${url.pathname}${query.length === 0 ? "" : `?${query.join("&")}`}`;
}

/**
 * A variable that only looks like one of ours changes nothing, and whoever set it thinks that it does. It is no mistake: others
 * may name theirs so (Kubernetes makes some up from the name of a service).
 */
export function variableWarnings(environment: Environment): string[] {
  const known = Object.keys(SERVER_ENVIRONMENT);
  return Object.keys(environment)
    .filter((name) => name.startsWith("TENURE_") && !known.includes(name))
    .flatMap((name) => {
      const near = suggestion(name, known);
      return near === "" ? [] : [`${printable(name)} is set, and no server reads it${near}`];
    });
}

export function settingsText(settings: readonly Setting[], paint: Paint = PLAIN): string {
  const rows = settings.map(({ key, value, from, variable }) => [
    key,
    variable === null ? from : `${from} (${variable})`,
    value === null ? "-" : typeof value === "string" ? value : JSON.stringify(value),
  ]);
  return table(
    ["KEY", "FROM", "VALUE"],
    rows.map((row) => row.map(printable)),
    paint,
  );
}
