// Who a client certificate is: the SPIFFE id in its one URI SAN, `spiffe://<trust domain>/<kind>/<name>`. The CA vouches
// for the rest, but a CA may sign for several trust domains, and an operator of another cluster is nobody here. A certificate
// with several URI SANs is nobody: each reader would pick another one.

import { formatSpiffeId, type IdentityKind, parseSpiffeId, uriNames } from "../core/kit/spiffe.ts";
import type { Role } from "./roles.ts";

/** As Node's TLS tells it: `getPeerCertificate()`. */
export interface ClientCertificate {
  readonly subjectaltname?: string | undefined;
  /** Its last moment, as text: "Nov 15 12:00:00 2026 GMT". */
  readonly valid_to?: string | undefined;
  /** Its SHA-256, as pairs of upper-case hex digits with colons between. */
  readonly fingerprint256?: string | undefined;
}

export interface CertificateCaller {
  /** The whole SPIFFE id. */
  readonly id: string;
  readonly role: Role;
}

const ROLE_OF: Readonly<Record<IdentityKind, Role>> = {
  operator: "operator",
  sdk: "client",
  submitter: "submitter",
  agent: "agent",
  backup: "backup",
  viewer: "viewer",
  controller: "controller",
  // A node has no business at another node's API but to look.
  server: "viewer",
};

/** Null: authenticated, and still nobody that we know. */
export function certificateCaller(certificate: ClientCertificate, trustDomain: string): CertificateCaller | null {
  const [id, ...others] = uriNames(certificate.subjectaltname);
  const identity = id === undefined || others.length > 0 ? undefined : parseSpiffeId(id);
  if (identity === undefined || identity.trustDomain !== trustDomain) return null;
  return { id: formatSpiffeId(identity), role: ROLE_OF[identity.kind] };
}
