// Client certificates that are let in no more, though their authority vouches for them: part of the replicated state, as API keys
// are (keys.ts). Reads are from this node's applied state, so a node that lags lets one in until it has applied the revocation.

import type { Request } from "./jobs.ts";

export interface Certificates {
  /** By the SHA-256 of the certificate (DER), lower-case hex. From memory; asked for every request. */
  isRevoked(sha256: string): boolean;
  /** By identity. At most CERTIFICATES_REVOKED_MAX; those that have expired anyway are dropped. */
  revoked(): readonly RevokedCertificate[];
  /**
   * Of one that is revoked already it is no error. OVERLOADED past CERTIFICATES_REVOKED_MAX; BAD_REQUEST for one that has expired;
   * NOT_SUPPORTED while not every node is known to read it.
   */
  revoke(request: Request, certificate: CertificateToRevoke): Promise<RevokedCertificate>;
  /** Called, for as long as this lives, when more are applied to be revoked: in that turn, so it must return soon. */
  onRevoked(listener: () => void): void;
}

export interface CertificateToRevoke {
  /** Of the certificate (DER), lower-case hex. */
  readonly sha256: string;
  /** Its SPIFFE id, for people. */
  readonly id: string;
  readonly notAfterMs: number;
}

/** A client certificate that is let in no more. */
export interface RevokedCertificate extends CertificateToRevoke {
  readonly revokedAtMs: number;
  readonly revokedBy: string;
}
