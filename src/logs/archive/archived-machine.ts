// A log's state machine together with the archive of what it holds: their snapshots are one, of one moment. It resolves when
// the archive has everything up to it, so the Raft log is never compacted past what is archived (design D12).

import { ByteReader, ByteWriter, DecodeError } from "../../core/kit/bytes.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { joined, partsOf, type Pieces, readPart, wholeOf } from "../../core/kit/pieces.ts";
import { SNAPSHOT_BYTES_MAX } from "../../core/kit/limits.ts";
import type { SnapshotData, StateMachine } from "../../ports/state-machine.ts";

const SNAPSHOT_VERSION = 1;

/** What a machine needs of its archive. */
export interface Captured {
  capture(): Promise<Uint8Array | readonly Uint8Array[]>;
  restore(captured: Uint8Array): Promise<void>;
}

/** `archive` is asked for at each call: it is opened after the machine is made. */
export function archivedMachine(inner: StateMachine, archive: () => Captured): StateMachine {
  return {
    apply: (entry) => inner.apply(entry),
    snapshot: async () => {
      // Both in this turn; only then is waited.
      const captured = archive().capture();
      const state = inner.snapshot();
      return encode(await captured, await state);
    },
    restore: (data) => {
      if (data.length === 0) return inner.restore(data);
      readable(() => {
        const { captured, state } = decode(data);
        // The state first: where it can't be read, the archive's files stay as they are.
        inner.restore(state);
        // A failure of the disk ends the process by itself.
        void archive().restore(captured);
      });
    },
    *prepare(data) {
      if (data.length > 0 && inner.prepare !== undefined) yield* inner.prepare(readable(() => decode(data)).state);
    },
  };
}

/** The same snapshot with what it carries of the archive changed. */
export function withCapture(data: Uint8Array, change: (captured: Uint8Array) => Uint8Array): Uint8Array {
  if (data.length === 0) return data;
  return readable(() => {
    const { captured, state } = decode(data);
    return wholeOf(encode(change(captured), state));
  });
}

/** Whatever does not make sense in a snapshot comes out as one error, which says so: a node that meets it can't go on. */
function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DecodeError || error instanceof RangeError || error instanceof SyntaxError)) throw error;
    const next = "Restore another copy, or empty this node's directory and let it join again";
    const why = `the archived state in this snapshot can't be read: ${error.message}. ${next}.`;
    throw new TenureError("SNAPSHOT_INVALID", why, { cause: error });
  }
}

function encode(captured: Uint8Array | readonly Uint8Array[], state: SnapshotData): Pieces {
  const writer = new ByteWriter(1);
  writer.u8(SNAPSHOT_VERSION);
  return joined(writer.finish(), partsOf([captured, state]));
}

function decode(data: Uint8Array): { readonly captured: Uint8Array; readonly state: Uint8Array } {
  const reader = new ByteReader(data);
  const version = reader.u8();
  if (version !== SNAPSHOT_VERSION) {
    const why = `an archived state of version ${version}, and this release reads ${SNAPSHOT_VERSION}; use the release that wrote it, or a newer one`;
    throw new TenureError("FORMAT_UNSUPPORTED", why);
  }
  const [captured, state] = [readPart(reader, SNAPSHOT_BYTES_MAX), readPart(reader, SNAPSHOT_BYTES_MAX)];
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow it");
  return { captured, state };
}
