// What went wrong between this node's coordinator and another one, in words for whoever has to repair it.

import { TenureError } from "../../core/kit/errors.ts";
import { connectionFailure, type HttpWords, type Peer } from "../http/index.ts";
import { TC_ANSWER_BYTES_MAX } from "./limits.ts";

export const COORDINATOR: Peer = {
  name: "the coordinator",
  refusedAdvice: "Is the node running, and is this the address of its API (api.advertise in its configuration)?",
  tlsVariables: { ca: "api.tls.client_ca_file", cert: "api.tls.cert_file", key: "api.tls.key_file" },
  foreign: notCoordinator,
};

export const WORDS: HttpWords = {
  givenUp: (url) =>
    new TenureError("BACKEND_UNAVAILABLE", `the request to ${url} was given up: this node is stopping.`),
  tooSlow: (url, timeoutMs) =>
    new TenureError(
      "BACKEND_UNAVAILABLE",
      `the coordinator at ${url} did not answer within ${timeoutMs} ms. It may be stopped or overloaded, or the network is cut; it is asked again.`,
    ),
  failed: (error, url, hasAnswered) => connectionFailure(error, url, COORDINATOR, hasAnswered),
};

export function notCoordinator(url: string, why: string, options?: { cause?: unknown }): TenureError {
  const text = `${url} answers, but not as a server of Tenure does: ${why}. Every address of a coordinator is that of a node's API (api.advertise).`;
  return new TenureError("BACKEND_UNSUPPORTED", text, options);
}

/** Where a request would go in the clear, or with a password. */
export function notCalled(endpoint: string): TenureError {
  const text = `${endpoint} is not called: a coordinator's address is https://host:port, without a user; without TLS here, http:// on this machine.`;
  return new TenureError("CONFIG_INVALID", text);
}

export function tooLong(url: string): TenureError {
  return notCoordinator(url, `more than ${TC_ANSWER_BYTES_MAX} bytes in one answer`);
}

export function redirected(url: string, status: number): TenureError {
  return notCoordinator(url, `it answers with a redirect (HTTP ${status}), and none is followed`);
}

/** The server is there, and is not the one that may be asked. */
export function untrusted(why: string): TenureError {
  const text = `the server is not asked: ${why}. \`tenure cert show FILE\` tells what is in a certificate, \`tenure cert issue\` makes another one.`;
  return new TenureError("CERTIFICATE_INVALID", text);
}
