// `[mesh]` of a server's configuration: whether this site joins others, under which id, with whom, and whose certificates count as theirs.

import { Type, type Static } from "typebox";
import { ApiUrl } from "../api-url.ts";
import * as limits from "../limits.ts";
import { NODE_ID_PATTERN } from "../requests.ts";
import { integer, matching, oneOf, strict, text } from "../schema-kit.ts";
import type { Mistake } from "../shape.ts";

const Path = text(limits.PATH_BYTES_MAX);
const ControllerId = matching(NODE_ID_PATTERN, "a controller id: a–z, 0–9 and -, at most 63, not beginning with -");
export const TrustDomain = matching(/^[a-z0-9][a-z0-9.-]{0,254}$/, "a trust domain: a–z, 0–9, '.' and -");
/** The leader counts it in timers, and a day is a long time for a site to be silent. */
const IntervalMs = integer(limits.MESH_INTERVAL_MS_MIN, limits.MESH_INTERVAL_MS_MAX);

export const MeshFile = strict({
  mode: Type.Optional(oneOf("standalone", "distributed")),
  controller_id: Type.Optional(ControllerId),
  controller_name: Type.Optional(text(limits.SITE_NAME_BYTES_MAX)),
  parent_url: Type.Optional(ApiUrl),
  parent_urls: Type.Optional(Type.Array(ApiUrl, { maxItems: limits.PARENTS_MAX })),
  registration_ttl_ms: Type.Optional(IntervalMs),
  heartbeat_interval_ms: Type.Optional(IntervalMs),
  expiration_check_interval_ms: Type.Optional(IntervalMs),
  key_file: Type.Optional(Path),
  api_key_file: Type.Optional(Path),
  cert_file: Type.Optional(Path),
  cert_key_file: Type.Optional(Path),
  accept: Type.Optional(oneOf("vouched", "approved")),
  max_skew_ms: Type.Optional(integer(0, limits.MESH_INTERVAL_MS_MAX)),
  replay_hours: Type.Optional(integer(1, limits.REPLAY_HOURS_MAX)),
  dial_registered: Type.Optional(Type.Boolean()),
  peers: Type.Optional(
    Type.Array(strict({ id: ControllerId, ca_file: Type.Optional(Path), trust_domain: Type.Optional(TrustDomain) }), {
      maxItems: limits.MESH_PEERS_MAX,
    }),
  ),
});
export type MeshFile = Static<typeof MeshFile>;

export const MESH_DEFAULTS = {
  "mesh.mode": "standalone",
  "mesh.registration_ttl_ms": 300_000,
  "mesh.heartbeat_interval_ms": 120_000,
  "mesh.expiration_check_interval_ms": 60_000,
  "mesh.accept": "vouched",
  "mesh.max_skew_ms": 1_000,
  "mesh.replay_hours": 24,
  "mesh.dial_registered": false,
} as const;

