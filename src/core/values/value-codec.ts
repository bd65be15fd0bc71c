// Values as bytes: an event as a part of a record of the log (core/state/records.ts), a state as a part of a snapshot. One encoding for one value.
//
//   event   kind u8, name, at, fenced (scope, epoch), put: content
//   state   name, version, at, fenced (scope, epoch), content

import type { ByteReader, ByteWriter } from "../kit/bytes.ts";
import { SCOPE_BYTES_MAX, VALUE_BYTES_MAX, VALUE_NAME_BYTES_MAX } from "../kit/limits.ts";
import type { ValueEvent, ValueFence, ValueState } from "./value-state.ts";

const KINDS = ["value-put", "value-deleted"] as const;

export function writeValueEvent(writer: ByteWriter, event: ValueEvent): void {
  writer.u8(KINDS.indexOf(event.kind));
  writer.text(event.name);
  writer.uint53(event.atMs);
  writeFence(writer, event.fence);
  if (event.kind === "value-put") writer.bytes(event.data);
}

/**
 * Null: of a kind that this release does not know. With a content of its own: the record may have half a mebibyte of other values and of jobs, and all of it
 * would be kept as long as this value.
 */
export function readValueEvent(reader: ByteReader): ValueEvent | null {
  const kind = KINDS[reader.u8()];
  if (kind === undefined) return null;
  const name = reader.text(VALUE_NAME_BYTES_MAX);
  const atMs = reader.uint53();
  const fence = readFence(reader);
  if (kind === "value-deleted") return { kind, name, atMs, fence };
  return { kind, name, atMs, fence, data: reader.bytes(VALUE_BYTES_MAX).slice() };
}

export function writeValue(writer: ByteWriter, { name, version, atMs, fence, data }: ValueState): void {
  writer.text(name);
  writer.uint53(version);
  writer.uint53(atMs);
  writeFence(writer, fence);
  writer.bytes(data);
}

/** With a content of its own: what it is read from may be a whole snapshot. */
export function readValue(reader: ByteReader): ValueState {
  const name = reader.text(VALUE_NAME_BYTES_MAX);
  const version = reader.uint53();
  const atMs = reader.uint53();
  const fence = readFence(reader);
  return { name, version, atMs, fence, data: reader.bytes(VALUE_BYTES_MAX).slice() };
}

function writeFence(writer: ByteWriter, fence: ValueFence | null): void {
  writer.bool(fence !== null);
  if (fence === null) return;
  writer.text(fence.scope);
  writer.uint53(fence.epoch);
}

function readFence(reader: ByteReader): ValueFence | null {
  return reader.bool() ? { scope: reader.text(SCOPE_BYTES_MAX), epoch: reader.uint53() } : null;
}
