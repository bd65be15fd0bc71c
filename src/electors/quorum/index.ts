// The leader of the transaction coordinators as an elector, inside a server: a lease of a majority of coordinators, its term as the epoch.

import { TenureError } from "../../core/kit/errors.ts";
import { LEASE_RENEW_MS, LEASE_TRUST_MS, LEASE_TTL_MS } from "../../core/lease/limits.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { Backend, Claim } from "../../ports/backends/backend.ts";
import type { Quorum } from "../../ports/backends/quorum.ts";
import { QUORUM_HOLD_BACK_MS, QUORUM_RELEASE_MS, QUORUM_RETRY_MS_MAX, QUORUM_RETRY_MS_MIN } from "../limits.ts";
import { Chair, QuorumSeat } from "./seat.ts";

/** Of the lease, whose times no setting changes: what the gate trusts is what the leader's own gate does. */
const TIMING: Timing = {
  serverTimeoutMs: LEASE_TTL_MS,
  marginMs: LEASE_TTL_MS - LEASE_TRUST_MS,
  heartbeatMs: LEASE_RENEW_MS,
  retryMinMs: QUORUM_RETRY_MS_MIN,
  retryMaxMs: QUORUM_RETRY_MS_MAX,
  holdBackMs: QUORUM_HOLD_BACK_MS,
  releaseTimeoutMs: QUORUM_RELEASE_MS,
};

export function quorumBackend(scope: string, quorum: Quorum): Backend {
  const chair = new Chair();
  return {
    kind: "quorum",
    host: quorum.identity,
    timing: TIMING,
    seat: (claim) => {
      checkClaim(claim, scope, quorum);
      return new QuorumSeat(claim, quorum, chair);
    },
  };
}

/** What the lease can't carry is refused, before anybody relies on it. */
function checkClaim(claim: Claim, scope: string, { identity, metadata }: Quorum): void {
  if (claim.scope !== scope)
    throw invalid(`the coordinators have one scope, "${scope}", and "${claim.scope}" is another one`);
  if (claim.identity !== identity)
    throw invalid(`the leader is known by its node id, "${identity}", and not as "${claim.identity}"`);
  const isKnown = Object.entries(claim.metadata).every(([name, value]) => metadata[name] === value);
  if (!isKnown) throw invalid("a lease carries no metadata: observers know of a node only what its coordinator says");
}

function invalid(why: string): TenureError {
  return new TenureError("CONFIG_INVALID", `createElector: ${why}.`);
}
