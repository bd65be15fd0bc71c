// What a request asks for, as one text: under an idempotency key the same one is answered as the first time, and another one
// is refused (design D16). The order of names, and spaces, make no difference: members are sorted as RFC 8785 does. Method and
// path are part of it, or the cancellation of one job would be taken for that of another.

/** The body has passed its schema: it is JSON, and no deeper than that allows. */
export function requestText(method: string, path: string, body: unknown): string {
  return `${method} ${path}\n${canonical(body ?? {})}`;
}

/** Texts in which JSON escapes nothing. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

function canonical(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object" || value === null) return String(value);
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === "" ? "" : ","}${canonical(item)}`;
    return `[${text}]`;
  }
  // By units of UTF-16, as ECMAScript sorts what it is told nothing else about.
  for (const name of Object.keys(value).sort()) {
    text += `${text === "" ? "" : ","}${quoted(name)}:${canonical((value as Record<string, unknown>)[name])}`;
  }
  return `{${text}}`;
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}
