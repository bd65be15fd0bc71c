// This node's site as other sites know it: its id, its name and where it is reached.

import { hostname } from "node:os";
import type { ServerConfig } from "../../contract/index.ts";
import type { ControllersFold } from "../../controller/mesh/controllers-fold.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { verifyEd25519 } from "../../drivers/system/signatures.ts";
import type { SiteWorld } from "../assembly/assemble.ts";
import { apiUrlOf } from "./api.ts";

export function siteWorld(
  config: ServerConfig,
  version: string,
  clusterId: string,
  leaderUrl: () => string | null,
): SiteWorld {
  const { mesh } = config;
  return {
    clusterId,
    name: mesh.controllerName ?? hostname(),
    url: () => leaderUrl() ?? apiUrlOf(config, config.api.listen),
    version,
    verify: verifyEd25519,
    mesh,
  };
}

/** A site keeps its id: it is the first part of the name of everything that it has written. */
export function checkControllerId(
  { mesh }: Pick<ServerConfig, "mesh">,
  clusterId: string,
  { registry }: ControllersFold,
): void {
  const own = registry.own?.controllerId ?? clusterId;
  if (mesh.controllerId === null || mesh.controllerId === own) return;
  throw new TenureError(
    "CONFIG_INVALID",
    `mesh.controller_id (--controller-id) is ${mesh.controllerId}, and the id of this site is ${own}: it is given at the founding, and stays. Correct it, or leave it out.`,
  );
}
