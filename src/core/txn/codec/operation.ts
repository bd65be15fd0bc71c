// Operations of a transaction as bytes.
//
//   put      0, name, version?, content          release   3, scope, epoch
//   delete   1, name, version?                   acquire   4, scope, session, identity, ttl, metadata
//   check    2, name, version                    job       5, spec

import { assertNever } from "../../kit/assert.ts";
import type { ByteReader, ByteWriter } from "../../kit/bytes.ts";
import { SCOPE_BYTES_MAX, SCOPE_IDENTITY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_NAME_BYTES_MAX } from "../../kit/limits.ts";
import { readMetadata, SCOPE_SESSION_BYTES_MAX, writeMetadata } from "../../scopes/index.ts";
import { LaterForm, readOptional, writeOptional } from "./fields.ts";
import type { TxnOperation } from "../model.ts";
import { readSpec, specBytes } from "./spec.ts";

const KINDS = ["value-put", "value-delete", "value-check", "scope-release", "scope-acquire", "job-submit"] as const;

export function writeOperation(writer: ByteWriter, operation: TxnOperation): void {
  writer.u8(KINDS.indexOf(operation.kind));
  switch (operation.kind) {
    case "value-put":
      writer.text(operation.name);
      writeOptional(writer, operation.ifVersion, (version) => writer.uint53(version));
      return writer.bytes(operation.data);
    case "value-delete":
      writer.text(operation.name);
      return writeOptional(writer, operation.ifVersion, (version) => writer.uint53(version));
    case "value-check":
      writer.text(operation.name);
      return writer.uint53(operation.ifVersion);
    case "scope-release":
      writer.text(operation.scope);
      return writer.uint53(operation.epoch);
    case "scope-acquire":
      writer.text(operation.scope);
      writer.text(operation.session);
      writer.text(operation.identity);
      writer.uint53(operation.ttlMs);
      return writeMetadata(writer, operation.metadata);
    case "job-submit":
      return writer.bytes(specBytes(operation.spec));
    default:
      return assertNever(operation, "operation of a transaction");
  }
}

export function readOperation(reader: ByteReader): TxnOperation {
  const kind = KINDS[reader.u8()];
  switch (kind) {
    case "value-put": {
      const name = reader.text(VALUE_NAME_BYTES_MAX);
      const ifVersion = readOptional(reader, () => reader.uint53());
      // Its own: what it is read from may be a whole snapshot, and what is in doubt is kept for days.
      return { kind, name, ifVersion, data: reader.bytes(VALUE_BYTES_MAX).slice() };
    }
    case "value-delete": {
      const name = reader.text(VALUE_NAME_BYTES_MAX);
      return { kind, name, ifVersion: readOptional(reader, () => reader.uint53()) };
    }
    case "value-check":
      return { kind, name: reader.text(VALUE_NAME_BYTES_MAX), ifVersion: reader.uint53() };
    case "scope-release":
      return { kind, scope: reader.text(SCOPE_BYTES_MAX), epoch: reader.uint53() };
    case "scope-acquire": {
      const scope = reader.text(SCOPE_BYTES_MAX);
      const session = reader.text(SCOPE_SESSION_BYTES_MAX);
      const identity = reader.text(SCOPE_IDENTITY_BYTES_MAX);
      const ttlMs = reader.uint53();
      return { kind, scope, session, identity, ttlMs, metadata: readMetadata(reader) };
    }
    case "job-submit":
      return { kind, spec: readSpec(reader) };
    case undefined:
      throw new LaterForm();
    default:
      return assertNever(kind, "operation of a transaction");
  }
}
