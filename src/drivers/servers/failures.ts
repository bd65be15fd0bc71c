// What went wrong between us and one of Tenure's servers, in words for whoever has to repair it. Nothing of a request is
// repeated here: it holds the API key.

import { TenureError } from "../../core/kit/errors.ts";
import { connectionFailure, type HttpWords, type Peer, quote } from "../http/index.ts";

export const SERVER: Peer = {
  name: "the server",
  refusedAdvice: "Is the node running, and is this the address of its API (api.listen in its configuration)?",
  tlsVariables: {
    ca: "TENURE_SERVERS_CA_FILE",
    cert: "TENURE_SERVERS_CERT_FILE",
    key: "TENURE_SERVERS_KEY_FILE",
  },
  foreign: notServer,
};

export const WORDS: HttpWords = {
  givenUp: (url) => new TenureError("BACKEND_UNAVAILABLE", `the request to the server at ${url} was given up by us.`),
  tooSlow: (url, timeoutMs) =>
    new TenureError(
      "BACKEND_UNAVAILABLE",
      `the server at ${url} did not answer within ${timeoutMs} ms. It may be stopped or overloaded, or the network is cut; the others are asked next.`,
    ),
  failed: (error, url, hasAnswered) => connectionFailure(error, url, SERVER, hasAnswered),
};

function notServer(url: string, why: string, options?: { cause?: unknown }): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `${url} answers, but not as a server of Tenure does: ${why}. Give the API addresses of the cluster's nodes.`,
    options,
  );
}

/** An answer without JSON: of a proxy in front of the node, of a node that is breaking down, or of somebody else. */
export function foreignAnswer(status: number, text: string, url: string): TenureError {
  if (status === 401 || status === 403) {
    return new TenureError(
      "PERMISSION_DENIED",
      `${url} refused with HTTP ${status}, and not in the server's own way: a proxy in front of it wants credentials.`,
    );
  }
  if (status === 429 || status >= 500) {
    return new TenureError(
      "BACKEND_UNAVAILABLE",
      `${url} answered HTTP ${status}${quote(text)}: the node, or a proxy in front of it, is in trouble. The others are asked next.`,
    );
  }
  return notServer(url, `HTTP ${status}${quote(text)}`);
}

/** Of a server of Tenure, or of anybody else: more than it was asked for. */
export function tooLong(url: string, bytesMax: number): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `${url} answered with more than ${bytesMax} bytes, which is all that this client reads of it. Is it a server of Tenure, and of this version?`,
  );
}
