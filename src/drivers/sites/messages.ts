// What other sites send, from JSON to the shapes of the port. Unknown fields are passed over, so that a newer site is understood; what
// is missing or of another type makes the whole message foreign. Pages stay unchecked: core/mesh/proof judges them.

import type {
  Delivered,
  LineConsistency,
  LinkMessage,
  PageError,
  PageOutcome,
  SiteRefusal,
} from "../../ports/mesh/sites.ts";
import { SITE_TEXT_LENGTH_MAX, SITE_URLS_MAX } from "./limits.ts";

type Fields = Readonly<Record<string, unknown>>;

/** As a ring names its site. */
const CONTROLLER_ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export function linkMessageOf(fields: Fields): LinkMessage {
  const { page, hello, heads, at, graft, prune, bye, urls } = fields;
  if (isObject(page)) return { kind: "page", page };
  if (isObject(hello)) return helloOf(hello) ?? { kind: "other" };
  if (isTexts(heads) && typeof at === "number") return { kind: "heads", heads, atMs: at };
  if (isObject(graft) && typeof graft["line"] === "string" && isSize(graft["after"])) {
    return { kind: "graft", graft: { line: graft["line"], after: graft["after"] } };
  }
  if (isObject(prune) && typeof prune["line"] === "string") return { kind: "prune", line: prune["line"] };
  if (bye === true) return { kind: "bye", urls: isTexts(urls) ? urls.slice(0, SITE_URLS_MAX) : [] };
  return { kind: "other" };
}

/** A site lists itself first. Its id is in what is asked of this site's other nodes, and in what they sign. */
export function ownIdIn({ controllers }: Fields): string | null {
  const own: unknown = Array.isArray(controllers) ? controllers[0] : null;
  const id = isObject(own) ? own["id"] : null;
  return typeof id === "string" && CONTROLLER_ID.test(id) ? id : null;
}

/**
 * What it says is registered here as that of a site which calls: with a ring and a proof always, or whoever is at that address could speak for
 * any site that is known here; and nothing but what a site may say of itself.
 */
function helloOf({ id, url, name, metadata }: Fields): LinkMessage | null {
  if (!isShort(id) || !isShort(url) || !isShort(name) || !isObject(metadata)) return null;
  const { version, urls = [], line, ring, proof, earlier } = metadata;
  if (!isShort(line) || !isObject(ring) || !isObject(proof)) return null;
  const { key, signature } = proof;
  if (!isShort(key) || !isShort(signature) || !(version === undefined || isShort(version))) return null;
  if (!isTexts(urls) || urls.length > SITE_URLS_MAX || !urls.every(isShort)) return null;
  // Each of them is looked at by whoever registers it, as the ring is.
  if (!(earlier === undefined || Array.isArray(earlier))) return null;
  const optional = { ...(version === undefined ? {} : { version }), ...(earlier === undefined ? {} : { earlier }) };
  const known = { ...optional, urls, line, ring, proof: { key, signature } };
  return { kind: "hello", introduction: { id, url, name, metadata: known } };
}

function isShort(value: unknown): value is string {
  return typeof value === "string" && value.length <= SITE_TEXT_LENGTH_MAX;
}

/** Null: not an answer to so many pages. */
export function deliveredOf({ pages, heads }: Fields, pagesSent: number): Delivered | null {
  if (!Array.isArray(pages) || pages.length !== pagesSent || !isTexts(heads)) return null;
  const outcomes = (pages as unknown[]).map(outcomeOf);
  return outcomes.includes(null) ? null : { pages: outcomes as PageOutcome[], heads };
}

function outcomeOf(value: unknown): PageOutcome | null {
  if (!isObject(value) || typeof value["line"] !== "string") return null;
  const { line, accepted, duplicates, error, sequence, have } = value;
  if (isSize(accepted) && isSize(duplicates)) return { line, accepted, duplicates };
  if (typeof error !== "string") return null;
  // An error that a newer site names is treated as any other: the page is not there, and is sent again in time.
  const named = error as PageError;
  return { line, error: named, ...(isSize(sequence) ? { sequence } : {}), ...(isSize(have) ? { have } : {}) };
}

export function consistencyOf({ fromRoot, root, path }: Fields): LineConsistency | null {
  if (typeof fromRoot !== "string" || typeof root !== "string" || !isTexts(path)) return null;
  return { fromRoot, root, path };
}

export function refusalOf(status: number, retryAfter: string | undefined, fields: Fields): SiteRefusal {
  const { error, message, urls, leader_url: leaderUrl } = fields;
  const named = isTexts(urls) ? urls.slice(0, SITE_URLS_MAX) : [];
  return {
    kind: "refused",
    status,
    code: typeof error === "string" ? error : "",
    message: typeof message === "string" ? message : "",
    retryAfterMs: /^\d{1,4}$/.test(retryAfter ?? "") ? Number(retryAfter) * 1_000 : null,
    // The leader first.
    urls: typeof leaderUrl === "string" ? [leaderUrl, ...named.filter((url) => url !== leaderUrl)] : named,
  };
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
