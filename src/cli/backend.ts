// A backend from a URL and the environment, for every command. Knobs are variables (`TENURE_SERVER_TIMEOUT_MS`) or query
// parameters of the URL with the same name in small letters (`?tenure_server_timeout_ms=3000`), which go first. A
// backend's code is loaded when its URL is given. No message holds the URL: it may have a password in it.

import { readFileSync } from "node:fs";
import { ENVIRONMENT, readEnvironment } from "../electors/postgres/environment.ts";
import { settingsOf } from "../electors/postgres/options.ts";
import type { EtcdOptions } from "../entry/etcd.ts";
import type { PostgresOptions } from "../entry/postgres.ts";
import type { Backend } from "../ports/backend.ts";
import { suggestion, UsageError } from "./flags.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What a URL and the environment ask for. */
export type BackendSource =
  | { readonly kind: "postgres"; readonly options: PostgresOptions<never> & { readonly url: string } }
  | { readonly kind: "etcd"; readonly options: EtcdOptions };

interface Knob {
  readonly option: string;
  readonly read: (name: string, text: string) => unknown;
}
type Knobs = Readonly<Record<string, Knob>>;

/** Beside those of the specification, which electors/postgres/environment.ts reads. */
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

/** What was given on the command line, else what the environment says. */
export function backendUrl(flag: string | undefined, environment: Environment): string {
  const url = [flag, environment["TENURE_BACKEND"], environment["TENURE_PG_CONN_STRING"]].find(
    (one) => one !== undefined && one !== "",
  );
  if (url !== undefined) return url;
  throw new UsageError("--backend is missing: give postgres://… or etcd://…, or set TENURE_BACKEND");
}

export async function backendFrom(url: string, environment: Environment): Promise<Backend> {
  const source = backendSource(url, environment);
  if (source.kind === "etcd") return (await import("../entry/etcd.ts")).etcd(source.options);
  return (await import("../entry/postgres.ts")).postgres(source.options);
}

/** Throws UsageError or CONFIG_INVALID for what can't be; connects nothing. */
export function backendSource(url: string, environment: Environment): BackendSource {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  const at = url.indexOf("?");
  const bare = at < 0 ? url : url.slice(0, at);
  const query = new URLSearchParams(at < 0 ? "" : url.slice(at + 1));
  const ours = [...query].filter(([name]) => name.startsWith("tenure_"));
  const others = [...query].filter(([name]) => !name.startsWith("tenure_"));
  switch (scheme) {
    case "postgres":
    case "postgresql": {
      const variables = overlay(environment, ours, [...Object.keys(ENVIRONMENT), ...Object.keys(POSTGRES_KNOBS)]);
      const client = others.length === 0 ? bare : `${bare}?${new URLSearchParams(others).toString()}`;
      const ourKnobs = read(POSTGRES_KNOBS, variables);
      const check = (options: PostgresOptions<never>): void => void settingsOf({ ...options, ...ourKnobs });
      const { options } = readEnvironment({ ...variables, TENURE_PG_CONN_STRING: client }, check);
      return { kind: "postgres", options: { ...options, ...ourKnobs, url: client } };
    }
    case "etcd":
    case "etcds": {
      if (others[0] !== undefined) {
        throw new UsageError(`--backend has a parameter ${others[0][0]}, which means nothing with etcd`);
      }
      const names = [...Object.keys(ETCD_KNOBS), ...Object.keys(ETCD_TLS_KNOBS)];
      const variables = overlay(environment, ours, names);
      const tls = read(ETCD_TLS_KNOBS, variables);
      const endpoints = etcdEndpoints(bare, scheme === "etcds");
      return { kind: "etcd", options: { ...read(ETCD_KNOBS, variables), endpoints, tls } };
    }
    default:
      throw new UsageError("--backend must begin with postgres://, postgresql://, etcd:// or etcds://");
  }
}

/** `etcd://user:password@a:2379,b:2379`: the scheme stands once, in front of all hosts. */
function etcdEndpoints(bare: string, secure: boolean): string[] {
  const hosts = bare.slice(bare.indexOf("//") + 2).replace(/\/$/, "");
  return hosts.split(",").map((host) => {
    if (host === "" || host.includes("/")) {
      throw new UsageError("--backend names no host: write etcd://host:2379, or several with commas between them");
    }
    return `${secure ? "https" : "http"}://${host}`;
  });
}

/** The environment as if the URL's parameters had been set in it. */
function overlay(environment: Environment, parameters: [string, string][], names: readonly string[]): Environment {
  const known = names.map((name) => name.toLowerCase());
  for (const [name] of parameters) {
    if (!known.includes(name)) {
      throw new UsageError(`--backend has a parameter ${name}, which does not exist here${suggestion(name, known)}`);
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
