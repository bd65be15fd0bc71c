// What happened to a scope, as the log keeps it. Binary, version 1, one encoding for one event:
//
//   magic u8, version u8, kind u8, scope, at
//   granted: session, identity, ttl, metadata (sorted by name)     others: epoch
//
// A grant does not name its epoch: it is made of the place that its record gets in the log.

import { assertNever } from "../kit/assert.ts";
import { ByteReader, ByteWriter, decoded, DecodeError } from "../kit/bytes.ts";
import {
  SCOPE_BYTES_MAX,
  SCOPE_IDENTITY_BYTES_MAX,
  SCOPE_METADATA_BYTES_MAX,
  SCOPE_METADATA_ENTRIES_MAX,
} from "../kit/limits.ts";
import { SCOPE_SESSION_BYTES_MAX } from "./limits.ts";

const SCOPE_EVENT_VERSION = 1;
const MAGIC = 0x53;
const KINDS = ["granted", "resigned", "expired", "forced", "resign-requested"] as const;
const EVENT_BYTES = 256;

export type Metadata = Readonly<Record<string, string>>;

export interface Granted {
  readonly kind: "granted";
  readonly scope: string;
  readonly session: string;
  readonly identity: string;
  readonly metadata: Metadata;
  readonly ttlMs: number;
  /** Wall time of the leader that wrote it, as in every event: for people. Leases never look at it (trap 56b). */
  readonly atMs: number;
}

export interface Changed {
  readonly kind: "resigned" | "expired" | "forced" | "resign-requested";
  readonly scope: string;
  readonly epoch: number;
  readonly atMs: number;
}

export type ScopeEvent = Granted | Changed;

export type DecodedEvent =
  | ScopeEvent
  | { readonly kind: "malformed" }
  | { readonly kind: "later-version"; readonly version: number };

export function encodeEvent(event: ScopeEvent): Uint8Array {
  const writer = new ByteWriter(EVENT_BYTES);
  writer.u8(MAGIC);
  writer.u8(SCOPE_EVENT_VERSION);
  writer.u8(KINDS.indexOf(event.kind));
  writer.text(event.scope);
  writer.uint53(event.atMs);
  if (event.kind === "granted") {
    writer.text(event.session);
    writer.text(event.identity);
    writer.uint53(event.ttlMs);
    writeMetadata(writer, event.metadata);
  } else writer.uint53(event.epoch);
  return writer.finish();
}

export function decodeEvent(bytes: Uint8Array): DecodedEvent {
  return decoded(
    () => read(new ByteReader(bytes)),
    () => ({ kind: "malformed" }),
  );
}

function read(reader: ByteReader): DecodedEvent {
  if (reader.u8() !== MAGIC) return { kind: "malformed" };
  const version = reader.u8();
  if (version > SCOPE_EVENT_VERSION) return { kind: "later-version", version };
  const kind = KINDS[reader.u8()];
  if (version !== SCOPE_EVENT_VERSION || kind === undefined) return { kind: "malformed" };
  const scope = reader.text(SCOPE_BYTES_MAX);
  const atMs = reader.uint53();
  const event = readBody(reader, kind, scope, atMs);
  return reader.remainingBytes === 0 ? event : { kind: "malformed" };
}

function readBody(reader: ByteReader, kind: (typeof KINDS)[number], scope: string, atMs: number): ScopeEvent {
  switch (kind) {
    case "granted": {
      const session = reader.text(SCOPE_SESSION_BYTES_MAX);
      const identity = reader.text(SCOPE_IDENTITY_BYTES_MAX);
      const ttlMs = reader.uint53();
      return { kind, scope, session, identity, ttlMs, metadata: readMetadata(reader), atMs };
    }
    case "resigned":
    case "expired":
    case "forced":
    case "resign-requested":
      return { kind, scope, epoch: reader.uint53(), atMs };
    default:
      return assertNever(kind, "scope event");
  }
}

export function writeMetadata(writer: ByteWriter, metadata: Metadata): void {
  const names = Object.keys(metadata).toSorted();
  writer.u8(names.length);
  for (const name of names) {
    writer.text(name);
    writer.text(metadata[name] ?? "");
  }
}

export function readMetadata(reader: ByteReader): Metadata {
  const count = reader.u8();
  if (count > SCOPE_METADATA_ENTRIES_MAX) throw new DecodeError("malformed", `${count} entries of metadata`);
  const entries: [string, string][] = [];
  for (let at = 0; at < count; at++) {
    const name = reader.text(SCOPE_METADATA_BYTES_MAX);
    const before = entries.at(-1)?.[0];
    if (before !== undefined && before >= name) throw new DecodeError("malformed", "metadata out of order");
    entries.push([name, reader.text(SCOPE_METADATA_BYTES_MAX)]);
  }
  // Not by assignment: a name may be `__proto__` (trap 63).
  return Object.fromEntries(entries);
}
