// Secrets in text that leaves this machine: those that are known, and whatever has the form of one.

import { SECRET_LENGTH_MIN } from "../limits.ts";

const HIDDEN = "…";

/** In bounds, each of them: a line of letters without an end is passed in a time that grows with its length alone. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  // The password of a URL, up to the last @ before a blank or a quote: a password may hold one that was not escaped.
  [/([a-z][a-z0-9+.-]{0,30}:\/\/[^\s:/@"'\\]*):[^\s"'\\]*@/gi, `$1:${HIDDEN}@`],
  // In a log line a line end is written as \n.
  [/-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----[\s\S]*?(-----END \1-----|$)/g, `[private key ${HIDDEN}]`],
  // The word before what is secret is the scheme: Bearer, Basic.
  [/(authorization["'\\]{0,3}\s{0,4}[:=]\s{0,4}["'\\]{0,3})[^"'\\,;}\n]+/gi, `$1${HIDDEN}`],
  // In quotes up to their end, else up to a blank. Also as the end of a longer name: PGPASSWORD, TENURE_API_KEY, client_secret.
  [
    /((?:api[_-]?key|password|passwd|secret|token)\\{0,2}["']?\s{0,4}[:=]\s{0,4})(\\{0,2}(["']))(?:(?!\2)(?:\\.|.))+/gi,
    `$1$2${HIDDEN}`,
  ],
  [
    /((?:api[_-]?key|password|passwd|secret|token)\\{0,2}["']?\s{0,4}[:=]\s{0,4})(?!\\{0,2}["'])[^\s"'\\,;&}]+/gi,
    `$1${HIDDEN}`,
  ],
];

/** Of one text; `known` are secrets that may be in it in the clear. */
export function hider(known: readonly string[]): (text: string) => string {
  const long = [...new Set(known)]
    .filter((one) => one.length >= SECRET_LENGTH_MIN)
    .toSorted((a, b) => b.length - a.length);
  return (text) => {
    const without = long.reduce((left, secret) => left.replaceAll(secret, HIDDEN), text);
    return FORMS.reduce((left, [form, instead]) => left.replace(form, instead), without);
  };
}
