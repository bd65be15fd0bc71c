// `[tc]` of a server's configuration: whether this node is a transaction coordinator among others, and where it meets the first of them. That is
// all that there is to say: how members, leaders and the registry are kept has no settings (specs/tc-membership.md, invariant 7).

import { Type, type Static } from "typebox";
import { MEMBERS_MAX } from "../../core/kit/limits.ts";
import { ApiUrl } from "../api-url.ts";
import { strict } from "../schema-kit.ts";
import type { Mistake } from "../shape.ts";
import { isLoopback, isWildcard, type ListenAddress, showAddress } from "./listen-address.ts";

export const TcFile = strict({
  join: Type.Optional(
    Type.Array(ApiUrl, { maxItems: MEMBERS_MAX, wanted: `a list of at most ${MEMBERS_MAX} API URLs` }),
  ),
  disable_auth: Type.Optional(Type.Boolean()),
});
export type TcFile = Static<typeof TcFile>;

export const TC_DEFAULTS = { "tc.disable_auth": false } as const;

export interface TcConfig {
  /** Where other coordinators reach this node. As those of `join`, it has no slash at its end, and no port that goes without saying. */
  readonly endpoint: string;
  /** Each once. Where the others may be met at first; no list of members. */
  readonly join: readonly string[];
  /** Callers on this machine may read without a certificate. */
  readonly disableAuth: boolean;
}

/** Of the rest of the configuration, what `[tc]` depends on. */
export interface TcSurroundings {
  readonly backend: string | null;
  readonly api: {
    readonly listen: ListenAddress;
    readonly advertise: string | null;
    readonly tls: { readonly clientCaFile: string | null } | null;
  };
}

/** Null: this node is no coordinator. */
export function tcOf({ join, disable_auth: disableAuth }: TcFile, api: TcSurroundings["api"]): TcConfig | null {
  if (join === undefined) return null;
  return {
    // Without one the configuration is refused.
    endpoint: tcEndpointOf(api) ?? "",
    join: [...new Set(join.map(originOf))],
    disableAuth: disableAuth ?? TC_DEFAULTS["tc.disable_auth"],
  };
}

/**
 * What is announced to other coordinators: `api.advertise`. Without it an API on loopback is reached where it listens, if its port stays the same. Null:
 * there is nothing to announce.
 */
export function tcEndpointOf({ listen, advertise, tls }: TcSurroundings["api"]): string | null {
  if (advertise !== null) return originOf(advertise);
  if (!isLoopback(listen.host) || listen.port === 0) return null;
  return originOf(`${tls === null ? "http" : "https"}://${showAddress(listen)}`);
}

/** Two spellings of one endpoint would be two members. */
function originOf(url: string): string {
  return new URL(url).origin;
}

export function tcMistakes(file: TcFile, config: TcConfig | null, around: TcSurroundings): Mistake[] {
  const { backend, api } = around;
  if (config === null) {
    if (file.disable_auth === undefined) return [];
    return [
      { field: "tc.disable_auth", message: "means nothing without tc.join. Name the nodes to join, or leave it out" },
    ];
  }
  const mistakes: Mistake[] = [];
  if (config.join.length === 0) {
    mistakes.push({ field: "tc.join", message: "is empty: name this node at least, or leave it out" });
  }
  if (backend !== null) {
    mistakes.push({
      field: "tc.join",
      message:
        "can't be used with backend: a coordinator decides transactions in a log of its own, and this node's log is in a database. Leave one of the two out",
    });
  }
  if (config.disableAuth && !isLoopback(api.listen.host)) {
    mistakes.push({
      field: "tc.disable_auth",
      message: `must be false: api.listen is ${showAddress(api.listen)}, beyond loopback, where strangers could ask. Leave it out, or listen on 127.0.0.1`,
    });
  }
  return [...mistakes, ...endpointMistakes(api), ...(config.endpoint === "" ? [] : seedMistakes(config, api))];
}

function endpointMistakes(api: TcSurroundings["api"]): Mistake[] {
  const { listen, advertise } = api;
  if (advertise !== null) {
    const { hostname, port } = new URL(advertise);
    const isReachable = !isWildcard(hostname.replaceAll(/^\[|\]$/g, "")) && port !== "0";
    if (isReachable) return [];
    return [{ field: "api.advertise", message: "must be an address that other coordinators can dial: tc.join is set" }];
  }
  // An API on every interface needs it in any case, which another mistake says.
  if (tcEndpointOf(api) !== null || isWildcard(listen.host)) return [];
  const where = isLoopback(listen.host) ? "which differs at each start" : "beyond loopback";
  const message = `is missing: tc.join is set, and other coordinators must know where to reach this node. api.listen is ${showAddress(listen)}, ${where}`;
  return [{ field: "api.advertise", message }];
}

/** Whoever is not this node is known by its certificate, and knows this node by one. */
function seedMistakes({ endpoint, join }: TcConfig, { tls }: TcSurroundings["api"]): Mistake[] {
  const others = join.filter((url) => url !== endpoint);
  if (others.length === 0) return [];
  const mistakes = others
    .filter((url) => !url.startsWith("https:"))
    .map(
      (url) =>
        `names ${url}, which is not this node (${endpoint}): it must begin with https, for coordinators know each other by certificates`,
    );
  const named = `names other nodes (${others.join(", ")}), and coordinators know each other by certificates`;
  if (tls === null) {
    const how =
      "Set cert_file, key_file and client_ca_file there (`tenure cert issue` makes the files), or join this node alone";
    mistakes.push(`${named}: api.tls is missing. ${how}`);
  } else if (tls.clientCaFile === null) {
    const how = "Name the authority that signs all of them (ca.crt of `tenure cert init`), or join this node alone";
    mistakes.push(`${named}: api.tls.client_ca_file is missing. ${how}`);
  }
  return mistakes.map((message) => ({ field: "tc.join", message }));
}
