// The bounds of what a request, a page or a file of configuration may hold, beyond those of core/kit/limits.ts.

import { VALUE_BYTES_MAX } from "../core/kit/limits.ts";

export { API_URL_LENGTH_MAX, SCOPE_PAGES_MAX, VALUE_BYTES_MAX } from "../core/kit/limits.ts";

/** A day: who allows more staleness than that does not care. */
export const STALE_MS_MAX = 86_400_000;
/** What one answer lists is made at once, and the leader's heartbeats wait for it. */
export const JOBS_PER_PAGE_MAX = 200;
export const SEARCH_BYTES_MAX = 256;
export const CURSOR_BYTES_MAX = 512;
export const CRON_BYTES_MAX = 256;
export const TIME_ZONE_BYTES_MAX = 64;
export const TYPES_BYTES_MAX = 512;
export const NAMES_PER_PAGE_MAX = 500;
export const EVENTS_PER_PAGE_MAX = 1_000;
/** A number, a separator, a bracket: what a value has at most besides the characters of a text. */
export const JSON_VALUE_BYTES_MAX = 28;
/** Of a request that writes a value: each of its characters may be written as six (\u0041), with the names of a scope next to it. */
export const VALUE_BODY_BYTES_MAX = 6 * VALUE_BYTES_MAX + 4 * 1024;
export const PATH_BYTES_MAX = 4_096;
export const CONFIG_KEYS_MAX = 256;
export const BACKEND_URL_LENGTH_MAX = 4_096;
/** Of the archive: a century. */
export const KEEP_DAYS_MAX = 36_525;
/** A day. */
export const CONNECTION_AGE_S_MAX = 86_400;
export const KEY_BYTES_MAX = 4_096;
export const HOST_PORT_LENGTH_MAX = 262;
/** So many rounds find eight mistakes each; whoever has more has another kind of file. */
export const MISTAKE_ROUNDS_MAX = 16;
/** That one answer lists, and what it shows of each. */
export const MISTAKES_MAX = 16;
export const FIELD_SHOWN_LENGTH_MAX = 128;
export const FOUND_LENGTH_MAX = 80;
/** Our own messages are three deep; what is deeper did not come through a schema. */
export const OWN_DEPTH_MAX = 16;
/** Names of fields that were converted: they are few and come in every answer; a stranger's names must not fill the memory. */
export const FIELD_NAMES_KEPT_MAX = 1_000;
/** Of a site that registers: its addresses, its name, its release, and all that it says of itself, as JSON. */
export const SITE_URLS_MAX = 32;
export const SITE_NAME_BYTES_MAX = 128;
export const SITE_VERSION_BYTES_MAX = 64;
export const SITE_METADATA_BYTES_MAX = 16 * 1024;
/** Of a key or a signature in base64. */
export const SITE_PROOF_LENGTH_MAX = 128;
/** Of times between sites: a day at most. */
export const MESH_INTERVAL_MS_MIN = 100;
export const MESH_INTERVAL_MS_MAX = 86_400_000;
/** A year. */
export const REPLAY_HOURS_MAX = 8_766;
export const PARENTS_MAX = 16;
export const MESH_PEERS_MAX = 256;
/** Certificates from a client's to its root. */
export const CHAIN_DEPTH_MAX = 16;
