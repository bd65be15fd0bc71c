// The state of scopes and values as bytes:
//
//   without values   as the scopes alone (core/scopes/snapshot.ts), which older releases read
//   with values      magic u8, version u8 (3), the scopes' bytes, the values' (core/values/fold.ts)
//
// Values are many bytes: their part is made piece by piece, while it is written down.

import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { TenureError } from "../kit/errors.ts";
import { joined, measuredParts, readMeasured, wholeOf } from "../kit/pieces.ts";
import type { SnapshotData } from "../../ports/state-machine.ts";
import { type NewLine, SCOPES_SNAPSHOT_MAGIC, withNewScopesLine, type ScopesFold } from "../scopes/index.ts";
import type { ValuesFold } from "../values/index.ts";

const VERSION = 3;
const PARTS = 2;
const HEADER_BYTES = 2;

interface Folds {
  readonly scopes: ScopesFold;
  readonly values: ValuesFold;
}

export function stateSnapshot({ scopes, values }: Folds): SnapshotData {
  const scopesBytes = scopes.snapshot();
  if (values.size === 0) return scopesBytes;
  return joined(header(), measuredParts([scopesBytes, values.snapshot()]));
}

/** Throws SNAPSHOT_INVALID or FORMAT_UNSUPPORTED. Of no bytes at all: the state of a new cluster. */
export function restoreState({ scopes, values }: Folds, bytes: Uint8Array): void {
  const parts = partsOf(bytes);
  scopes.restore(parts.scopes);
  readable(() => values.restore(parts.values));
}

/** As `withNewScopesLine`. Values are kept: what is written from there on has higher versions. */
export function withNewLine(bytes: Uint8Array, line: NewLine): Uint8Array {
  const { scopes, values } = partsOf(bytes);
  const renewed = withNewScopesLine(scopes, line);
  return values.length === 0 ? renewed : wholeOf(joined(header(), measuredParts([renewed, values])));
}

function header(): Uint8Array {
  const writer = new ByteWriter(HEADER_BYTES);
  writer.u8(SCOPES_SNAPSHOT_MAGIC);
  writer.u8(VERSION);
  return writer.finish();
}

function partsOf(bytes: Uint8Array): { readonly scopes: Uint8Array; readonly values: Uint8Array } {
  const isWhole = bytes[0] === SCOPES_SNAPSHOT_MAGIC && bytes[1] === VERSION;
  if (!isWhole) return { scopes: bytes, values: new Uint8Array(0) };
  const [scopes, values] = readable(() => readMeasured(new ByteReader(bytes, HEADER_BYTES), PARTS));
  return { scopes: scopes!, values: values! };
}

function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    const message = `the part of scopes and values in the snapshot can't be read: ${error.message}`;
    throw new TenureError("SNAPSHOT_INVALID", message, { cause: error });
  }
}
