// What a request about a scope may hold, checked before anything is decided: a scope's name as an elector checks it, so that
// whoever competes through a server and through the library means the same one.

import { TenureError } from "../kit/errors.ts";
import {
  SCOPE_BYTES_MAX,
  SCOPE_IDENTITY_BYTES_MAX,
  SCOPE_METADATA_BYTES_MAX,
  SCOPE_METADATA_ENTRIES_MAX,
  SCOPE_TTL_MS_MAX,
  SCOPE_TTL_MS_MIN,
  SCOPE_WAIT_MS_MAX,
} from "../kit/limits.ts";
import type { AcquireRequest } from "../../ports/scopes.ts";

/** Random, made by a client: a UUID and a little more. */
export const SCOPE_SESSION_BYTES_MAX = 128;
/** Scopes that changed and whose bytes for a snapshot are still to be made; past it one is made with each record. */
export const SCOPES_UNPREPARED_MAX = 128;
/** Above it an epoch would pass 2^53-1. */
export const GENERATION_MAX = 2 ** 21 - 1;

const encoder = new TextEncoder();

export function checkScope(scope: string): void {
  checkText("scope", scope, SCOPE_BYTES_MAX, 1);
  // As a part of a path these mean other paths, however they are written.
  if (scope === "." || scope === "..") refuse("scope", 'must not be "." or ".."');
}

export function checkHold(scope: string, session: string, epoch: number): void {
  checkScope(scope);
  checkText("session", session, SCOPE_SESSION_BYTES_MAX, 1);
  checkInteger("epoch", epoch, 1, Number.MAX_SAFE_INTEGER);
}

export function checkAcquire(request: AcquireRequest): void {
  checkScope(request.scope);
  checkText("session", request.session, SCOPE_SESSION_BYTES_MAX, 1);
  checkText("identity", request.identity, SCOPE_IDENTITY_BYTES_MAX, 1);
  checkInteger("ttl_ms", request.ttlMs, SCOPE_TTL_MS_MIN, SCOPE_TTL_MS_MAX);
  checkInteger("wait_ms", request.waitMs, 0, SCOPE_WAIT_MS_MAX);
  checkMetadata(request.metadata);
}

function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  if (entries.length > SCOPE_METADATA_ENTRIES_MAX) {
    refuse("metadata", `must have at most ${SCOPE_METADATA_ENTRIES_MAX} entries, and has ${entries.length}`);
  }
  let bytes = 0;
  for (const [name, value] of entries) {
    bytes += checkText("metadata", name, SCOPE_METADATA_BYTES_MAX, 0);
    bytes += checkText(`metadata.${name}`, value, SCOPE_METADATA_BYTES_MAX, 0);
  }
  if (bytes > SCOPE_METADATA_BYTES_MAX) {
    refuse("metadata", `must have at most ${SCOPE_METADATA_BYTES_MAX} bytes, and has ${bytes}`);
  }
}

/** Returns its size. */
function checkText(name: string, value: unknown, bytesMax: number, bytesMin: number): number {
  if (typeof value !== "string") refuse(name, "must be a text");
  // A lone surrogate becomes U+FFFD in UTF-8, and two scopes would become one.
  if (!value.isWellFormed() || value.includes("\0")) refuse(name, "must be well-formed text without NUL");
  const bytes = encoder.encode(value).length;
  if (bytes < bytesMin) refuse(name, "must not be empty");
  if (bytes > bytesMax) refuse(name, `must have at most ${bytesMax} bytes, and has ${bytes}`);
  return bytes;
}

function checkInteger(name: string, value: unknown, from: number, to: number): void {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < from || value > to) {
    refuse(name, `must be an integer from ${from} to ${to}, not ${String(value)}`);
  }
}

function refuse(name: string, why: string): never {
  throw new TenureError("BAD_REQUEST", `${name} ${why}.`);
}
