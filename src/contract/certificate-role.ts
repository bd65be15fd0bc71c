// Who a client certificate is: the SPIFFE id in its one URI SAN, `spiffe://<trust domain>/<kind>/<name>`. The CA vouches
// for the rest, but a CA may sign for several trust domains, and an operator of another cluster is nobody here. A certificate
// with several URI SANs is nobody: each reader would pick another one.
//
// Authorities of other sites (mesh.peers) are trusted for one site each, and for nothing else: whatever is in a certificate that such an
// authority has signed, it is that site's `controller`, in that site's trust domain, or nobody.

import { formatSpiffeId, type IdentityKind, parseSpiffeId, type SpiffeId, uriNames } from "../core/kit/spiffe.ts";
import { CHAIN_DEPTH_MAX } from "./limits.ts";
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
  /** Null: another site's, by an authority of its own or in its own trust domain. It is never of a kind that a route asks for. */
  readonly identity: SpiffeId | null;
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
  // Its own routes name the kinds that they are for (Route.identities).
  tc: "viewer",
};

/** Another site whose certificates count, for its own controller id. */
export interface CertificatePeer {
  readonly id: string;
  readonly trustDomain: string;
  /** SHA-256 of its authorities' certificates, as in `fingerprint256`; null: this cluster's own authorities sign for it. */
  readonly authorities: readonly string[] | null;
}

export interface CertificateTrust {
  readonly trustDomain: string;
  readonly peers: readonly CertificatePeer[];
}

/** `authority`: the fingerprint of the root that the certificate was verified with. Null: authenticated, and still nobody that we know. */
export function certificateCaller(
  certificate: ClientCertificate,
  { trustDomain, peers }: CertificateTrust,
  authority?: string,
): CertificateCaller | null {
  const [id, ...others] = uriNames(certificate.subjectaltname);
  const identity = id === undefined || others.length > 0 ? undefined : parseSpiffeId(id);
  if (identity === undefined) return null;
  // Where other authorities than this cluster's own are trusted too, one that is not known vouches for nothing.
  if (authority === undefined && peers.some(({ authorities }) => authorities !== null)) return null;
  const caller = { id: formatSpiffeId(identity), role: ROLE_OF[identity.kind], identity };
  const signedFor = peers.filter(({ authorities }) => authorities?.includes(authority ?? "") ?? false);
  const isForeign = signedFor.length > 0;
  if (!isForeign && identity.trustDomain === trustDomain) return caller;
  const known = isForeign ? signedFor : peers.filter(({ authorities }) => authorities === null);
  const isPeer = known.some((peer) => peer.trustDomain === identity.trustDomain && peer.id === identity.name);
  return isPeer && identity.kind === "controller" ? { ...caller, identity: null } : null;
}

interface Issued {
  readonly fingerprint256?: string | undefined;
  readonly issuerCertificate?: Issued | undefined;
}

/** Of the last certificate of the chain: a root is its own issuer, in Node's words. Undefined where the chain is not known to its end. */
export function authorityOf(certificate: Issued): string | undefined {
  let last = certificate;
  for (let depth = 0; depth < CHAIN_DEPTH_MAX; depth++) {
    const { issuerCertificate: issuer } = last;
    if (issuer === undefined) return undefined;
    if (issuer === last || issuer.fingerprint256 === last.fingerprint256) return last.fingerprint256;
    last = issuer;
  }
  return undefined;
}
