// Whose membership and leases a call of a coordinator is about: the server's in the certificate, whatever the body says.

import { parseSpiffeId } from "../../core/kit/spiffe.ts";
import { Refusal } from "../refusal.ts";
import type { Caller } from "../traffic/callers.ts";

/** The node id of the caller's certificate. Throws tc_cluster_identity_missing where it is no server's. */
export function serverIdOf({ how, name }: Caller): string {
  const identity = how === "certificate" ? parseSpiffeId(name) : undefined;
  if (identity?.kind === "server") return identity.name;
  throw new Refusal(
    "tc_cluster_identity_missing",
    "The caller has no server's identity. Membership and leases belong to the node id of a certificate: call with that of a server, spiffe://<trust domain>/server/<node id>.",
  );
}
