// The server's configuration as the program uses it: the file's fields and the environment's, checked together. All mistakes
// are told at once, each with its field. Pure: the file is read, and the environment passed in, by the caller.
// Refused: whatever listens beyond loopback without TLS and authentication (design §5).

import { TenureError } from "../../core/kit/errors.ts";
import type { ElectionConfig } from "../../core/raft/config.ts";
import { isLoopback, isWildcard, type ListenAddress, parseAddress, showAddress } from "./listen-address.ts";
import { type MeshConfig, meshMistakes, meshOf } from "./mesh.ts";
import type { Role } from "../roles.ts";
import { checkFile } from "./server-mistakes.ts";
import { isSet, namedByPlace, type Places, withPlaces } from "./places.ts";
import { SERVER_DEFAULTS, type ServerConfigFile } from "./server-schema.ts";
import { type TcConfig, tcMistakes, tcOf } from "./tc.ts";
import { listMistakes, type Mistake } from "../shape.ts";
import { snakeKey, toCamel } from "../snake-case.ts";

export interface ServerConfig {
  readonly nodeId: string;
  readonly dataDir: string;
  /** A Postgres URL, maybe with a password in it: the nodes find each other there, and there is no peer. Null: their own log. */
  readonly backend: string | null;
  readonly peer: {
    readonly listen: ListenAddress;
    /** "host:port" */
    readonly advertise: string | null;
    readonly tls: { readonly caFile: string; readonly certFile: string; readonly keyFile: string } | null;
    /** Of the secret that nodes without TLS share; null: at the user's own place. */
    readonly secretFile: string | null;
    /** Node ids that an operator calls members, for a node that was away while they changed. */
    readonly trust: readonly string[];
  };
  readonly api: {
    readonly listen: ListenAddress;
    /** A URL, without a slash at its end. */
    readonly advertise: string | null;
    readonly tls: {
      readonly certFile: string;
      readonly keyFile: string;
      readonly clientCaFile: string | null;
      /** Of client certificates; null: that of this node's own certificate. */
      readonly trustDomain: string | null;
      readonly minVersion: "1.2" | "1.3";
    } | null;
    readonly limits: {
      readonly connectionsPerCaller: number;
      readonly requestsPerCaller: number;
      readonly streamsPerCaller: number;
      readonly unauthenticatedPerAddress: number;
      readonly connectionAgeS: number;
    };
  };
  /** The other nodes' "host:port", by node id. */
  readonly peers: Readonly<Record<string, string>>;
  readonly bootstrapExpect: readonly string[];
  readonly keys: readonly ApiKey[];
  readonly election: Partial<ElectionConfig>;
  readonly snapshots: { readonly afterEntries?: number; readonly afterBytes?: number; readonly keepEntries?: number };
  readonly disk: { readonly minFreeBytes: number };
  /** Of events; null: what fits on the disk, and for ever. */
  readonly history: { readonly quotaBytes: number | null; readonly keepDays: number | null };
  /** The worker that runs here while this node does not lead; off unless it is switched on. */
  readonly agent: {
    readonly enabled: boolean;
    readonly capacity: number;
    readonly labels: Readonly<Record<string, string>>;
    /** Of the cluster's APIs; empty: this node's own. */
    readonly servers: readonly string[];
    readonly keyFile: string | null;
    readonly caFile: string | null;
  };
  readonly mesh: MeshConfig;
  /** Null: this node is no transaction coordinator. */
  readonly tc: TcConfig | null;
  readonly log: { readonly level: LogLevel };
}

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

export interface ApiKey {
  readonly name: string;
  /** Of the key's UTF-8, in lower-case hex. */
  readonly sha256: string;
  readonly role: Role;
}

