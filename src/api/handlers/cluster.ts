// Who leads, and the cluster as this node sees it. All from memory.

import { toSnake } from "../../contract/index.ts";
import type { Handlers, Service } from "./handler.ts";
import { beFresh, shownRole } from "./reads.ts";
import { leadershipOf, noLeader } from "../refusal.ts";

export function clusterHandlers(service: Service): Pick<Handlers, "leader" | "role" | "cluster"> {
  const { cluster } = service;
  return {
    leader: async ({ query }) => {
      await beFresh(service, query);
      const view = cluster.view();
      const { leader, term, nodeId } = view;
      if (leader === null) throw noLeader(view);
      return {
        body: {
          leader_id: leader.nodeId,
          leader_address: leader.address,
          leader_url: leader.url,
          term,
          node_id: nodeId,
        },
      };
    },
    role: async ({ query }) => {
      await beFresh(service, query);
      const view = cluster.view();
      const { nodeId, leaderId, leaderUrl, leaderEpoch } = leadershipOf(view);
      const role = shownRole(view, service.isQuiet());
      return { body: toSnake({ nodeId, role, leaderId, leaderUrl, leaderEpoch }) };
    },
    cluster: async ({ query }) => {
      await beFresh(service, query);
      return { body: toSnake({ ...cluster.view(), isCoordinator: service.coordinators !== undefined }) };
    },
  };
}
