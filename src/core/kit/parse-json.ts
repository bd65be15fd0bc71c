// JSON.parse, for texts whose keys somebody else chooses. In V8 of Node 24 and 26 the platform's own can take an escaped key
// for another one: once an object with the key `a\` was parsed, `{"a\"":1}` may be read as `{"a\\":1}` (nodejs/node #63785).
// Which value comes out depends on what the process parsed before, so that two nodes would read one log entry differently.
//
// Invariant: a key with an escape is never left to the platform. What has none is, at its full speed.

import type { Json } from "./json.ts";

type Members = Record<string, Json>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = "\ufeff";
const SPACE = /[ \t\r\n]*/y;
const MADE_UP = /~\d+~/g;
// oxlint-disable-next-line no-control-regex -- the control characters are what is looked for
const NEEDS_ESCAPE = /["\\\u0000-\u001f]/;

/** Throws a SyntaxError, as the platform does. */
export function parseJson(text: string): unknown {
  return withItsKeys(text, JSON.parse(text));
}

/** `parsed`: what the platform made of the text. */
export function withItsKeys(text: string, parsed: unknown): unknown {
  const places = escapedKeys(text);
  return places.length === 0 ? parsed : reread(text, places);
}

/**
 * Where they begin and end, quotes included. Of a text that is JSON: escapes stand in strings alone, and a string with a
 * colon after it is a key.
 */
function escapedKeys(text: string): readonly (readonly [number, number])[] {
  const places: (readonly [number, number])[] = [];
  let escapeAt = text.indexOf("\\");
  while (escapeAt >= 0) {
    // The first one of its string: the quote before it opens that string.
    const start = text.lastIndexOf('"', escapeAt);
    const end = stringEnd(text, start);
    if (text[spaceEnd(text, end)] === ":") places.push([start, end]);
    escapeAt = text.indexOf("\\", end);
  }
  return places;
}

/** The platform reads it with names that need no escape; those that were made up are then changed back. */
function reread(text: string, places: readonly (readonly [number, number])[]): Json {
  const keys = places.map(([start, end]) => JSON.parse(text.slice(start, end)) as string);
  const names = namesFor(keys, text);
  const pieces: string[] = [];
  let from = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
  for (const [at, [start, end]] of places.entries()) {
    pieces.push(text.slice(from, start), `"${names.get(keys[at] as string) as string}"`);
    from = end;
  }
  pieces.push(text.slice(from));
  const madeUp = new Map<string, string>();
  for (const [key, name] of names) if (name !== key) madeUp.set(name, key);
  return renamed(JSON.parse(pieces.join("")) as Json, madeUp);
}

/** One for each key: itself, or one that no key of the text has, however that is spelt. */
function namesFor(keys: readonly string[], text: string): ReadonlyMap<string, string> {
  const taken = new Set<string>();
  for (const one of [text, ...keys]) for (const [name] of one.matchAll(MADE_UP)) taken.add(name);
  const names = new Map<string, string>();
  let number = 0;
  for (const key of keys) {
    if (names.has(key)) continue;
    let name = key;
    if (NEEDS_ESCAPE.test(key))
      do name = `~${number++}~`;
      while (taken.has(name));
    names.set(key, name);
  }
  return names;
}

/** Without recursion: whoever sends a text decides how deep it is. */
function renamed(root: Json, madeUp: ReadonlyMap<string, string>): Json {
  const top: Json[] = [root];
  const open: (Json[] | Members)[] = [top];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const members = one as Members;
    for (const key of Array.isArray(one) ? one.keys() : Object.keys(one)) {
      const value = members[key] as Json;
      if (value === null || typeof value !== "object") continue;
      const next = withNames(value, madeUp);
      if (next !== value) put(members, String(key), next);
      open.push(next);
    }
  }
  return top[0] as Json;
}

/** Of the object itself, not of what is in it. */
function withNames(value: object, madeUp: ReadonlyMap<string, string>): Json[] | Members {
  if (Array.isArray(value) || !Object.keys(value).some((key) => madeUp.has(key))) return value as Json[] | Members;
  const members: Members = {};
  for (const [key, inner] of Object.entries(value)) put(members, madeUp.get(key) ?? key, inner as Json);
  return members;
}

/** `__proto__` is a key like any other. */
function put(members: Members, key: string, value: Json): void {
  if (key !== "__proto__") members[key] = value;
  else Object.defineProperty(members, key, { value, writable: true, enumerable: true, configurable: true });
}

/** After the closing quote of the string that opens at `at`. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; ; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) return i + 1;
    if (code === BACKSLASH) i++;
  }
}

function spaceEnd(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}
