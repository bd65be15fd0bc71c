// Whether clients that call a node by the URL that it gives them find that name in its API's certificate.

import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { type ServerConfig, showAddress } from "../../contract/index.ts";

/** Null: they do, or nobody can say. `certificate`: PEM, the API's own first. */
export function nameWarning({ api }: Pick<ServerConfig, "api">, certificate: string): string | null {
  if (api.tls === null) return null;
  const url = URL.parse(api.advertise ?? `https://${showAddress(api.listen)}`);
  const host = url?.hostname.replace(/^\[|\]$/g, "") ?? "";
  // Of a node that listens everywhere and does not say how it is called, nobody knows how it is.
  if (url?.protocol !== "https:" || host === "0.0.0.0" || host === "::") return null;
  const read = new X509Certificate(certificate);
  const found =
    isIP(host) === 0 ? read.checkHost(host, { subject: "never", partialWildcards: false }) : read.checkIP(host);
  if (found !== undefined) return null;
  const from = api.advertise === null ? "api.listen" : "api.advertise";
  return `${from} gives clients the name ${host}, which the API's certificate does not have (${read.subjectAltName ?? "it has none"}): they refuse it. Issue it again with --host ${host}: docs/runbooks/cluster-certificates.md`;
}
