// Where a client may go: the URLs that it was configured with, and the members that the cluster's own view names, asked
// at one of those URLs. Nothing else is ever sent a request, so nothing else ever sees a key (trap 64): an answer that
// points elsewhere is not followed. A member without TLS is left out where the configured URLs have it.

import { TenureError } from "../contract/errors.ts";
import { API_LISTEN_DEFAULT } from "../contract/names.ts";
import { ADDRESSES_MAX } from "./limits.ts";

export class Addresses {
  readonly configured: readonly string[];
  readonly #learned: string[] = [];
  readonly #isSecure: boolean;

  constructor(urls: readonly string[] | undefined) {
    const bases = (urls ?? []).map(baseOf);
    this.configured = [...new Set(bases)];
    if (this.configured.length === 0)
      throw invalid(`there is no URL; give at least one, such as http://${API_LISTEN_DEFAULT}`);
    if (this.configured.length > ADDRESSES_MAX)
      throw invalid(`there are ${bases.length} URLs; at most ${ADDRESSES_MAX}`);
    this.#isSecure = this.configured.every((base) => base.startsWith("https:"));
  }

  /** Configured ones first. */
  all(): readonly string[] {
    return [...this.configured, ...this.#learned];
  }

  /** `members`: what a configured URL's view of the cluster names. */
  learn(members: readonly (string | null)[]): void {
    for (const text of members) {
      const base = text === null ? undefined : tryBaseOf(text);
      if (base === undefined || (this.#isSecure && !base.startsWith("https:"))) continue;
      if (this.all().includes(base) || this.all().length >= ADDRESSES_MAX) continue;
      this.#learned.push(base);
    }
  }

  /** The same address as it is known here; undefined where it is not. */
  known(text: unknown): string | undefined {
    const base = typeof text === "string" ? tryBaseOf(text) : undefined;
    return base === undefined ? undefined : this.all().find((one) => one === base);
  }
}

function tryBaseOf(text: string): string | undefined {
  try {
    return baseOf(text);
  } catch {
    return undefined;
  }
}

/** Without a slash at its end, so that paths can be put after it. */
function baseOf(text: string): string {
  if (!URL.canParse(text)) throw invalid(`${JSON.stringify(text)} is no URL; give one such as https://n1.example:7401`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw invalid(`${JSON.stringify(text)} begins with ${url.protocol}//; give http:// or https://`);
  }
  if (url.username !== "" || url.password !== "") throw invalid("a URL must not hold a password; give a key instead");
  if (url.search !== "" || url.hash !== "")
    throw invalid(`${JSON.stringify(text)} has a query; give the address alone`);
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function invalid(message: string): TenureError {
  return new TenureError("CONFIG_INVALID", message);
}
