// What a request about a value may hold, checked before anything is decided, and the bounds of this room.

import { TenureError } from "../kit/errors.ts";
import type { Json } from "../kit/json.ts";
import { INTEGER_MAX, JSON_DEPTH_MAX, SCOPE_BYTES_MAX, VALUE_BYTES_MAX, VALUE_NAME_BYTES_MAX } from "../kit/limits.ts";
import type { ValueFence } from "./value-state.ts";

/** A piece of a snapshot is about so large. */
export const VALUES_PIECE_BYTES = 256 * 1024;

const encoder = new TextEncoder();

export function checkValueName(name: string): void {
  checkText("name", name, VALUE_NAME_BYTES_MAX);
  // As a part of a path these mean other paths, however they are written.
  if (name === "." || name === "..") refuse("name", 'must not be "." or ".."');
}

export function checkValueTerms(ifVersion: number | null, fence: ValueFence | null): void {
  if (ifVersion !== null) checkInteger("if_version", ifVersion, 0);
  if (fence === null) return;
  checkText("scope", fence.scope, SCOPE_BYTES_MAX);
  checkInteger("epoch", fence.epoch, 1);
}

/** Of what has canonical JSON, which bounds how deep this looks. */
export function checkValueDepth(value: Json): void {
  if (isDeeper(value, JSON_DEPTH_MAX))
    refuse("value", `must have at most ${JSON_DEPTH_MAX} levels of lists and objects`);
}

function isDeeper(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((one: Json) => isDeeper(one, levels - 1));
}

/** As canonical JSON. Its bytes. */
export function valueData(json: string): Uint8Array {
  const data = encoder.encode(json);
  if (data.length <= VALUE_BYTES_MAX) return data;
  throw new TenureError(
    "PAYLOAD_TOO_LARGE",
    `The value has ${data.length} bytes as canonical JSON, and may have ${VALUE_BYTES_MAX}. Keep large things elsewhere, and where they are in the value.`,
  );
}

function checkText(field: string, value: unknown, bytesMax: number): void {
  if (typeof value !== "string") refuse(field, "must be a text");
  if (!value.isWellFormed() || value.includes("\0")) refuse(field, "must be well-formed text without NUL");
  const bytes = encoder.encode(value).length;
  if (bytes === 0) refuse(field, "must not be empty");
  if (bytes > bytesMax) refuse(field, `must have at most ${bytesMax} bytes, and has ${bytes}`);
}

function checkInteger(field: string, value: unknown, from: number): void {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < from)
    refuse(field, `must be an integer from ${from} to ${INTEGER_MAX}, not ${String(value)}`);
}

function refuse(field: string, why: string): never {
  throw new TenureError("BAD_REQUEST", `${field} ${why}.`, { field });
}
