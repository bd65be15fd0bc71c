// Transaction coordinators, as the node that answers sees them: who leads, who votes, which islands take part. Each island's servers answer for
// themselves, so these go to whichever of the client's nodes answers first.

import type { Caller, CallOptions } from "../caller.ts";
import type { BackendsView, LeadingCoordinatorView, IslandsView, MembersListView } from "./views.ts";

/** The first three need a certificate of the kind tc, server or operator; `islands` also takes an API key that may read. */
export interface ClientCoordinators {
  leader(options?: CallOptions): Promise<LeadingCoordinatorView>;
  members(options?: CallOptions): Promise<MembersListView>;
  backends(options?: CallOptions): Promise<BackendsView>;
  islands(options?: CallOptions): Promise<IslandsView>;
}

export function coordinatorsOf(caller: Caller): ClientCoordinators {
  return {
    leader: async (options = {}) => {
      const view = await caller.readJson<Partial<LeadingCoordinatorView> & Pick<LeadingCoordinatorView, "self">>(
        "/v1/tc/leader",
        options,
      );
      const nobody = { leaderId: null, leaderIncarnation: null, leaderEndpoint: null, term: null, expiresAt: null };
      return { ...nobody, ...view };
    },
    members: async (options = {}) => await caller.readJson("/v1/tc/cluster/list", options),
    backends: async (options = {}) => await caller.readJson("/v1/tc/rm/list", options),
    islands: async (options = {}) => await caller.readJson("/v1/islands", options),
  };
}
