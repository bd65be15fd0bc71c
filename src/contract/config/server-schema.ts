// The server's configuration file: every field with its bounds. docs/reference/configuration.md lists the same fields,
// defaults and variables, and a test compares.

import { Type, type Static } from "typebox";
import {
  AGENT_CAPACITY_MAX,
  API_KEY_NAME_BYTES_MAX,
  JOB_LABELS_MAX,
  JOB_NAME_BYTES_MAX,
  MEMBERS_MAX,
} from "../../core/kit/limits.ts";
import { HostPort } from "./listen-address.ts";
import { MESH_DEFAULTS, MeshFile, TrustDomain } from "./mesh.ts";
import { TC_DEFAULTS, TcFile } from "./tc.ts";
import { API_LISTEN_DEFAULT } from "../names.ts";
import * as limits from "../limits.ts";
import { NODE_ID_PATTERN, NodeId } from "../requests.ts";
import { RoleName } from "../roles.ts";
import { ApiUrl } from "../api-url.ts";
import { integer, matching, oneOf, strict, text } from "../schema-kit.ts";
import { shape } from "../shape.ts";

const Path = text(limits.PATH_BYTES_MAX);
const Milliseconds = Type.Number({ exclusiveMinimum: 0, wanted: "a positive number of milliseconds" });

/** The value may hold a password: no message shows it. */
const PostgresUrl = Type.Refine(
  Type.String({ maxLength: limits.BACKEND_URL_LENGTH_MAX }),
  (value: string) => /^postgres(ql)?:\/\//.test(value),
  () => "must be a Postgres URL: postgres://user:password@host:5432/database",
);

export const ServerConfigFile = strict({
  node_id: NodeId,
  data_dir: Path,
  backend: Type.Optional(PostgresUrl),
  peer: Type.Optional(
    strict({
      listen: Type.Optional(HostPort),
      advertise: Type.Optional(HostPort),
      tls: Type.Optional(strict({ ca_file: Path, cert_file: Path, key_file: Path })),
      secret_file: Type.Optional(Path),
      trust: Type.Optional(Type.Array(NodeId, { maxItems: MEMBERS_MAX })),
    }),
  ),
  api: Type.Optional(
    strict({
      listen: Type.Optional(HostPort),
      advertise: Type.Optional(ApiUrl),
      tls: Type.Optional(
        strict({
          cert_file: Path,
          key_file: Path,
          client_ca_file: Type.Optional(Path),
          trust_domain: Type.Optional(TrustDomain),
          min_version: Type.Optional(oneOf("1.2", "1.3")),
        }),
      ),
      limits: Type.Optional(
        strict({
          connections_per_caller: Type.Optional(integer(1)),
          requests_per_caller: Type.Optional(integer(1)),
          streams_per_caller: Type.Optional(integer(1)),
          unauthenticated_per_address: Type.Optional(integer(1)),
          connection_age_s: Type.Optional(integer(1, limits.CONNECTION_AGE_S_MAX)),
        }),
      ),
    }),
  ),
  peers: Type.Optional(
    Type.Refine(
      Type.Record(Type.String(), HostPort, { maxProperties: MEMBERS_MAX }),
      (peers: Record<string, string>) => Object.keys(peers).every((id) => NODE_ID_PATTERN.test(id)),
      () => "must have node ids as its names (a–z, 0–9 and -, at most 63)",
    ),
  ),
  bootstrap: Type.Optional(strict({ expect: Type.Optional(Type.Array(NodeId, { maxItems: MEMBERS_MAX })) })),
  keys: Type.Optional(
    Type.Array(
      strict({
        name: text(API_KEY_NAME_BYTES_MAX),
        sha256: matching(/^[0-9a-f]{64}$/, "the SHA-256 of the key as 64 lower-case hex digits, never the key itself"),
        role: RoleName,
      }),
      { maxItems: limits.CONFIG_KEYS_MAX },
    ),
  ),
  election: Type.Optional(
    strict({
      election_timeout_min_ms: Type.Optional(Milliseconds),
      election_timeout_max_ms: Type.Optional(Milliseconds),
      heartbeat_interval_ms: Type.Optional(Milliseconds),
      enable_auto_failover: Type.Optional(Type.Boolean()),
      failover_detection_timeout_ms: Type.Optional(Milliseconds),
      transfer_timeout_ms: Type.Optional(Milliseconds),
      transfer_log_sync: Type.Optional(Type.Boolean()),
      enable_lease: Type.Optional(Type.Boolean()),
      lease_renewal_interval_ms: Type.Optional(Milliseconds),
      enable_priority: Type.Optional(Type.Boolean()),
      node_priority: Type.Optional(integer(0, 255)),
    }),
  ),
  snapshots: Type.Optional(
    strict({
      after_entries: Type.Optional(integer(1)),
      after_bytes: Type.Optional(integer(1)),
      keep_entries: Type.Optional(integer(0)),
    }),
  ),
  disk: Type.Optional(strict({ min_free_bytes: Type.Optional(integer(0)) })),
  history: Type.Optional(
    strict({
      quota_bytes: Type.Optional(integer(1)),
      keep_days: Type.Optional(
        Type.Number({ exclusiveMinimum: 0, maximum: limits.KEEP_DAYS_MAX, wanted: "a positive number of days" }),
      ),
    }),
  ),
  agent: Type.Optional(
    strict({
      enabled: Type.Optional(Type.Boolean()),
      capacity: Type.Optional(integer(1, AGENT_CAPACITY_MAX)),
      labels: Type.Optional(Type.Record(Type.String(), text(JOB_NAME_BYTES_MAX), { maxProperties: JOB_LABELS_MAX })),
      servers: Type.Optional(Type.Array(ApiUrl, { maxItems: MEMBERS_MAX })),
      key_file: Type.Optional(Path),
      ca_file: Type.Optional(Path),
    }),
  ),
  mesh: Type.Optional(MeshFile),
  tc: Type.Optional(TcFile),
  log: Type.Optional(strict({ level: Type.Optional(oneOf("trace", "debug", "info", "warn", "error", "silent")) })),
});

