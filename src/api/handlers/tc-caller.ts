// Whose membership and leases a call of a coordinator is about: the server's in the certificate, whatever the body says.

import { Refusal } from "../refusal.ts";
import type { Caller } from "../traffic/callers.ts";

/** The node id of the caller's certificate. Nobody else gets as far as a handler that asks; if one did, it throws tc_cluster_identity_missing. */
export function serverIdOf(caller: Caller): string {
  if (caller.how === "certificate" && caller.identity?.kind === "server") return caller.identity.name;
  throw new Refusal(
    "tc_cluster_identity_missing",
    "The caller has no server's identity. Membership and leases belong to the node id of a certificate: call with that of a server, spiffe://<trust domain>/server/<node id>.",
  );
}
