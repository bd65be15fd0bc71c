// The user's own JSON inside a request: a payload, a result. It becomes part of an event, which is stored as canonical bytes
// (RFC 8785) and hashed, so what has no such bytes is refused: lone surrogates, numbers that a double does not hold exactly.
// The parser has refused `__proto__` by then. Depth and size are bounded, and the walk itself by them.

import { INTEGER_MAX, JSON_BYTES_PER_UNIT_MAX, JSON_DEPTH_MAX } from "../core/kit/limits.ts";
import { JSON_VALUE_BYTES_MAX } from "./limits.ts";

const encoder = new TextEncoder();

/** Null where it is fine; else a sentence that goes on after its name. */
export function jsonMistake(value: unknown, bytesMax: number): string | null {
  const walk = new Walk();
  walk.look(value, 0);
  if (walk.mistake !== null) return walk.mistake;
  // The exact size costs as much as writing it, and most are far below.
  if (walk.bytesAtMost > bytesMax && encoder.encode(JSON.stringify(value)).length > bytesMax) {
    return `must have at most ${bytesMax} bytes as JSON`;
  }
  return null;
}

class Walk {
  mistake: string | null = null;
  bytesAtMost = 0;

  look(value: unknown, depth: number): void {
    if (this.mistake !== null) return;
    switch (typeof value) {
      case "string":
        return this.#text(value);
      case "number":
        this.bytesAtMost += JSON_VALUE_BYTES_MAX;
        if (!(Math.abs(value) <= INTEGER_MAX)) this.mistake = "must have no number beyond 2^53 − 1: send it as a text";
        return;
      case "boolean":
        this.bytesAtMost += JSON_VALUE_BYTES_MAX;
        return;
      case "object":
        this.bytesAtMost += JSON_VALUE_BYTES_MAX;
        if (value !== null) this.#inside(value, depth + 1);
        return;
      default:
        this.mistake = "must be JSON";
    }
  }

  #inside(value: object, depth: number): void {
    if (depth > JSON_DEPTH_MAX) {
      this.mistake = `must have at most ${JSON_DEPTH_MAX} levels of lists and objects`;
      return;
    }
    if (Array.isArray(value)) {
      for (const item of value) this.look(item, depth);
      return;
    }
    for (const name of Object.keys(value)) {
      this.#text(name);
      this.look((value as Record<string, unknown>)[name], depth);
    }
  }

  #text(text: string): void {
    this.bytesAtMost += text.length * JSON_BYTES_PER_UNIT_MAX + JSON_VALUE_BYTES_MAX;
    if (!text.isWellFormed()) this.mistake = "must be well-formed text: half a surrogate pair has no bytes";
  }
}
