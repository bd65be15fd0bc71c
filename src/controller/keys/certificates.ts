// Client certificates that are revoked one by one, without rolling the authority. Each change is decided on
// what is applied, after the one before it is.

import { TenureError } from "../../core/kit/errors.ts";
import { CERTIFICATES_REVOKED_MAX } from "../../core/kit/limits.ts";
import type { Certificates, CertificateToRevoke, RevokedCertificate } from "../../ports/certificates.ts";
import type { Request } from "../../ports/jobs.ts";
import type { CertificatesFold } from "./certificates-fold.ts";
import type { KeysServiceOptions } from "./keys.ts";
import { checkLeaderEpoch } from "../leadership/leader-epoch.ts";

export interface CertificatesServiceOptions extends Pick<KeysServiceOptions, "journal"> {
  readonly fold: CertificatesFold;
  /** Nodes that are not known to be of a release that reads this record: it would stop them. */
  readonly unready: () => readonly string[];
}

export class CertificatesService implements Certificates {
  readonly #options: CertificatesServiceOptions;

  constructor(options: CertificatesServiceOptions) {
    this.#options = options;
  }

  isRevoked(sha256: string): boolean {
    return this.#options.fold.get(sha256) !== undefined;
  }

  revoked(): readonly RevokedCertificate[] {
    return this.#options.fold.all();
  }

  async revoke({ caller, leaderEpoch: named }: Request, one: CertificateToRevoke): Promise<RevokedCertificate> {
    const { fold, journal } = this.#options;
    const { sha256, id, notAfterMs } = one;
    await journal.change(({ newId, nowMs, leaderEpoch }) => {
      checkLeaderEpoch(named, leaderEpoch);
      if (this.isRevoked(sha256)) return [];
      this.#check(one, nowMs);
      return [
        {
          id: newId(),
          eventType: "certificate:revoked",
          entityType: "certificate",
          entityId: sha256,
          payload: { id, notAfterMs, by: caller },
          timestamp: nowMs,
        },
      ];
    });
    return fold.get(sha256)!;
  }

  onRevoked(listener: () => void): void {
    this.#options.fold.onAdded(listener);
  }

  #check({ notAfterMs }: CertificateToRevoke, nowMs: number): void {
    const { fold, unready } = this.#options;
    if (notAfterMs <= nowMs) {
      throw new TenureError("BAD_REQUEST", "The certificate has expired: nobody is let in with it. Nothing was done.");
    }
    if (fold.sizeAt(nowMs) >= CERTIFICATES_REVOKED_MAX) {
      const text = `There are ${CERTIFICATES_REVOKED_MAX} revoked certificates that have not expired. So many are a reason for another authority: docs/runbooks/cluster-certificates.md.`;
      throw new TenureError("OVERLOADED", text);
    }
    // Who has one has read one: a node that could not would have stopped.
    const missing = fold.all().length > 0 ? [] : unready();
    if (missing.length === 0) return;
    const text = `A revoked certificate is kept only where every node can read it, and ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} of another release, or not connected since this leader started. Upgrade and start them all (one that never comes back is taken out with \`tenure member remove\`), and repeat this. Nothing was done.`;
    throw new TenureError("NOT_SUPPORTED", text);
  }
}
