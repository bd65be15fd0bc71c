// What waits to be written to one socket. Everything that is pushed in one turn of the loop becomes one write: a Ready
// sends several messages to each peer, and a system call for each would cost more than the messages.
//
// Invariant: at most QUEUE_BYTES_MAX wait, here and in the socket together; past it nothing is taken.

import type { Socket } from "node:net";
import { FRAME_HEADER_BYTES, type FrameType, writeHeader } from "./frame.ts";
import { INLINE_BYTES_MAX, QUEUE_BYTES_MAX } from "./limits.ts";

export class Outbox {
  readonly #socket: Socket;
  #types: FrameType[] = [];
  #payloads: Uint8Array[] = [];
  #waitingBytes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get queuedBytes(): number {
    return this.#waitingBytes + this.#socket.writableLength;
  }

  /** False: full, and nothing was taken. */
  push(type: FrameType, payload: Uint8Array): boolean {
    const bytes = FRAME_HEADER_BYTES + payload.length;
    if (this.queuedBytes + bytes > QUEUE_BYTES_MAX) return false;
    // After the Readies of this turn, and before the disk's promises get there: the way over the network and through
    // another's disk is the longer one, and waking the thread that writes ours first would cost it 40 µs.
    if (this.#payloads.length === 0) queueMicrotask(() => this.flush());
    this.#types.push(type);
    this.#payloads.push(payload);
    this.#waitingBytes += bytes;
    return true;
  }

  flush(): void {
    const types = this.#types;
    const payloads = this.#payloads;
    if (payloads.length === 0) return;
    this.#types = [];
    this.#payloads = [];
    this.#waitingBytes = 0;
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    let slabBytes = 0;
    for (const { length } of payloads) slabBytes += FRAME_HEADER_BYTES + (length <= INLINE_BYTES_MAX ? length : 0);
    const slab = Buffer.allocUnsafe(slabBytes);
    let from = 0;
    let to = 0;
    this.#socket.cork();
    for (let at = 0; at < payloads.length; at++) {
      const payload = payloads[at]!;
      writeHeader(slab, to, types[at]!, payload.length);
      to += FRAME_HEADER_BYTES;
      if (payload.length <= INLINE_BYTES_MAX) {
        slab.set(payload, to);
        to += payload.length;
        continue;
      }
      this.#socket.write(slab.subarray(from, to));
      this.#socket.write(payload);
      from = to;
    }
    if (to > from) this.#socket.write(slab.subarray(from, to));
    this.#socket.uncork();
  }
}