export interface MeshConfig {
  readonly mode: "standalone" | "distributed";
  /** Null: the cluster's id. */
  readonly controllerId: string | null;
  /** Null: the host's name. */
  readonly controllerName: string | null;
  /** Each once, without a slash at its end. */
  readonly parentUrls: readonly string[];
  readonly registrationTtlMs: number;
  readonly heartbeatIntervalMs: number;
  readonly expirationCheckIntervalMs: number;
  /** This node's own, which signs what the site sends. */
  readonly keyFile: string;
  /** Of the key that is shown to parents; null: none is. */
  readonly apiKeyFile: string | null;
  /** The certificate that other sites are shown, for this site's id; null: none is. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | null;
  readonly accept: "vouched" | "approved";
  readonly maxSkewMs: number;
  readonly replayHours: number;
  readonly dialRegistered: boolean;
  readonly peers: readonly MeshPeer[];
}

/** Another site whose certificates count here, for its own id and nothing else. */
export interface MeshPeer {
  readonly id: string;
  /** Null: signed by this cluster's own authority of clients. */
  readonly caFile: string | null;
  /** Null: this cluster's own. */
  readonly trustDomain: string | null;
}

export function meshOf(file: MeshFile, dataDir: string, resolve: (path: string) => string): MeshConfig {
  const given = file.parent_url === undefined ? [] : [file.parent_url];
  const urls = [...given, ...(file.parent_urls ?? [])].map((url) => url.replace(/\/$/, ""));
  return {
    mode: file.mode ?? MESH_DEFAULTS["mesh.mode"],
    controllerId: file.controller_id ?? null,
    controllerName: file.controller_name ?? null,
    parentUrls: [...new Set(urls)],
    registrationTtlMs: file.registration_ttl_ms ?? MESH_DEFAULTS["mesh.registration_ttl_ms"],
    heartbeatIntervalMs: file.heartbeat_interval_ms ?? MESH_DEFAULTS["mesh.heartbeat_interval_ms"],
    expirationCheckIntervalMs: file.expiration_check_interval_ms ?? MESH_DEFAULTS["mesh.expiration_check_interval_ms"],
    keyFile: file.key_file === undefined ? `${dataDir}/mesh.key` : resolve(file.key_file),
    apiKeyFile: file.api_key_file === undefined ? null : resolve(file.api_key_file),
    certificate:
      file.cert_file === undefined || file.cert_key_file === undefined
        ? null
        : { certFile: resolve(file.cert_file), keyFile: resolve(file.cert_key_file) },
    accept: file.accept ?? MESH_DEFAULTS["mesh.accept"],
    maxSkewMs: file.max_skew_ms ?? MESH_DEFAULTS["mesh.max_skew_ms"],
    replayHours: file.replay_hours ?? MESH_DEFAULTS["mesh.replay_hours"],
    dialRegistered: file.dial_registered ?? MESH_DEFAULTS["mesh.dial_registered"],
    peers: (file.peers ?? []).map(({ id, ca_file: ca, trust_domain: domain }) => ({
      id,
      caFile: ca === undefined ? null : resolve(ca),
      trustDomain: domain ?? null,
    })),
  };
}

/** Of the rest of the configuration, what `[mesh]` depends on. */
export interface MeshSurroundings {
  readonly backend: string | null;
  readonly hasApiTls: boolean;
  readonly hasClientCa: boolean;
}

/** Fields that mean something only where the site joins others. */
const OF_DISTRIBUTED = [
  "parent_url",
  "parent_urls",
  "api_key_file",
  "cert_file",
  "cert_key_file",
  "peers",
  "dial_registered",
] as const;

export function meshMistakes(file: MeshFile, config: MeshConfig, around: MeshSurroundings): Mistake[] {
  const mistakes: Mistake[] = [];
  const add = (field: string, message: string): void => void mistakes.push({ field: `mesh.${field}`, message });
  if (config.mode === "standalone") {
    for (const field of OF_DISTRIBUTED.filter((name) => file[name] !== undefined)) {
      add(
        field,
        'means nothing while mesh.mode is standalone. Set mode = "distributed" to join sites, or leave it out',
      );
    }
    return mistakes;
  }
  if (around.backend !== null) {
    add("mode", "must be standalone with backend: a site joins others only with a log of its own");
  }
  if (config.heartbeatIntervalMs >= config.registrationTtlMs) {
    add(
      "heartbeat_interval_ms",
      "must be shorter than mesh.registration_ttl_ms, or each registration ends before it is renewed",
    );
  }
  if (config.apiKeyFile !== null && config.parentUrls.length === 0) {
    add("api_key_file", "has the key that is shown to parents, and there are none. Name parent_urls, or leave it out");
  }
  if ((file.cert_file === undefined) !== (file.cert_key_file === undefined)) {
    const [missing, given] =
      file.cert_file === undefined
        ? (["cert_file", "cert_key_file"] as const)
        : (["cert_key_file", "cert_file"] as const);
    add(missing, `is missing: mesh.${given} needs it`);
  }
  return [...mistakes, ...peerMistakes(config, around)];
}

function peerMistakes({ peers, controllerId }: MeshConfig, { hasApiTls, hasClientCa }: MeshSurroundings): Mistake[] {
  return peers.flatMap(({ id, caFile, trustDomain }, at) => {
    const mistakes: Mistake[] = [];
    const add = (field: string, message: string): void =>
      void mistakes.push({ field: `mesh.peers[${at}].${field}`, message });
    if (id === controllerId) add("id", "is this site's own controller_id");
    if (peers.slice(0, at).some((other) => other.id === id)) add("id", "is given twice");
    if (caFile !== null && !hasApiTls) add("ca_file", "needs api.tls: without it nobody presents a certificate");
    if (caFile !== null && trustDomain === null) {
      add("trust_domain", "is missing: name the one that the other site's authority signs for");
    }
    if (caFile === null && trustDomain !== null && !hasClientCa) {
      add("trust_domain", "needs ca_file, or api.tls.client_ca_file if this cluster's own authority signs for it");
    }
    return mistakes;
  });
}

/** Of the command line, by their fields in `[mesh]`. */
export interface MeshFlags {
  readonly mode?: string | undefined;
  readonly controller_id?: string | undefined;
  readonly controller_name?: string | undefined;
  readonly parent_urls?: readonly string[] | undefined;
}

/** `[mesh]` of the file with the flags before it; nothing where there are none. */
export function withMeshFlags(file: Readonly<Record<string, unknown>>, flags: MeshFlags): { readonly mesh?: object } {
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  if (given.length === 0) return {};
  const { parent_url: parent, ...rest } = (file["mesh"] ?? {}) as Record<string, unknown>;
  // Parents of the command line replace those of the file, however they are spelled there.
  const kept = parent === undefined || flags.parent_urls !== undefined ? rest : { ...rest, parent_url: parent };
  return { mesh: { ...kept, ...Object.fromEntries(given) } };
}

/** The flag that has said what is in this field; null: the file has. */
export function meshFlagOf(field: string, flags: MeshFlags): string | null {
  const [, name = ""] = /^mesh\.(\w+)/.exec(field) ?? [];
  if ((flags as Readonly<Record<string, unknown>>)[name] === undefined) return null;
  return `--${name.replace("parent_urls", "parent_url").replaceAll("_", "-")}`;
}
