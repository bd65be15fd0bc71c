// Secrets in text that leaves this machine: those that are known, and whatever has the form of one.

const HIDDEN = "…";
/** Shorter ones are in every other word. */
const KNOWN_LENGTH_MIN = 4;

const FORMS: readonly (readonly [RegExp, string])[] = [
  // The password of a URL, up to the last @ before a blank or a quote: a password may hold one that was not escaped.
  [/([a-z][a-z0-9+.-]*:\/\/[^\s:/@"'\\]*):[^\s"'\\]*@/gi, `$1:${HIDDEN}@`],
  // In a log line a line end is written as \n.
  [/-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----[\s\S]*?(-----END \1-----|$)/g, `[private key ${HIDDEN}]`],
  [
    /\b((?:x-api-key|api[_-]?key|password|passwd|secret|token|authorization)["'\\]{0,3}\s*[:=]\s*["'\\]{0,3})[^\s"'\\,;&}]+/gi,
    `$1${HIDDEN}`,
  ],
];

/** Of one text; `known` are secrets that may be in it in the clear. */
export function hider(known: readonly string[]): (text: string) => string {
  const long = [...new Set(known)]
    .filter((one) => one.length >= KNOWN_LENGTH_MIN)
    .toSorted((a, b) => b.length - a.length);
  return (text) => {
    const without = long.reduce((left, secret) => left.replaceAll(secret, HIDDEN), text);
    return FORMS.reduce((left, [form, instead]) => left.replace(form, instead), without);
  };
}
