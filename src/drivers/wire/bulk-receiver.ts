// One large message as it comes in, assembled in memory of its announced size.
//
//   expecting begin ──▶ filling ──end, all there──▶ whole
//
// Invariants: the size is checked before it is allocated; no byte past it is taken; nothing is handed out in part.

import { FRAME, type FrameFault, type FrameType, type Phase } from "./frame.ts";
import { BULK_BYTES_MAX, BULK_BYTES_PER_TURN, BULK_CHUNK_BYTES } from "./limits.ts";

export const BULK_PHASE: Phase = { [FRAME.bulkBegin]: 8, [FRAME.bulkData]: BULK_CHUNK_BYTES, [FRAME.bulkEnd]: 0 };

export type BulkStep =
  | { readonly kind: "more" }
  | { readonly kind: "whole"; readonly bytes: Uint8Array }
  | { readonly kind: "fault"; readonly fault: FrameFault };

const MORE: BulkStep = { kind: "more" };

export class BulkReceiver {
  #bytes: Uint8Array | null = null;
  #filledBytes = 0;
  #turnBytes = 0;

  /** Reported once for each BULK_BYTES_PER_TURN: the connection should let others read. */
  get isTurnOver(): boolean {
    if (this.#turnBytes < BULK_BYTES_PER_TURN) return false;
    this.#turnBytes = 0;
    return true;
  }

  take(type: FrameType, payload: Uint8Array): BulkStep {
    if (type === FRAME.bulkBegin) return this.#begin(payload);
    if (this.#bytes === null) return fault("garbage", "bulk data before its size");
    if (type === FRAME.bulkData) {
      if (this.#filledBytes + payload.length > this.#bytes.length) {
        return fault("oversized-frame", `bulk data past its size of ${this.#bytes.length} bytes`);
      }
      this.#bytes.set(payload, this.#filledBytes);
      this.#filledBytes += payload.length;
      this.#turnBytes += payload.length;
      return MORE;
    }
    if (this.#filledBytes !== this.#bytes.length) {
      return fault("garbage", `${this.#filledBytes} of ${this.#bytes.length} bytes came`);
    }
    return { kind: "whole", bytes: this.#bytes };
  }

  #begin(payload: Uint8Array): BulkStep {
    if (this.#bytes !== null) return fault("garbage", "a second bulk on one connection");
    if (payload.length !== 8) return fault("garbage", "a bulk without its size");
    const size = new DataView(payload.buffer, payload.byteOffset).getBigUint64(0);
    if (size > BigInt(BULK_BYTES_MAX)) {
      return fault("oversized-frame", `a bulk of ${size} bytes, where at most ${BULK_BYTES_MAX} are allowed`);
    }
    this.#bytes = new Uint8Array(Number(size));
    return MORE;
  }
}

function fault(reason: FrameFault["reason"], message: string): BulkStep {
  return { kind: "fault", fault: { reason, message } };
}
