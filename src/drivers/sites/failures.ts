// What went wrong between this site and another one, in words for whoever has to repair it. Nothing of a request is repeated here: it
// holds the API key.

import { TenureError } from "../../core/kit/errors.ts";
import { connectionFailure, type HttpWords, type Peer, quote } from "../http/index.ts";

export const SITE: Peer = {
  name: "the site",
  refusedAdvice: "Is a node of that site running, and is this the address of its API (mesh.parent_urls)?",
  tlsVariables: { ca: "mesh.peers[].ca_file", cert: "mesh.cert_file", key: "mesh.cert_key_file" },
  foreign: notSite,
};

export const WORDS: HttpWords = {
  givenUp: (url) => new TenureError("BACKEND_UNAVAILABLE", `the request to the site at ${url} was given up by us.`),
  tooSlow: (url, timeoutMs) =>
    new TenureError(
      "BACKEND_UNAVAILABLE",
      `the site at ${url} did not answer within ${timeoutMs} ms. It may be stopped or overloaded, or the network is cut; it is asked again.`,
    ),
  failed: (error, url, hasAnswered) => connectionFailure(error, url, SITE, hasAnswered),
};

function notSite(url: string, why: string, options?: { cause?: unknown }): TenureError {
  const text = `${url} answers, but not as a site of Tenure does: ${why}. Give the API address of a node of that site.`;
  return new TenureError("BACKEND_UNSUPPORTED", text, options);
}

/** An answer without JSON: of a proxy in front of the site, or of somebody else. */
export function foreignAnswer(status: number, text: string, url: string): TenureError {
  if (status !== 429 && status < 500) return notSite(url, `HTTP ${status}${quote(text)}`);
  const message = `${url} answered HTTP ${status}${quote(text)}: the site, or a proxy in front of it, is in trouble. It is asked again.`;
  return new TenureError("BACKEND_UNAVAILABLE", message);
}

export function tooLong(url: string, bytesMax: number, options?: { cause?: unknown }): TenureError {
  return notSite(url, `more than ${bytesMax} bytes in one message`, options);
}

/** The address is not of those to which this site's credentials may go. */
export function notCalled(url: string): TenureError {
  const text = `${url} is not called: only the configured parents are, and registered addresses where mesh.dial_registered allows it.`;
  return new TenureError("PERMISSION_DENIED", text);
}
