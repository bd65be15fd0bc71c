// The bounds of what is read from other sites.

import { ENTRY_BYTES_MAX } from "../../core/kit/limits.ts";

/** A page has one event of nearly an entry's size at most; its text inside of JSON may need an escape for every second byte. */
export const SITE_LINE_BYTES_MAX = 2 * ENTRY_BYTES_MAX + 64 * 1024;
/** Of an answer: outcomes, and a signed head for each line. */
export const SITE_ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** URLs that a refusal names. */
export const SITE_URLS_MAX = 32;
/** Of an address, a name or a key in what a site says of itself. */
export const SITE_TEXT_LENGTH_MAX = 512;
