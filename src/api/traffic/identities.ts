// Routes for kinds of certificates (Route.identities): whoever calls one has a verified client certificate of this cluster's own trust domain, of one
// of its kinds. Roles are not looked at, and API keys never suffice: they say what somebody may do, and not who is a member or decides.
//
// With tc.disable_auth, which a node takes only where it listens on loopback, the reads among them are open to everybody there.

import type { IdentityKind } from "../../core/kit/spiffe.ts";
import { Refusal } from "../refusal.ts";
import type { Caller } from "./callers.ts";

export interface ForIdentities {
  readonly kinds: readonly IdentityKind[];
  /** A GET. */
  readonly isRead: boolean;
}

export function hasIdentity(caller: Caller, { kinds }: Pick<ForIdentities, "kinds">): boolean {
  return caller.how === "certificate" && caller.identity !== null && kinds.includes(caller.identity.kind);
}

/** Of who was verified, or has shown nothing: what was shown and does not count is UNAUTHENTICATED, as everywhere. */
export function identityRefusal(caller: Caller, { kinds }: ForIdentities, trustDomain: string): Refusal {
  const wanted = kinds.map((kind) => `spiffe://${trustDomain}/${kind}/<${kind === "server" ? "node id" : "name"}>`);
  const advice = `Present a client certificate that names ${wanted.join(" or ")} (${issued(kinds)}; commands take it with --cert and --client-key), signed by this node's client CA.`;
  if (caller.how === "certificate") {
    return new Refusal("tc_forbidden", `The certificate ${JSON.stringify(caller.name)} may not do this. ${advice}`);
  }
  const isForClients = kinds.includes("tc");
  if (caller.how === "anonymous") {
    const code = isForClients ? "tc_client_required" : "tc_cluster_identity_missing";
    return new Refusal(code, `The call came without a client certificate. ${advice}`);
  }
  const code = isForClients ? "tc_client_required" : "tc_server_required";
  return new Refusal(code, `An API key does not suffice here. ${advice}`);
}

/** How it is made: of a server's nobody makes another one for a call. */
function issued(kinds: readonly IdentityKind[]): string {
  const names = kinds.filter((kind) => kind !== "server").map((kind) => `--${kind} NAME`);
  return `tenure cert issue ${names.length === 0 ? "--node-id ID" : names.join(", or ")}`;
}