export interface ConfigSurroundings extends Places {
  /** Where the file lies: its relative paths begin there. Those of the environment begin at the working directory. */
  readonly configDir: string;
  /** The file's name, for messages. */
  readonly file?: string | undefined;
  /** `electionConfig` of core/raft, which knows how the election's numbers must relate; throws CONFIG_INVALID. */
  readonly checkElection: (given: Partial<ElectionConfig>) => unknown;
  /** What is wrong with the parameters of the backend's URL, as it follows its name; undefined: nothing. */
  readonly checkBackend?: ((url: string) => string | undefined) | undefined;
}

const SHA256_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** `raw` is what the file says. Throws CONFIG_INVALID that names every wrong field. */
export function parseServerConfig(raw: unknown, surroundings: ConfigSurroundings): ServerConfig {
  const { configDir, environment } = surroundings;
  const { mistakes, file, isIntact } = checkFile(withPlaces(raw, surroundings));
  if (file === null) throw invalid(mistakes, surroundings);
  const config = assembled(file, (path) => (path.startsWith("/") ? path : `${configDir}/${path}`), environment);
  const relations = relationMistakes(file, config, surroundings).filter(({ field }) => isIntact(readsOf(field)));
  if (mistakes.length + relations.length > 0) throw invalid([...mistakes, ...relations], surroundings);
  return config;
}

function relationMistakes(file: ServerConfigFile, config: ServerConfig, surroundings: ConfigSurroundings): Mistake[] {
  return [
    ...exposureMistakes(config),
    ...advertiseMistakes(config),
    ...backendMistakes(file, surroundings.checkBackend),
    ...keyMistakes(config.keys),
    ...selfMistakes(file, config),
    ...meshMistakes(file.mesh ?? {}, config.mesh, {
      backend: config.backend,
      hasApiTls: config.api.tls !== null,
      hasClientCa: (config.api.tls?.clientCaFile ?? null) !== null,
    }),
    ...tcMistakes(file.tc ?? {}, config.tc, config),
    ...electionMistakes(config.election, surroundings.checkElection),
  ];
}

