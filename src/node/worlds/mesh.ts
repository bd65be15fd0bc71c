// What a real server takes part in a mesh with: HTTP to other sites, and to whom it may be spoken. Only the configured parents are called;
// other addresses, which a site has registered or answers with, only where both ends are on loopback, or `mesh.dial_registered` allows it and TLS
// says who is there (designs/mesh.md: nobody makes this site call somewhere by registering an address).

import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { isLoopback, type ServerConfig } from "../../contract/index.ts";
import { openMeshViews } from "../../drivers/sqlite/index.ts";
import { httpSites, type SiteAccess } from "../../drivers/sites/index.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ServicesWorld } from "../assembly/assemble.ts";
import { pem } from "./api.ts";
import { MESH_FILE } from "./system.ts";

const HOUR_MS = 3_600_000;

/** Neither: the site is standalone. */
export function meshWorld(config: ServerConfig): Pick<ServicesWorld, "mesh" | "links"> {
  const { mesh } = config;
  if (mesh.mode === "standalone") return {};
  const access = accessOf(config);
  const accessTo = callable(config);
  return {
    mesh: { maxSkewMs: mesh.maxSkewMs },
    links: {
      accept: mesh.accept,
      parents: mesh.parentUrls,
      heartbeatMs: mesh.heartbeatIntervalMs,
      sites: httpSites({
        access: (url) => {
          const allowed = accessTo(url);
          if (allowed === "nothing") return null;
          return allowed === "key" ? access : { ...access, key: undefined };
        },
      }),
    },
  };
}

/** Undefined: the site is standalone. What a site showed while it was distributed stays, and goes on from there later. */
export async function openMeshState(
  { mesh, dataDir, history }: ServerConfig,
  clusterId: string,
  logger: Logger,
): Promise<ServicesWorld["meshState"]> {
  if (mesh.mode === "standalone") return undefined;
  const views = await openMeshViews({ path: join(dataDir, MESH_FILE), clusterId, logger });
  return { views, replayMs: mesh.replayHours * HOUR_MS, isCut: history.keepDays !== null };
}

/**
 * What an address may be shown: the API key, a certificate alone, or nothing. The key goes to configured parents and within this machine
 * only (trap 64): an address that a parent names could be anybody's, and whoever has the key speaks for this site at every parent.
 */
export function callable({
  mesh,
  api,
}: Pick<ServerConfig, "mesh" | "api">): (url: URL) => "key" | "certificate" | "nothing" {
  const parents = new Set(mesh.parentUrls.map((url) => new URL(url).origin));
  const isLocal = isLoopback(api.listen.host);
  return (url) => {
    if (parents.has(url.origin)) return "key";
    if (isLocal && isLoopback(url.hostname.replaceAll(/^\[|\]$/g, ""))) return "key";
    return mesh.dialRegistered && url.protocol === "https:" ? "certificate" : "nothing";
  };
}

function accessOf({ mesh, api }: ServerConfig): SiteAccess {
  const key = mesh.apiKeyFile === null ? undefined : pem(mesh.apiKeyFile).trim();
  const ca = authoritiesOf({ mesh, api });
  // A node's own certificate says `server`, which is a viewer at another site: only one that names this site speaks for it.
  const { certificate } = mesh;
  const own = certificate === null ? {} : { cert: pem(certificate.certFile), key: pem(certificate.keyFile) };
  return { key, tls: { ...(ca === null ? {} : { ca }), ...own } };
}

/** Who may vouch for the address of another site: those of `mesh.peers`; else this cluster's own, or one that everybody knows. Null: those alone. */
function authoritiesOf({ mesh, api }: Pick<ServerConfig, "mesh" | "api">): string | null {
  const ownFile = api.tls?.clientCaFile ?? null;
  const named = [...mesh.peers.map(({ caFile }) => caFile), ownFile].filter((file) => file !== null);
  if (named.length === 0) return null;
  return [...named.map(pem), ...(mesh.peers.length === 0 ? getCACertificates("default") : [])].join("\n");
}
