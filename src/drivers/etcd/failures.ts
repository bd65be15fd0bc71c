// What went wrong between us and etcd, in words for whoever has to repair it. Nothing of a request is repeated here: it
// may hold a password or a token.

import { TenureError } from "../../core/kit/errors.ts";
import type { EtcdRefusal } from "../../ports/backends/etcd.ts";
import { type HttpWords, type Peer, connectionFailure as httpFailure, quote } from "../http/index.ts";

export const ETCD: Peer = {
  name: "etcd",
  refusedAdvice: "Is etcd running, and is this its client port (2379 by default)?",
  tlsVariables: {
    ca: "TENURE_ETCD_CA_FILE",
    cert: "TENURE_ETCD_CERT_FILE",
    key: "TENURE_ETCD_KEY_FILE",
  },
  foreign: notEtcd,
};

export const WORDS: HttpWords = {
  givenUp: (endpoint) =>
    new TenureError("BACKEND_UNAVAILABLE", `the request to etcd at ${endpoint} was given up by us.`),
  tooSlow,
  failed: connectionFailure,
};

export function connectionFailure(error: unknown, endpoint: string, hasAnswered = false): TenureError {
  return httpFailure(error, endpoint, ETCD, hasAnswered);
}

function tooSlow(endpoint: string, timeoutMs: number): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `etcd at ${endpoint} did not answer within ${timeoutMs} ms. It may have lost its quorum, or the network is cut; the next endpoint is asked next.`,
  );
}

export function notEtcd(endpoint: string, why: string, options?: { cause?: unknown }): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `${endpoint} answers, but not as etcd does: ${why}. Point the endpoint at etcd's client port; etcd must be 3.4 or newer, with its JSON gateway on (--enable-grpc-gateway).`,
    options,
  );
}

/** A status that is not 200: etcd's refusal, or somebody else's. */
export function refusalOf(status: number, text: string, endpoint: string): EtcdRefusal {
  const refusal = parseRefusal(text);
  if (refusal !== undefined) return refusal;
  if (status === 401 || status === 403) {
    throw new TenureError(
      "PERMISSION_DENIED",
      `${endpoint} refused with HTTP ${status}, which is not etcd's own way: a proxy in front of it wants credentials. Give them with the option "headers".`,
    );
  }
  if (status === 429 || (status >= 502 && status <= 504)) {
    throw new TenureError(
      "BACKEND_UNAVAILABLE",
      `${endpoint} answered HTTP ${status}: a proxy in front of etcd does not reach it. Tried again.`,
    );
  }
  throw notEtcd(endpoint, `HTTP ${status}${quote(text)}`);
}

function parseRefusal(text: string): EtcdRefusal | undefined {
  try {
    return refusalIn(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** `{error, message, code}` as an answer; `{error: {grpc_code, message}}` inside a stream. */
export function refusalIn(body: unknown): EtcdRefusal | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { error } = body as Fields;
  const fields = typeof error === "object" && error !== null ? (error as Fields) : (body as Fields);
  const code = fields["code"] ?? fields["grpc_code"];
  const message = fields["message"] ?? fields["error"];
  if (typeof code !== "number" || typeof message !== "string") return undefined;
  return { kind: "refused", code, message };
}

type Fields = Readonly<Record<string, unknown>>;
