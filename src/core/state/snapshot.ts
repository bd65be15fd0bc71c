// The state of scopes, values and transactions as bytes:
//
//   without both         as the scopes alone (core/scopes/snapshot.ts), which older releases read
//   with values          magic u8, version u8 (3), the scopes' bytes, the values' (core/values/fold.ts)
//   with transactions    magic u8, version u8 (4), the scopes' bytes, the values', the transactions' (core/txn/fold.ts)
//
// Values and transactions are many bytes: their parts are made piece by piece, while they are written down.

import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { TenureError } from "../kit/errors.ts";
import { joined, measuredParts, type Pieces, readMeasured, wholeOf } from "../kit/pieces.ts";
import type { SnapshotData } from "../../ports/state-machine.ts";
import { type NewLine, SCOPES_SNAPSHOT_MAGIC, withNewScopesLine, type ScopesFold } from "../scopes/index.ts";
import type { TxnsFold } from "../txn/index.ts";
import type { ValuesFold } from "../values/index.ts";

const WITH_VALUES = 3;
const WITH_TXNS = 4;
/** By version. */
const PARTS: Readonly<Record<number, number>> = { [WITH_VALUES]: 2, [WITH_TXNS]: 3 };
const HEADER_BYTES = 2;
const NOTHING = new Uint8Array(0);

interface Folds {
  readonly scopes: ScopesFold;
  readonly values: ValuesFold;
  readonly txns: TxnsFold;
}

interface Parts {
  readonly scopes: Uint8Array;
  readonly values: Uint8Array;
  readonly txns: Uint8Array;
}

export function stateSnapshot({ scopes, values, txns }: Folds): SnapshotData {
  const scopesBytes = scopes.snapshot();
  if (!txns.isEmpty) return withParts(WITH_TXNS, [scopesBytes, values.snapshot(), txns.snapshot()]);
  if (values.size === 0) return scopesBytes;
  return withParts(WITH_VALUES, [scopesBytes, values.snapshot()]);
}

/** Throws SNAPSHOT_INVALID or FORMAT_UNSUPPORTED. Of no bytes at all: the state of a new cluster. */
export function restoreState({ scopes, values, txns }: Folds, bytes: Uint8Array): void {
  const parts = partsOf(bytes);
  scopes.restore(parts.scopes);
  readable(() => values.restore(parts.values));
  readable(() => txns.restore(parts.txns));
}

/**
 * As `withNewScopesLine`. Values are kept: what is written from there on has higher versions. So are transactions: what is prepared stays in doubt,
 * with its locks, until an operator ends it, for this is another island now.
 */
export function withNewLine(bytes: Uint8Array, line: NewLine): Uint8Array {
  const { scopes, values, txns } = partsOf(bytes);
  const renewed = withNewScopesLine(scopes, line);
  if (txns.length > 0) return wholeOf(withParts(WITH_TXNS, [renewed, values, txns]));
  return values.length === 0 ? renewed : wholeOf(withParts(WITH_VALUES, [renewed, values]));
}

function withParts(version: number, parts: readonly (Uint8Array | Pieces)[]): Pieces {
  const writer = new ByteWriter(HEADER_BYTES);
  writer.u8(SCOPES_SNAPSHOT_MAGIC);
  writer.u8(version);
  return joined(writer.finish(), measuredParts(parts));
}

function partsOf(bytes: Uint8Array): Parts {
  const count = bytes[0] === SCOPES_SNAPSHOT_MAGIC ? PARTS[bytes[1] ?? 0] : undefined;
  if (count === undefined) return { scopes: bytes, values: NOTHING, txns: NOTHING };
  const [scopes, values, txns] = readable(() => readMeasured(new ByteReader(bytes, HEADER_BYTES), count));
  return { scopes: scopes!, values: values!, txns: txns ?? NOTHING };
}

function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    const message = `the part of scopes, values and transactions in the snapshot can't be read: ${error.message}`;
    throw new TenureError("SNAPSHOT_INVALID", message, { cause: error });
  }
}
