// As whom a command asks: the identity in the client certificate that it shows.

import { X509Certificate } from "node:crypto";
import { parseSpiffeId, type SpiffeId, uriNames } from "../../core/kit/spiffe.ts";
import type { Connection } from "../connection/connection.ts";

/** Null: no certificate is shown, or one that names nobody. */
export function shownIdentity({ tls }: Pick<Connection, "tls">): SpiffeId | null {
  if (tls?.cert === undefined) return null;
  const [uri, more] = uriNames(new X509Certificate(tls.cert).subjectAltName);
  return uri === undefined || more !== undefined ? null : (parseSpiffeId(uri) ?? null);
}
