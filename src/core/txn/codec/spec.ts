// A job's spec as bytes: a part of an operation, and of the outbox. The payload is canonical JSON, so equal specs are equal bytes.
//
// Bytes are made once for each spec and kept next to it: they are measured, written to the log, hashed and written to snapshots.

import { canonicalJson } from "../../events/index.ts";
import type { JobSpec } from "../../jobs/model.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../kit/bytes.ts";
import type { Json } from "../../kit/json.ts";
import { ENTRY_BYTES_MAX, JOB_LABELS_BYTES_MAX, JOB_LABELS_MAX, JOB_NAME_BYTES_MAX } from "../../kit/limits.ts";
import { parseJson } from "../../kit/parse-json.ts";
import { readOptional, writeOptional } from "./fields.ts";

/** Priorities may be negative; integers in the bytes may not. */
const PRIORITY_OFFSET = 2 ** 31;
const SPEC_BYTES = 256;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoded = new WeakMap<JobSpec, Uint8Array>();

/** Of one that has no problem. Throws EVENT_INVALID where the payload has no canonical JSON. */
export function specBytes(spec: JobSpec): Uint8Array {
  let bytes = encoded.get(spec);
  if (bytes === undefined) {
    bytes = encodeSpec(spec);
    encoded.set(spec, bytes);
  }
  return bytes;
}

export function readSpec(reader: ByteReader): JobSpec {
  // Its own: what it is read from may be a record of half a mebibyte, or several of them, and a job may wait for hours until it is delivered.
  const bytes = reader.bytes(ENTRY_BYTES_MAX).slice();
  const spec = decodeSpec(new ByteReader(bytes));
  encoded.set(spec, bytes);
  return spec;
}

function encodeSpec(spec: JobSpec): Uint8Array {
  const payload = encoder.encode(canonicalJson(spec.payload));
  const writer = new ByteWriter(SPEC_BYTES + payload.length);
  writer.text(spec.kind);
  writer.text(spec.queue);
  const labels = Object.keys(spec.labels).toSorted();
  writer.u8(labels.length);
  for (const name of labels) {
    writer.text(name);
    writer.text(spec.labels[name]!);
  }
  writeOptional(writer, spec.platform, (platform) => writer.text(platform));
  writer.uint53(spec.priority + PRIORITY_OFFSET);
  writeOptional(writer, spec.notBeforeMs, (atMs) => writer.uint53(atMs));
  writer.uint53(spec.attemptsMax);
  writer.uint53(spec.lossesMax);
  writer.uint53(spec.backoff.baseMs);
  writer.uint53(spec.backoff.maxMs);
  writeOptional(writer, spec.timeoutMs, (ms) => writer.uint53(ms));
  writer.uint53(spec.retentionMs);
  writeOptional(writer, spec.concurrency, ({ key, limit }) => {
    writer.text(key);
    writer.uint53(limit);
  });
  writer.bytes(payload);
  return writer.finish();
}

function decodeSpec(reader: ByteReader): JobSpec {
  const kind = reader.text(JOB_NAME_BYTES_MAX);
  const queue = reader.text(JOB_NAME_BYTES_MAX);
  const labels = readLabels(reader);
  const platform = readOptional(reader, () => reader.text(JOB_NAME_BYTES_MAX));
  const priority = reader.uint53() - PRIORITY_OFFSET;
  const notBeforeMs = readOptional(reader, () => reader.uint53());
  const [attemptsMax, lossesMax] = [reader.uint53(), reader.uint53()];
  const backoff = { baseMs: reader.uint53(), maxMs: reader.uint53() };
  const timeoutMs = readOptional(reader, () => reader.uint53());
  const retentionMs = reader.uint53();
  const concurrency = readOptional(reader, () => ({
    key: reader.text(JOB_NAME_BYTES_MAX),
    limit: reader.uint53(),
  }));
  const payload = readPayload(reader);
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes after a job`);
  const limits = { attemptsMax, lossesMax, backoff, timeoutMs, retentionMs, concurrency };
  return { kind, payload, queue, labels, platform, priority, notBeforeMs, ...limits };
}

function readLabels(reader: ByteReader): JobSpec["labels"] {
  const count = reader.u8();
  if (count > JOB_LABELS_MAX) throw new DecodeError("malformed", `${count} labels`);
  const entries: [string, string][] = [];
  for (let at = 0; at < count; at++) {
    const name = reader.text(JOB_LABELS_BYTES_MAX);
    const before = entries.at(-1)?.[0];
    if (before !== undefined && before >= name) throw new DecodeError("malformed", "labels out of order");
    entries.push([name, reader.text(JOB_LABELS_BYTES_MAX)]);
  }
  // Not by assignment: a name may be `__proto__` (trap 63).
  return Object.fromEntries(entries);
}

function readPayload(reader: ByteReader): Json {
  const bytes = reader.bytes(ENTRY_BYTES_MAX);
  try {
    return parseJson(decoder.decode(bytes)) as Json;
  } catch {
    throw new DecodeError("malformed", "a payload that is no JSON");
  }
}
