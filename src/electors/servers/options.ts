// The options of the servers backend, checked and completed: wrong ones are refused here, before anything is sent.

import { TenureError } from "../../core/kit/errors.ts";
import { API_KEY_LENGTH_MAX, SCOPE_TTL_MS_MAX, SCOPE_TTL_MS_MIN, URLS_MAX } from "../../core/kit/limits.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import { REQUEST_TIMEOUT_MS_MAX, SERVERS_TTL_MS, SERVERS_WAIT_MS_MAX } from "../limits.ts";
import { endpointTexts, leaseTiming } from "../remote-options.ts";

export interface ServersOptions {
  /** The API key that the nodes know (`X-API-Key`); `client` is the role that it needs, `operator` for asking others to resign. */
  readonly key?: string | undefined;
  /** PEM text or bytes. Without `ca`, the authorities that Node trusts (NODE_EXTRA_CA_CERTS adds to them). */
  readonly tls?: TlsFiles | undefined;
  /** How long the cluster keeps the scope for a leader that went silent. Default 6000. */
  readonly ttlMs?: number | undefined;
  /** Default 1000, less where the TTL is short. */
  readonly heartbeatMs?: number | undefined;
  /** How much earlier than the cluster a leader stops trusting itself. Default: a quarter of the TTL. */
  readonly marginMs?: number | undefined;
  /**
   * Whether nodes that the cluster names as its members are asked too, at the URLs that they advertise. Default true; false
   * where these can't be reached from here (a proxy, another network), and the given URLs are all there is.
   */
  readonly learnMembers?: boolean | undefined;
}

export interface ServersSettings {
  /** As `serverUrl` writes them. */
  readonly urls: readonly string[];
  readonly key: string | undefined;
  readonly tls: TlsFiles;
  readonly learnMembers: boolean;
  readonly timing: Timing;
  /** For one try at one node. */
  readonly requestTimeoutMs: number;
  /** How long one question goes on from node to node without an answer, before whoever asked is notified. */
  readonly budgetMs: number;
  /**
   * How long a server may hold a question back until something happens. A node that was stopped, or cut off, is noticed when
   * this and one request timeout have passed: hence never long next to the TTL, which a silent leader costs anyway.
   */
  readonly waitMs: number;
}

const KEY = /^[\x21-\x7e]+$/;

export function serversSettings(urls: string | readonly string[], options: ServersOptions = {}): ServersSettings {
  const timing = timingOf(options);
  const trustMs = timing.serverTimeoutMs - timing.marginMs;
  return {
    urls: urlsOf(urls),
    key: keyOf(options.key),
    tls: options.tls ?? {},
    learnMembers: options.learnMembers ?? true,
    timing,
    requestTimeoutMs: Math.min(REQUEST_TIMEOUT_MS_MAX, Math.floor(trustMs / 4)),
    budgetMs: Math.floor(trustMs / 2),
    waitMs: Math.min(SERVERS_WAIT_MS_MAX, Math.floor(timing.serverTimeoutMs / 2)),
  };
}

/** One form for one node: origin, and a path without a slash at its end. Undefined where it is no such URL. */
export function serverUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined;
  return url.origin + url.pathname.replace(/\/+$/, "");
}

export function isSecure(url: string): boolean {
  return url.startsWith("https:");
}

function urlsOf(given: unknown): readonly string[] {
  const texts = endpointTexts(given);
  if (texts === undefined || texts.length === 0 || texts.length > URLS_MAX) {
    throw invalid(`the URLs must be a text, or a list of 1 to ${URLS_MAX}: the API address of each node`);
  }
  const urls = texts.map((text, index) => {
    const url = serverUrl(text);
    // The text itself may hold a secret: it is named by its place.
    if (url === undefined) {
      throw invalid(`URL ${index + 1} is not one such as https://n1.example:7401, without user, password and query`);
    }
    return url;
  });
  if (urls.some(isSecure) && !urls.every(isSecure)) {
    throw invalid("some URLs are https:// and some http://; a key must not go over both");
  }
  return [...new Set(urls)];
}

function keyOf(key: unknown): string | undefined {
  if (key === undefined) return undefined;
  if (typeof key === "string" && key.length <= API_KEY_LENGTH_MAX && KEY.test(key)) return key;
  throw invalid('"key" must be printable ASCII without spaces, as the nodes were given it; is there a line end in it?');
}

function timingOf(options: ServersOptions): Timing {
  const serverTimeoutMs = options.ttlMs ?? SERVERS_TTL_MS;
  if (!Number.isInteger(serverTimeoutMs) || serverTimeoutMs < SCOPE_TTL_MS_MIN || serverTimeoutMs > SCOPE_TTL_MS_MAX) {
    throw invalid(
      `"ttlMs" is ${serverTimeoutMs}; it must be a whole number from ${SCOPE_TTL_MS_MIN} to ${SCOPE_TTL_MS_MAX}`,
    );
  }
  return leaseTiming(serverTimeoutMs, options, invalid);
}

function invalid(why: string): TenureError {
  return new TenureError("CONFIG_INVALID", `the options of the servers backend are wrong: ${why}.`);
}
