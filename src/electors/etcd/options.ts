// The options of the etcd backend, checked and completed: wrong ones are refused here, before anything is sent.

import { TenureError } from "../../core/kit/errors.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import * as limits from "../limits.ts";
import { endpointTexts, leaseTiming } from "../remote-options.ts";
import type { Credentials } from "./session.ts";

export interface EtcdOptions {
  /** `http://host:2379` or `https://…`; several as a list, or with commas between them. `etcd://` stands for http. */
  readonly endpoints: string | readonly string[];
  /** How long etcd keeps the scope for a leader that went silent: whole seconds. Default 6. */
  readonly ttlSeconds?: number | undefined;
  /** Default 1000, less where the TTL is short. */
  readonly heartbeatMs?: number | undefined;
  /** How much earlier than etcd a leader stops trusting itself. Default: a quarter of the TTL. */
  readonly marginMs?: number | undefined;
  /** What every key begins with. Default `tenure/`. */
  readonly prefix?: string | undefined;
  /** For an etcd with authentication. Also taken from the first endpoint, `http://user:password@host`. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Sent with each request, for a proxy in front of etcd. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** PEM text or bytes. Without `ca`, the authorities that Node trusts (NODE_EXTRA_CA_CERTS adds to them). */
  readonly tls?: TlsFiles | undefined;
}

export interface EtcdSettings {
  /** Without credentials. */
  readonly endpoints: readonly URL[];
  readonly credentials: Credentials | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsFiles;
  readonly prefix: string;
  readonly ttlSeconds: number;
  readonly timing: Timing;
  /** For one answer. A beat is two, and two beats should fit into the trust window. */
  readonly requestTimeoutMs: number;
  /** How often a watch is checked by a read. */
  readonly pollMs: number;
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const SCHEMES: Readonly<Record<string, string>> = {
  "etcd:": "http:",
  "etcds:": "https:",
  "http:": "http:",
  "https:": "https:",
};

export function etcdSettings(given: string | readonly string[] | EtcdOptions): EtcdSettings {
  const options: EtcdOptions = typeof given === "string" || isList(given) ? { endpoints: given } : given;
  const urls = endpointsOf(options.endpoints);
  const timing = timingOf(options);
  const trustMs = timing.serverTimeoutMs - timing.marginMs;
  return {
    endpoints: urls.map(withoutCredentials),
    credentials: credentialsOf(options, urls),
    headers: headersOf(options.headers ?? {}),
    tls: options.tls ?? {},
    prefix: prefixOf(options.prefix ?? "tenure/"),
    ttlSeconds: timing.serverTimeoutMs / 1_000,
    timing,
    requestTimeoutMs: Math.min(limits.REQUEST_TIMEOUT_MS_MAX, Math.floor(trustMs / 4)),
    pollMs: Math.min(limits.ETCD_POLL_MS_MAX, timing.serverTimeoutMs / 2),
  };
}

function isList(given: readonly string[] | EtcdOptions): given is readonly string[] {
  return Array.isArray(given);
}

function timingOf(options: EtcdOptions): Timing {
  const ttlSeconds = options.ttlSeconds ?? limits.ETCD_TTL_S;
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > limits.ETCD_TTL_S_MAX) {
    throw invalid(`"ttlSeconds" is ${ttlSeconds}; it must be a whole number from 1 to ${limits.ETCD_TTL_S_MAX}`);
  }
  return leaseTiming(ttlSeconds * 1_000, options, invalid);
}

function endpointsOf(endpoints: unknown): readonly URL[] {
  const texts = endpointTexts(endpoints);
  if (texts === undefined) throw invalid('"endpoints" must be a URL or a list of URLs');
  if (texts.length === 0 || texts.includes("")) {
    throw invalid('"endpoints" is empty; give the client URL of each member, e.g. http://127.0.0.1:2379');
  }
  return texts.map((text, index) => {
    const scheme = SCHEMES[(/^[a-z]+:(?=\/\/)/i.exec(text)?.[0] ?? "").toLowerCase()];
    const url = scheme === undefined ? null : URL.parse(scheme + text.slice(text.indexOf("//")));
    // The text itself may hold a password: it is named by its place.
    if (url === null) throw invalid(`endpoint ${index + 1} is not a URL such as http://127.0.0.1:2379`);
    return url;
  });
}

function credentialsOf(options: EtcdOptions, urls: readonly URL[]): Credentials | undefined {
  const url = urls[0];
  const user = options.user ?? decode(url?.username ?? "");
  if (user === "") {
    if (options.password !== undefined) throw invalid('"password" is given without "user"');
    return undefined;
  }
  return { user, password: options.password ?? decode(url?.password ?? "") };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the user or password in the endpoint is not percent-encoded as URLs want it");
  }
}

function withoutCredentials(url: URL): URL {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  return bare;
}

function headersOf(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name)) throw invalid('a name in "headers" is none that HTTP takes');
    if (!HEADER_VALUE.test(value)) throw invalid(`the header "${name}" holds a character that HTTP does not take`);
  }
  return headers;
}

function prefixOf(prefix: string): string {
  if (
    prefix === "" ||
    prefix.includes("\0") ||
    new TextEncoder().encode(prefix).length > limits.ETCD_PREFIX_BYTES_MAX
  ) {
    throw invalid(`"prefix" must be text of 1 to ${limits.ETCD_PREFIX_BYTES_MAX} bytes without NUL`);
  }
  return prefix;
}

function invalid(why: string): TenureError {
  return new TenureError("CONFIG_INVALID", `the options of the etcd backend are wrong: ${why}.`);
}