export type ServerConfigFile = Static<typeof ServerConfigFile>;
/** A key in the clear, or a URL with a password, must not be repeated by the message that refuses it. */
export const serverConfigShape = shape(ServerConfigFile, (field) => !/^(backend|keys)\b/.test(field));

/** What differs between the nodes of one cluster, so that they can share one file; and the one URL with a password in it. */
export const SERVER_ENVIRONMENT = {
  TENURE_NODE_ID: ["node_id"],
  TENURE_DATA_DIR: ["data_dir"],
  TENURE_SERVER_BACKEND: ["backend"],
  TENURE_PEER_LISTEN: ["peer", "listen"],
  TENURE_PEER_ADVERTISE: ["peer", "advertise"],
  TENURE_API_LISTEN: ["api", "listen"],
  TENURE_API_ADVERTISE: ["api", "advertise"],
  TENURE_TC_JOIN: ["tc", "join"],
  TENURE_LOG_LEVEL: ["log", "level"],
} as const satisfies Readonly<Record<`TENURE_${string}`, readonly [string, string?]>>;

/** By the field's path; the election's are those of core/raft, the snapshots' those of core/kit/limits.ts. */
export const SERVER_DEFAULTS = {
  "peer.listen": "127.0.0.1:7400",
  "api.listen": API_LISTEN_DEFAULT,
  "api.tls.min_version": "1.3",
  "api.limits.connections_per_caller": 9_000,
  "api.limits.requests_per_caller": 18_000,
  "api.limits.streams_per_caller": 500,
  "api.limits.unauthenticated_per_address": 1_000,
  "api.limits.connection_age_s": 3_600,
  /** Four segments of the log: room to compact, and to say so. */
  "disk.min_free_bytes": 64 * 1024 * 1024,
  "agent.enabled": false,
  "agent.capacity": 1,
  ...MESH_DEFAULTS,
  ...TC_DEFAULTS,
  "log.level": "info",
} as const;
