// Revoked certificates in memory, as ports/certificates.ts promises them.

import { TenureError } from "../../src/core/kit/errors.ts";
import type { Certificates, CertificateToRevoke, RevokedCertificate } from "../../src/ports/certificates.ts";
import type { Request } from "../../src/ports/jobs.ts";
import type { TestCluster } from "./test-cluster.ts";

export class TestCertificates implements Certificates {
  readonly #cluster: TestCluster;
  readonly #revoked = new Map<string, RevokedCertificate>();
  readonly #listeners: (() => void)[] = [];

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  fingerprint(): string {
    return JSON.stringify([...this.#revoked]);
  }

  isRevoked(sha256: string): boolean {
    return this.#revoked.has(sha256);
  }

  revoked(): readonly RevokedCertificate[] {
    return [...this.#revoked.values()];
  }

  async revoke({ caller }: Request, one: CertificateToRevoke): Promise<RevokedCertificate> {
    if (this.#cluster.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
    const known = this.#revoked.get(one.sha256);
    if (known !== undefined) return known;
    const revoked = { ...one, revokedAtMs: 1_700_000_000_000, revokedBy: caller };
    this.#revoked.set(one.sha256, revoked);
    for (const listener of this.#listeners) listener();
    return revoked;
  }

  onRevoked(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
