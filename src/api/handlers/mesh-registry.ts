// The registry of sites: a site registers and is heard under its own id; operators approve and evict.

import type { REGISTRY_ROUTES } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Controllers, ControllerView } from "../../ports/mesh/controllers.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Handlers, Service } from "./handler.ts";
import { requireSite } from "./mesh-caller.ts";
import { fenced } from "./mutation.ts";
import { beFresh } from "./reads.ts";

export function registryHandlers(
  service: Service,
  controllers: Controllers,
): Pick<Handlers, keyof typeof REGISTRY_ROUTES> {
  return {
    registerController: async ({ caller, body: { id, url, name, metadata = {} } }) => {
      requireSite(caller, id);
      const { expiresAtMs } = await controllers.register({ id, url: plain(url), name, metadata });
      return { body: { id, expiresAt: expiresAtMs } };
    },
    controllerHeartbeat: async ({ caller, params: { id }, body: { url, metadata = {} } }) => {
      requireSite(caller, id);
      const { urls, version } = metadata;
      const { expiresAtMs } = await controllers.heartbeat({ id, url: url && plain(url), urls, version });
      return { body: { expiresAt: expiresAtMs } };
    },
    controllers: async ({ query }) => {
      await beFresh(service, query);
      return { body: { controllers: controllers.list(query.all ?? false).map(shown) } };
    },
    approveSite: async ({ caller, params: { id }, body: { ring = null, leader_epoch: leaderEpoch } }) => {
      const request = requestOf(caller.name, leaderEpoch);
      return { body: site(await fenced(service, leaderEpoch, () => controllers.approve(request, id, ring))) };
    },
    evictSite: async ({ caller, params: { id }, body: { leader_epoch: leaderEpoch } }) => {
      const request = requestOf(caller.name, leaderEpoch);
      const evict = async (): Promise<ControllerView> => {
        try {
          return await controllers.evict(request, id);
        } catch (error) {
          if (TenureError.is(error) && error.code === "NOT_FOUND" && isOwn(controllers, id)) throw leaves(id);
          throw error;
        }
      };
      return { body: site(await fenced(service, leaderEpoch, evict)) };
    },
  };
}

function isOwn(controllers: Controllers, id: string): boolean {
  return controllers.list(false).some((one) => one.id === id && one.status === "own");
}

function leaves(id: string): TenureError {
  const text = `${id} is this site itself, which is not in its own registry. A site leaves its mesh with tenure mesh leave.`;
  return new TenureError("NOT_FOUND", text);
}

/** Both do nothing the second time: they take no Idempotency-Key. */
function requestOf(caller: string, leaderEpoch: number | undefined): Request {
  return { caller, idempotencyKey: null, bodyHash: "", leaderEpoch };
}

/** One address has one spelling. */
function plain(url: string): string {
  return url.replace(/\/$/, "");
}

function shown(view: ControllerView): object {
  const { id, url, name, registeredAtMs, lastHeartbeatAtMs, expiresAtMs, isActive, status, metadata } = view;
  const times = { registeredAt: registeredAtMs, lastHeartbeatAt: lastHeartbeatAtMs, expiresAt: expiresAtMs };
  return { id, url, name, ...times, isActive, status, metadata };
}

function site({ id, name, url, status }: ControllerView): object {
  return { id, name, url, status };
}