/** Which fields a relation is about, by the one that it names. */
function readsOf(field: string): readonly string[] {
  const [section = ""] = field.split(/[.[]/);
  return READS[field] ?? READS[section] ?? [section];
}

const READS: Readonly<Record<string, readonly string[]>> = {
  "peer.tls": ["backend", "peer.listen", "peer.tls"],
  "peer.advertise": ["peer.listen", "peer.advertise", "peers", "node_id"],
  "api.tls": ["api.listen", "api.tls"],
  keys: ["keys", "api.listen", "api.tls"],
  mesh: ["mesh", "backend", "api.tls"],
  tc: ["tc", "backend", "api.listen", "api.advertise", "api.tls"],
  peers: ["peers", "node_id", "peer.listen", "peer.advertise"],
  election: [
    "election.election_timeout_min_ms",
    "election.election_timeout_max_ms",
    "election.heartbeat_interval_ms",
    "election.lease_renewal_interval_ms",
  ],
};

function assembled(
  file: ServerConfigFile,
  resolve: (path: string) => string,
  environment: ConfigSurroundings["environment"],
): ServerConfig {
  const { node_id: nodeId, peer = {}, api = {} } = file;
  const { [nodeId]: own, ...peers } = file.peers ?? {};
  const listen = parseAddress(peer.listen ?? SERVER_DEFAULTS["peer.listen"])!;
  const dataDir = isSet(environment["TENURE_DATA_DIR"]) ? file.data_dir : resolve(file.data_dir);
  const ofApi = apiOf(api, resolve);
  return {
    nodeId,
    dataDir,
    backend: file.backend ?? null,
    peer: {
      listen,
      // A file that all nodes share says in `peers` where each is reached.
      advertise: peer.advertise ?? (isWildcard(listen.host) ? (own ?? null) : null),
      tls:
        peer.tls === undefined
          ? null
          : {
              caFile: resolve(peer.tls.ca_file),
              certFile: resolve(peer.tls.cert_file),
              keyFile: resolve(peer.tls.key_file),
            },
      secretFile: peer.secret_file === undefined ? null : resolve(peer.secret_file),
      trust: peer.trust ?? [],
    },
    api: ofApi,
    peers,
    bootstrapExpect: [...new Set(file.bootstrap?.expect)].filter((id) => id !== nodeId),
    keys: file.keys ?? [],
    election: toCamel(file.election ?? {}),
    snapshots: toCamel(file.snapshots ?? {}),
    disk: { minFreeBytes: file.disk?.min_free_bytes ?? SERVER_DEFAULTS["disk.min_free_bytes"] },
    history: { quotaBytes: file.history?.quota_bytes ?? null, keepDays: file.history?.keep_days ?? null },
    agent: agentOf(file.agent ?? {}, resolve),
    mesh: meshOf(file.mesh ?? {}, dataDir, resolve),
    tc: tcOf(file.tc ?? {}, ofApi),
    log: { level: file.log?.level ?? SERVER_DEFAULTS["log.level"] },
  };
}

function apiOf(
  { listen, advertise, tls, limits = {} }: NonNullable<ServerConfigFile["api"]>,
  resolve: (path: string) => string,
): ServerConfig["api"] {
  const limit = (name: keyof typeof limits): number => limits[name] ?? SERVER_DEFAULTS[`api.limits.${name}`];
  return {
    listen: parseAddress(listen ?? SERVER_DEFAULTS["api.listen"])!,
    advertise: advertise?.replace(/\/$/, "") ?? null,
    tls:
      tls === undefined
        ? null
        : {
            certFile: resolve(tls.cert_file),
            keyFile: resolve(tls.key_file),
            clientCaFile: tls.client_ca_file === undefined ? null : resolve(tls.client_ca_file),
            trustDomain: tls.trust_domain ?? null,
            minVersion: tls.min_version ?? SERVER_DEFAULTS["api.tls.min_version"],
          },
    limits: {
      connectionsPerCaller: limit("connections_per_caller"),
      requestsPerCaller: limit("requests_per_caller"),
      streamsPerCaller: limit("streams_per_caller"),
      unauthenticatedPerAddress: limit("unauthenticated_per_address"),
      connectionAgeS: limit("connection_age_s"),
    },
  };
}

function agentOf(
  agent: NonNullable<ServerConfigFile["agent"]>,
  resolve: (path: string) => string,
): ServerConfig["agent"] {
  return {
    enabled: agent.enabled ?? SERVER_DEFAULTS["agent.enabled"],
    capacity: agent.capacity ?? SERVER_DEFAULTS["agent.capacity"],
    labels: agent.labels ?? {},
    servers: agent.servers ?? [],
    keyFile: agent.key_file === undefined ? null : resolve(agent.key_file),
    caFile: agent.ca_file === undefined ? null : resolve(agent.ca_file),
  };
}

/** What only nodes with a log of their own have. */
function backendMistakes(file: ServerConfigFile, check: ConfigSurroundings["checkBackend"]): Mistake[] {
  if (file.backend === undefined) return [];
  const message = check?.(file.backend);
  const stray = (["peer", "peers", "bootstrap", "election", "history"] as const)
    .filter((section) => file[section] !== undefined)
    .map((field) => ({
      field,
      message:
        "means nothing with backend: the nodes find each other, and all that they keep, in the database. Leave it out",
    }));
  return [...(message === undefined ? [] : [{ field: "backend", message }]), ...stray];
}

function exposureMistakes({ backend, peer, api, keys }: ServerConfig): Mistake[] {
  const mistakes: Mistake[] = [];
  if (backend === null && !isLoopback(peer.listen.host) && peer.tls === null) {
    mistakes.push({
      field: "peer.tls",
      message: `is missing: peer.listen is ${showAddress(peer.listen)}, beyond loopback, and nodes must know each other by certificate. Make the files with \`tenure cert init\` and \`tenure cert issue\`, or listen on 127.0.0.1`,
    });
  }
  if (isLoopback(api.listen.host)) return mistakes;
  const beyond = `api.listen is ${showAddress(api.listen)}, beyond loopback`;
  if (api.tls === null) {
    mistakes.push({
      field: "api.tls",
      message: `is missing: ${beyond}, and keys must not travel in the clear. Name cert_file and key_file, or listen on 127.0.0.1`,
    });
  }
  if (keys.length === 0 && (api.tls?.clientCaFile ?? null) === null) {
    mistakes.push({
      field: "keys",
      message: `is missing: ${beyond}, and nobody is let in unknown. Add a key ({"name", "sha256", "role"}), or name api.tls.client_ca_file, or listen on 127.0.0.1`,
    });
  }
  return mistakes;
}

function advertiseMistakes({ peer, api }: ServerConfig): Mistake[] {
  const mistakes: Mistake[] = [];
  if (isWildcard(peer.listen.host) && peer.advertise === null) {
    mistakes.push({
      field: "peer.advertise",
      message: "is missing: peer.listen is every interface, which nobody can dial",
    });
  }
  if (isWildcard(api.listen.host) && api.advertise === null) {
    mistakes.push({
      field: "api.advertise",
      message: "is missing: api.listen is every interface, which nobody can dial",
    });
  }
  const advertised = peer.advertise === null ? undefined : parseAddress(peer.advertise);
  if (advertised !== undefined && (isWildcard(advertised.host) || advertised.port === 0)) {
    mistakes.push({ field: "peer.advertise", message: "must be an address that the other nodes can dial" });
  }
  if (api.tls !== null && api.advertise?.startsWith("http:") === true) {
    mistakes.push({ field: "api.advertise", message: "must begin with https: api.tls is set" });
  }
  return mistakes;
}

function keyMistakes(keys: readonly ApiKey[]): Mistake[] {
  return keys.flatMap(({ name, sha256 }, at) => {
    const before = keys.slice(0, at);
    const mistakes: Mistake[] = [];
    if (before.some((other) => other.name === name)) {
      mistakes.push({ field: `keys[${at}].name`, message: `is given twice: the audit could not tell who called` });
    }
    if (before.some((other) => other.sha256 === sha256)) {
      mistakes.push({
        field: `keys[${at}].sha256`,
        message: "is the same as another key's: each caller needs a key of its own",
      });
    }
    if (sha256 === SHA256_OF_NOTHING) {
      mistakes.push({
        field: `keys[${at}].sha256`,
        message: "is the hash of an empty key: the key was not set when it was hashed",
      });
    }
    return mistakes;
  });
}

/** A file may be shared by all nodes, so a node's own entry is fine; one that says something else is a copied mistake. */
function selfMistakes({ peers = {} }: ServerConfigFile, { nodeId, peer }: ServerConfig): Mistake[] {
  const own = peers[nodeId];
  const reached = peer.advertise ?? showAddress(peer.listen);
  if (own === undefined || own === reached) return [];
  return [
    {
      field: `peers.${nodeId}`,
      message: `is ${own}, and this node is ${nodeId} at ${reached}: two nodes must not have one id. Correct the entry, node_id or peer.advertise`,
    },
  ];
}

/** The core names its fields as the code does; the file has the specification's names. */
function electionMistakes(
  given: Partial<ElectionConfig>,
  check: (given: Partial<ElectionConfig>) => unknown,
): Mistake[] {
  try {
    check(given);
    return [];
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    const message = error.message
      .replace(/^election configuration: /, "")
      .replaceAll(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (name) => `election.${snakeKey(name)}`);
    return message.split("; ").map((one) => {
      const [field = "", ...rest] = one.split(" ");
      return { field, message: rest.join(" ") };
    });
  }
}

function invalid(mistakes: readonly Mistake[], surroundings: ConfigSurroundings): TenureError {
  const named = mistakes.map((mistake) => namedByPlace(mistake, surroundings));
  const file = surroundings.file === undefined ? "" : ` (${surroundings.file})`;
  return new TenureError(
    "CONFIG_INVALID",
    listMistakes(
      `The server's configuration${file} is not valid:`,
      named,
      "docs/reference/configuration.md lists every field.",
    ),
  );
}
