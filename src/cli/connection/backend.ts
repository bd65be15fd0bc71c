// A backend from a URL and the environment, for every command. Knobs are variables (`TENURE_SERVER_TIMEOUT_MS`) or query
// parameters of the URL with the same name in small letters (`?tenure_server_timeout_ms=3000`), which go first. A
// backend's code is loaded when its URL is given. No message holds the URL: it may have a password in it.

import { readFileSync } from "node:fs";
import { assertNever } from "../../core/kit/assert.ts";
import { ENVIRONMENT, readEnvironment } from "../../electors/postgres/environment.ts";
import { settingsOf } from "../../electors/postgres/options.ts";
import { serversSettings } from "../../electors/servers/options.ts";
import type { EtcdOptions } from "../../entry/etcd.ts";
import type { PostgresOptions } from "../../entry/postgres.ts";
import type { ServersOptions } from "../../entry/servers.ts";
import type { Backend } from "../../ports/backends/backend.ts";
import { suggestion, UsageError } from "../kit/flags.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What a URL and the environment ask for. */
export type BackendSource =
  | { readonly kind: "postgres"; readonly options: PostgresOptions<never> & { readonly url: string } }
  | { readonly kind: "etcd"; readonly options: EtcdOptions }
  | { readonly kind: "servers"; readonly urls: readonly string[]; readonly options: ServersOptions };

interface Knob {
  readonly option: string;
  readonly read: (name: string, text: string) => unknown;
}
type Knobs = Readonly<Record<string, Knob>>;

/** Next to those of the specification, which electors/postgres/environment.ts reads. */
const POSTGRES_KNOBS: Knobs = {
  TENURE_SERVER_TIMEOUT_MS: { option: "serverTimeoutMs", read: milliseconds },
  TENURE_MARGIN_MS: { option: "marginMs", read: milliseconds },
  TENURE_PG_SCHEMA: { option: "schema", read: asText },
  TENURE_PG_MIGRATE: { option: "migrate", read: asText },
  TENURE_PG_WAIT: { option: "wait", read: asText },
};

const ETCD_KNOBS: Knobs = {
  TENURE_SERVER_TIMEOUT_MS: { option: "ttlSeconds", read: wholeSeconds },
  TENURE_MARGIN_MS: { option: "marginMs", read: milliseconds },
  TENURE_HEARTBEAT_INTERVAL_MS: { option: "heartbeatMs", read: milliseconds },
  TENURE_ETCD_PREFIX: { option: "prefix", read: asText },
  TENURE_ETCD_USER: { option: "user", read: asText },
  TENURE_ETCD_PASSWORD: { option: "password", read: asText },
};
const ETCD_TLS_KNOBS: Knobs = {
  TENURE_ETCD_CA_FILE: { option: "ca", read: fileText },
  TENURE_ETCD_CERT_FILE: { option: "cert", read: fileText },
  TENURE_ETCD_KEY_FILE: { option: "key", read: fileText },
};

/** The later goes first, as with `tenure cluster`: `TENURE_API_KEY` before `TENURE_API_KEY_FILE`. */
const SERVERS_KNOBS: Knobs = {
  TENURE_SERVER_TIMEOUT_MS: { option: "ttlMs", read: milliseconds },
  TENURE_MARGIN_MS: { option: "marginMs", read: milliseconds },
  TENURE_HEARTBEAT_INTERVAL_MS: { option: "heartbeatMs", read: milliseconds },
  TENURE_API_KEY_FILE: { option: "key", read: (name, path) => fileText(name, path).trim() },
  TENURE_API_KEY: { option: "key", read: asText },
};
const SERVERS_TLS_KNOBS: Knobs = {
  TENURE_SERVERS_CA_FILE: { option: "ca", read: fileText },
  TENURE_SERVERS_CERT_FILE: { option: "cert", read: fileText },
  TENURE_SERVERS_KEY_FILE: { option: "key", read: fileText },
};

/** What the environment says, the first that is set. The last is that of the commands that ask a cluster: whoever steers one has set it. */
const URL_VARIABLES = ["TENURE_BACKEND", "TENURE_PG_CONN_STRING", "TENURE_URL"] as const;

/** What was given on the command line, else what the environment says. */
export function backendUrl(flag: string | undefined, environment: Environment): string {
  const url = [flag, ...URL_VARIABLES.map((name) => environment[name])].find((one) => one !== undefined && one !== "");
  if (url !== undefined) return url.replaceAll(/\s*,\s*/g, ",");
  throw new UsageError(
    "--backend is missing: give postgres://…, etcd://… or https://… (Tenure's own servers), or set TENURE_BACKEND or TENURE_URL",
  );
}

export async function backendFrom(url: string, environment: Environment): Promise<Backend> {
  const source = backendSource(url, environment);
  switch (source.kind) {
    case "etcd":
      return (await import("../../entry/etcd.ts")).etcd(source.options);
    case "servers":
      return (await import("../../entry/servers.ts")).servers(source.urls, source.options);
    case "postgres":
      return (await import("../../entry/postgres.ts")).postgres(source.options);
    default:
      return assertNever(source, "backendFrom");
  }
}

