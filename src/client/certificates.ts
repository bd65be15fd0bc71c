// Client certificates that the cluster lets in no more, though their authority vouches for them.

import type { Caller, CallOptions, ReadOptions } from "./caller.ts";
import { readQuery } from "./caller.ts";
import type { RevokedCertificateView } from "./job-views.ts";

export interface ClientCertificates {
  /** Those that were revoked and have not expired. */
  revoked(options?: ReadOptions): Promise<readonly RevokedCertificateView[]>;
  /** `sha256`: of the certificate (DER), lower-case hex; `id`: the SPIFFE id in it. Of one that is revoked already it is no error. */
  revoke(
    certificate: Pick<RevokedCertificateView, "sha256" | "id" | "notAfterMs">,
    options?: CallOptions,
  ): Promise<RevokedCertificateView>;
}

const PATH = "/v1/certificates/revoked";

export function certificatesOf(caller: Caller): ClientCertificates {
  return {
    revoked: async (options = {}) => {
      type Answer = { certificates: readonly RevokedCertificateView[] };
      return (await caller.readJson<Answer>(`${PATH}${readQuery(options)}`, options)).certificates;
    },
    revoke: async ({ sha256, id, notAfterMs }, options = {}) => {
      const body = { sha256, id, not_after_ms: notAfterMs };
      const request = { method: "POST", path: PATH, body, isIdempotent: true } as const;
      return await caller.bodyOf<RevokedCertificateView>(await caller.mutate(request, options));
    },
  };
}
