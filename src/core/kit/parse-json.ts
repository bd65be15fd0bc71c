// JSON.parse, for texts whose keys somebody else chooses. In V8 of Node 24 and 26 the platform's own can take an escaped key
// for another one: once an object with the key `a\` was parsed, `{"a\"":1}` may be read as `{"a\\":1}` (nodejs/node #63785).
// Which value comes out depends on what the process parsed before, so that two nodes would read one log entry differently.
//
// Invariant: a key with an escape is never left to the platform. What has none is, at its full speed.

import type { Json } from "./json.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = /[ \t\r\n]*/y;
const SCALAR = /[^ \t\r\n,\]}]+/y;

/** Throws a SyntaxError, as the platform does. */
export function parseJson(text: string): unknown {
  return withItsKeys(text, JSON.parse(text));
}

/** `parsed`: what the platform made of the text. */
export function withItsKeys(text: string, parsed: unknown): unknown {
  return hasEscapedKey(text) ? built(text) : parsed;
}

/** Of a text that is JSON: escapes stand in strings alone, and a string with a colon behind it is a key. */
function hasEscapedKey(text: string): boolean {
  let escapeAt = text.indexOf("\\");
  while (escapeAt >= 0) {
    // The first one of its string: the quote before it opens that string.
    const end = stringEnd(text, text.lastIndexOf('"', escapeAt));
    if (text[spaceEnd(text, end)] === ":") return true;
    escapeAt = text.indexOf("\\", end);
  }
  return false;
}

/** Without recursion: whoever sends a text decides how deep it is. */
function built(text: string): Json {
  const open: (Json[] | Record<string, Json>)[] = [];
  let key = "";
  let at = 0;
  const put = (value: Json): void => {
    const into = open.at(-1);
    if (into === undefined) return;
    if (Array.isArray(into)) into.push(value);
    else Object.defineProperty(into, key, { value, writable: true, enumerable: true, configurable: true });
  };
  for (;;) {
    at = spaceEnd(text, at);
    const char = text[at];
    if (char === "," || char === ":") at++;
    else if (char === "{" || char === "[") {
      const one: Json[] | Record<string, Json> = char === "[" ? [] : {};
      put(one);
      open.push(one);
      at++;
    } else if (char === "}" || char === "]") {
      const one = open.pop()!;
      if (open.length === 0) return one;
      at++;
    } else {
      const end = char === '"' ? stringEnd(text, at) : scalarEnd(text, at);
      const one = JSON.parse(text.slice(at, end)) as Json;
      at = spaceEnd(text, end);
      if (text[at] === ":") key = one as string;
      else put(one);
    }
  }
}

/** Behind the closing quote of the string that opens at `at`. */
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

function scalarEnd(text: string, at: number): number {
  SCALAR.lastIndex = at;
  SCALAR.test(text);
  return SCALAR.lastIndex;
}