/** Throws UsageError or CONFIG_INVALID for what can't be; connects nothing. */
export function backendSource(url: string, environment: Environment): BackendSource {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  const at = url.indexOf("?");
  const query = [...new URLSearchParams(at < 0 ? "" : url.slice(at + 1))];
  const given: Given = {
    bare: at < 0 ? url : url.slice(0, at),
    ours: query.filter(([name]) => name.startsWith("tenure_")),
    others: query.filter(([name]) => !name.startsWith("tenure_")),
    environment,
  };
  switch (scheme) {
    case "postgres":
    case "postgresql":
      return postgresSource(given);
    case "etcd":
    case "etcds":
      return etcdSource(given, scheme === "etcds");
    case "http":
    case "https":
      return serversSource(given, scheme);
    default:
      throw new UsageError(
        `--backend must begin with postgres://, postgresql://, etcd://, etcds://, https:// or http:// (Tenure's own servers), not with ${schemeText(url)}`,
      );
  }
}

/** The rest may hold a password. */
function schemeText(url: string): string {
  const found = /^[A-Za-z][A-Za-z0-9+.-]{0,30}:\/\//.exec(url)?.[0];
  return found === undefined ? "anything else" : JSON.stringify(found);
}

interface Given {
  /** Without the query. */
  readonly bare: string;
  /** Parameters that begin with `tenure_`, and those that do not. */
  readonly ours: [string, string][];
  readonly others: [string, string][];
  readonly environment: Environment;
}

function postgresSource({ bare, ours, others, environment }: Given): BackendSource {
  const variables = overlay(environment, ours, [...Object.keys(ENVIRONMENT), ...Object.keys(POSTGRES_KNOBS)]);
  const client = others.length === 0 ? bare : `${bare}?${new URLSearchParams(others).toString()}`;
  const ourKnobs = read(POSTGRES_KNOBS, variables);
  const check = (options: PostgresOptions<never>): void => void settingsOf({ ...options, ...ourKnobs });
  const { options } = readEnvironment({ ...variables, TENURE_PG_CONN_STRING: client }, check);
  return { kind: "postgres", options: { ...options, ...ourKnobs, url: client } };
}

function etcdSource({ bare, ours, others, environment }: Given, secure: boolean): BackendSource {
  noOthers(others, "etcd");
  const variables = overlay(environment, ours, [...Object.keys(ETCD_KNOBS), ...Object.keys(ETCD_TLS_KNOBS)]);
  const tls = read(ETCD_TLS_KNOBS, variables);
  const example = "etcd://host:2379";
  const endpoints = hostsOf(bare, example).map((host) => `${secure ? "https" : "http"}://${host}`);
  return { kind: "etcd", options: { ...read(ETCD_KNOBS, variables), endpoints, tls } };
}

function serversSource({ bare, ours, others, environment }: Given, scheme: "http" | "https"): BackendSource {
  noOthers(others, "Tenure's servers");
  const variables = overlay(environment, ours, [...Object.keys(SERVERS_KNOBS), ...Object.keys(SERVERS_TLS_KNOBS)]);
  const urls = hostsOf(bare.replaceAll(`,${scheme}://`, ","), `${scheme}://host:7401`).map((host) => {
    if (host.includes("@"))
      throw new UsageError("--backend has a user in it; Tenure's servers take TENURE_API_KEY_FILE");
    return `${scheme}://${host}`;
  });
  const options = { ...read(SERVERS_KNOBS, variables), tls: read(SERVERS_TLS_KNOBS, variables) };
  serversSettings(urls, options);
  return { kind: "servers", urls, options };
}

function noOthers(others: [string, string][], what: string): void {
  if (others[0] !== undefined) {
    throw new UsageError(`--backend has a parameter ${others[0][0]}, which means nothing with ${what}`);
  }
}

/** `etcd://user:password@a:2379,b:2379`: the scheme stands once, in front of all hosts. */
function hostsOf(bare: string, example: string): string[] {
  const hosts = bare.slice(bare.indexOf("//") + 2).replace(/\/$/, "");
  return hosts.split(",").map((host) => {
    const name = host.replace(/\/$/, "");
    if (name === "" || name.includes("/")) {
      throw new UsageError(`--backend names no host: write ${example}, or several with commas between them`);
    }
    return name;
  });
}

/** The environment as if the URL's parameters had been set in it. */
function overlay(environment: Environment, parameters: [string, string][], names: readonly string[]): Environment {
  const known = names.map((name) => name.toLowerCase());
  for (const [name] of parameters) {
    if (!known.includes(name)) {
      throw new UsageError(
        `--backend has a parameter ${name}, which does not exist here${suggestion(name, known) || `; give ${known.join(", ")}`}`,
      );
    }
  }
  return { ...environment, ...Object.fromEntries(parameters.map(([name, value]) => [name.toUpperCase(), value])) };
}

/** Options that were given; an empty variable counts as unset. */
function read(knobs: Knobs, variables: Environment): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [name, knob] of Object.entries(knobs)) {
    const text = variables[name]?.trim() ?? "";
    if (text !== "") options[knob.option] = knob.read(name, text);
  }
  return options;
}

function asText(_name: string, text: string): string {
  return text;
}

function milliseconds(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`${name} takes a whole number of milliseconds, not ${JSON.stringify(text)}`);
}

function wholeSeconds(name: string, text: string): number {
  const ms = milliseconds(name, text);
  if (ms % 1_000 === 0) return ms / 1_000;
  throw new UsageError(`${name} takes whole seconds with etcd, such as 3000, not ${text}`);
}

function fileText(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`${name}: ${(error as Error).message}`);
  }
}
