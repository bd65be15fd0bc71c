// What went wrong between us and etcd, in words for whoever has to mend it. Nothing of a request is repeated here: it
// may hold a password or a token.

import { TenureError } from "../../core/kit/errors.ts";
import type { EtcdRefusal } from "../../ports/etcd.ts";

/** How much of a foreign answer is quoted. */
const QUOTE_CHARS_MAX = 80;

const TLS_ADVICE = 'Give the authority that signed it (option "tls.ca", or NODE_EXTRA_CA_CERTS) and check the name.';

/** By the error code of Node; the rest is told with Node's own words. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there. Is etcd running, and is this its client port (2379 by default)?",
  ENOTFOUND: "the name is unknown. Check the endpoint's spelling, and DNS.",
  EAI_AGAIN: "the name could not be looked up just now. Check DNS.",
  ECONNRESET:
    "the connection was cut. If that lasts: etcd may want https://, or a client certificate (tls.cert, tls.key).",
  EHOSTUNREACH: "there is no route to it. Check the network and its firewalls.",
  ETIMEDOUT: "the connection was never answered. Check the network and its firewalls.",
};

/** A person must mend these; waiting does not. */
const TLS_CODES =
  /^(CERT_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_|ERR_TLS_CERT|HOSTNAME_MISMATCH|INVALID_CA)/;

export function connectionFailure(error: unknown, endpoint: string): TenureError {
  if (TenureError.is(error)) return error;
  const code = codeOf(error);
  const options = { cause: error };
  if (TLS_CODES.test(code)) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `the certificate of ${endpoint} is not trusted (${code}). ${TLS_ADVICE}`,
      options,
    );
  }
  if (code.startsWith("ERR_OSSL") || code.startsWith("ERR_CRYPTO")) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `the options "tls.ca", "tls.cert" and "tls.key" can't be used (${code}). They are PEM text, and key and cert belong together.`,
      options,
    );
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL")) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `${endpoint} does not speak TLS as we do (${code}). Is it http:// instead, or does it want a client certificate (tls.cert, tls.key)?`,
      options,
    );
  }
  if (code.startsWith("HPE_")) return notEtcd(endpoint, "its answer is not HTTP", options);
  const advice = ADVICE[code] ?? `${code === "" ? "the connection failed" : code}. Check the endpoint and the network.`;
  return new TenureError("BACKEND_UNAVAILABLE", `etcd at ${endpoint} can't be reached: ${advice}`, options);
}

export function tooSlow(endpoint: string, timeoutMs: number): TenureError {
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

export function quote(text: string): string {
  const line = text.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  return line === "" ? ", without a word" : `, "${line.slice(0, QUOTE_CHARS_MAX)}"`;
}

function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  // Both address families were tried; the first tells as much as any.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return "";
}
