// JSON from outside, read strictly (trap 57): two readers of the same bytes must never see two values. The scanner decides,
// byte by byte; only what it has accepted is handed to the platform's parser, which builds the value. `__proto__` is a key
// like any other there.
//
// Refused: what is not UTF-8, a byte order mark, a key twice in one object (however it is spelt), numbers of a magnitude
// above 2^53-1 (they are not exact, and a canonical text would show other digits), half of a surrogate pair, nesting deeper
// than the bound, bytes after the value. An error says at which byte.

import type { Json } from "../kit/json.ts";
import { JSON_DEPTH_MAX } from "../kit/limits.ts";
import { parseJson } from "../kit/parse-json.ts";
import { JsonScanner } from "./json-scanner.ts";

const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Throws a JsonError. The bytes' number is the caller's business to bound. */
export function parseStrictJson(bytes: Uint8Array, depthMax = JSON_DEPTH_MAX): Json {
  new JsonScanner(bytes, depthMax, "strict").document();
  return parseJson(textDecoder.decode(bytes)) as Json;
}

export { JsonError } from "./json-scanner.ts";
