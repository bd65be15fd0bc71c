// Why an HTTP connection failed, in words for whoever has to repair it. Nothing of a request is repeated here: it may hold a
// password, a key or a token.

import { TenureError } from "../../core/kit/errors.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import { QUOTE_CHARS_MAX } from "./limits.ts";

/** Who is asked, and what to look at when it does not answer. */
export interface Peer {
  /** "etcd", "the server": in front of "at http://…". */
  readonly name: string;
  /** After "nothing listens there." */
  readonly refusedAdvice: string;
  /** By which commands are given what the options `tls.ca`, `tls.cert` and `tls.key` hold. */
  readonly tlsVariables: { readonly ca: string; readonly cert: string; readonly key: string };
  /** What is said where the answer is not HTTP, or not as it should be. */
  foreign(address: string, why: string, options?: { cause?: unknown }): TenureError;
}

/** A person must repair these; waiting does not. */
const TLS_CODES =
  /^(CERT_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_|ERR_TLS_CERT|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)/;

/** Whether an error is about the certificate that the other side showed. */
export function isUntrusted(error: unknown): boolean {
  return TLS_CODES.test(codeOf(error));
}

/** By the error code of Node; the rest is told with Node's own words. */
function adviceFor(code: string, peer: Peer, hasAnswered: boolean): string | undefined {
  switch (code) {
    case "ECONNREFUSED":
      return `nothing listens there. ${peer.refusedAdvice}`;
    case "ENOTFOUND":
      return "the name is unknown. Check the endpoint's spelling, and DNS.";
    case "EAI_AGAIN":
      return "the name could not be looked up just now. Check DNS.";
    case "ECONNRESET":
      // Who speaks HTTP there did not begin to want TLS: it is a stop, a restart or the network.
      if (hasAnswered) return "the connection was cut.";
      return `the connection was cut. If that lasts: ${peer.name} may want https://, or a client certificate (${clientCertificate(peer)}).`;
    case "EHOSTUNREACH":
      return "there is no route to it. Check the network and its firewalls.";
    case "ETIMEDOUT":
      return "the connection was never answered. Check the network and its firewalls.";
    default:
      return undefined;
  }
}

function clientCertificate({ tlsVariables }: Peer): string {
  return `commands: ${tlsVariables.cert} and ${tlsVariables.key}; the library: tls.cert and tls.key`;
}

/** `hasAnswered`: something at this address has spoken HTTP with us before. */
export function connectionFailure(error: unknown, address: string, peer: Peer, hasAnswered: boolean): TenureError {
  if (TenureError.is(error)) return error;
  const code = codeOf(error);
  const options = { cause: error };
  if (isUntrusted(error)) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `the certificate of ${address} is not trusted (${code}). Give the authority that signed it (commands: ${peer.tlsVariables.ca}; the library: option "tls.ca"; or NODE_EXTRA_CA_CERTS) and check the name.`,
      options,
    );
  }
  if (code.startsWith("ERR_OSSL") || code.startsWith("ERR_CRYPTO")) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `the options "tls.ca", "tls.cert" and "tls.key" (commands: ${Object.values(peer.tlsVariables).join(", ")}) can't be used (${code}). They are PEM text, and key and cert belong together.`,
      options,
    );
  }
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || (code === "EPROTO" && /wrong version number/.test(String(error)))) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `${address} answers without TLS. Use http:// instead of https:// (etcd:// instead of etcds://).`,
      options,
    );
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL")) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `${address} does not speak TLS as we do (${code}). Is it http:// instead, or does it want a client certificate (${clientCertificate(peer)})?`,
      options,
    );
  }
  if (code.startsWith("HPE_")) return peer.foreign(address, "its answer is not HTTP", options);
  const advice =
    adviceFor(code, peer, hasAnswered) ??
    `${code === "" ? "the connection failed" : code}. Check the endpoint and the network.`;
  return new TenureError("BACKEND_UNAVAILABLE", `${peer.name} at ${address} can't be reached: ${advice}`, options);
}

export function quote(text: string): string {
  const line = text.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  return line === "" ? ", without a word" : `, "${line.slice(0, QUOTE_CHARS_MAX)}"`;
}

/** A JSON object, or `foreign`'s error. */
export function parseObject(text: string, address: string, peer: Peer): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch (error) {
    throw peer.foreign(address, `its answer is not JSON${quote(text)}`, { cause: error });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw peer.foreign(address, `its answer is no JSON object${quote(text)}`);
  }
  return parsed as Readonly<Record<string, unknown>>;
}

function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  // Both address families were tried; the first tells as much as any.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return "";
}
