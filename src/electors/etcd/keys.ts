// Where things are in etcd, and how bytes are written in its JSON.
//
//   <prefix><scope>/leader         the hold: create-only, on the holder's lease; its create_revision is the epoch
//   <prefix><scope>/resign         an operator's wish, an epoch as text, on the same lease
//   <prefix><scope>/history/<id>   what happened, kept
//
// The scope is written with percent signs, without a slash, so "a" and "a/leader" never meet. Below the scope there are
// only these names.

import { TenureError } from "../../core/kit/errors.ts";
import { SCOPE_BYTES_MAX } from "../../core/kit/limits.ts";

export interface ScopeKeys {
  /** All of the scope's keys begin with it. */
  readonly all: string;
  readonly leader: string;
  readonly resign: string;
  /** With the slash at its end. */
  readonly history: string;
}

export function scopeKeys(prefix: string, scope: string): ScopeKeys {
  const base = `${prefix}${encodeScope(scope)}`;
  return { all: `${base}/`, leader: `${base}/leader`, resign: `${base}/resign`, history: `${base}/history/` };
}

/** The scope that a key under the prefix belongs to, and what it is; undefined for what we did not write. */
export function parseKey(prefix: string, key: string): { scope: string; name: string } | undefined {
  if (!key.startsWith(prefix)) return undefined;
  const match = /^([^/]+)\/(leader|resign|history\/.+)$/s.exec(key.slice(prefix.length));
  const [, encoded, name] = match ?? [];
  if (encoded === undefined || name === undefined) return undefined;
  try {
    return { scope: decodeURIComponent(encoded), name };
  } catch {
    return undefined;
  }
}

function encodeScope(scope: string): string {
  if (scope === "" || scope.includes("\0")) throw invalid("it must be text, not empty and without NUL");
  const bytes = new TextEncoder().encode(scope).length;
  if (bytes > SCOPE_BYTES_MAX) throw invalid(`it has ${bytes} bytes; at most ${SCOPE_BYTES_MAX} are taken`);
  try {
    return encodeURIComponent(scope);
  } catch {
    throw invalid("it holds half a character (a lone surrogate)");
  }
}

function invalid(why: string): TenureError {
  return new TenureError("CONFIG_INVALID", `the scope can't be used: ${why}. Name it otherwise.`);
}

export function toBase64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Bytes that are no text come out with replacement characters: what we wrote is text. */
export function fromBase64(base64: string): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(
    Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)),
  );
}

/** The end of the range of all keys that begin with this text: its last byte, one higher. UTF-8 has no byte 255. */
export function rangeEnd(text: string): string {
  const bytes = new TextEncoder().encode(text);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) + 1;
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
