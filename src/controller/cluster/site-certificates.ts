// The alert of a node on Postgres whose certificate ends soon. It has one, for clients: the database is reached in another way.

import { type CertificateEnd, certificatesProblem } from "../../core/health/index.ts";
import type { AlertView } from "../../ports/cluster.ts";

export class SiteCertificates {
  #sinceWallMs: number | null = null;

  alerts(nodeId: string, certificates: readonly CertificateEnd[], wallMs: number): AlertView[] {
    const message = certificatesProblem(certificates, wallMs);
    if (message === null) {
      this.#sinceWallMs = null;
      return [];
    }
    this.#sinceWallMs ??= wallMs;
    return [{ name: "certificate_ends", severity: "warning", message, sinceWallMs: this.#sinceWallMs, nodeId }];
  }
}
