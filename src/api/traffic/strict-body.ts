// A request's body, read strictly (trap 57): what the platform's parser would pass over without a word is refused, with the
// byte at which it is. That is a name twice in one object, however it is spelt; bytes that are not UTF-8; a byte order mark.
// `__proto__` and `constructor.prototype` are refused too. What the value still shows (numbers beyond 2^53-1, halves of
// surrogate pairs, nesting) is refused by the schemas, by the field's name, where the scanner has not refused it.
//
// A text that comes out again when its value is written as JSON hides nothing: a name that came twice would be missing. That
// costs a quarter of the scanner's time, and holds for whatever JSON.stringify has written, so only the rest is scanned.

import type { FastifyInstance } from "fastify";
import { JsonError, parseStrictJson } from "../../core/events/strict-json.ts";
import type { Json } from "../../core/kit/json.ts";
import { EVENT_DEPTH_MAX } from "../../core/kit/limits.ts";
import { Refusal } from "../refusal.ts";

/** A mark stays in the text, where the comparison sees it. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bodies are JSON, and nothing else. */
export function speakJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, bytes, done) => {
    try {
      done(null, bytes.length === 0 ? undefined : parseBody(bytes as Uint8Array));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** Throws BAD_REQUEST with the place. */
export function parseBody(bytes: Uint8Array): Json {
  let text: string | null = null;
  let value: Json | undefined;
  try {
    text = decoder.decode(bytes);
    value = parsedWhole(text) ?? parseStrictJson(bytes, EVENT_DEPTH_MAX);
  } catch (error) {
    throw refusalOf(error, bytes);
  }
  if (mayBePoisoned(text) && isPoisoned(value)) throw refused('it names "__proto__" or "constructor.prototype"');
  return value;
}

/** Undefined where its value does not tell all that the text says. */
function parsedWhole(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return JSON.stringify(value) === text ? value : undefined;
  } catch {
    // The scanner says where it is no JSON, or nested too deep to be written.
    return undefined;
  }
}

/** Both names have these letters, unless some of them are escaped. */
function mayBePoisoned(text: string): boolean {
  return text.includes("proto") || text.includes(String.raw`\u`);
}

/** Without recursion: a compact text may be nested as deep as a body is long. */
function isPoisoned(value: Json): boolean {
  const open: Json[] = [value];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one !== "object" || one === null) continue;
    if (!Array.isArray(one)) {
      if (Object.hasOwn(one, "__proto__")) return true;
      const inner = Object.hasOwn(one, "constructor") ? one["constructor"] : null;
      if (typeof inner === "object" && inner !== null && Object.hasOwn(inner, "prototype")) return true;
    }
    for (const member of Object.values(one)) open.push(member as Json);
  }
  return false;
}

function refusalOf(error: unknown, bytes: Uint8Array): Error {
  if (error instanceof JsonError) {
    const { problem, offset } = error;
    return refused(offset >= bytes.length ? `it ends too early, at byte ${offset}` : `${problem}, at byte ${offset}`);
  }
  // The decoder says only that it is not UTF-8.
  try {
    parseStrictJson(bytes, EVENT_DEPTH_MAX);
  } catch (found) {
    if (found instanceof JsonError) return refusalOf(found, bytes);
  }
  return error as Error;
}

function refused(why: string): Refusal {
  return new Refusal("BAD_REQUEST", `The body is not taken as JSON: ${why}.`, { field: "body" });
}
