// One large message at a time to one peer, on a connection of its own, so that heartbeats do not wait behind it.
//
//   idle ──send──▶ dialling ──▶ sending ──all written──▶ closing ──the other closes──▶ idle
//                      └───────────┴── failed, stalled ──▶ idle: the message is lost, the engine sends it again
//
// Back-pressure is the socket's: the next chunks are written when it has taken the last ones, a few in each turn of the
// loop, because a fast receiver would otherwise keep this loop to itself for as long as the message lasts.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Connection } from "./connection.ts";
import type { Dial, DialTarget } from "./dial.ts";
import { FRAME, FRAME_HEADER_BYTES, frame, writeHeader } from "./frame.ts";
import type { Ack } from "./handshake/hello.ts";
import { BULK_BYTES_PER_TURN, BULK_CHUNK_BYTES, BULK_FINISH_MS, BULK_STALL_MS } from "./limits.ts";
import type { LinkHost } from "./link-host.ts";

const NOTHING = new Uint8Array(0);

export class BulkSender {
  readonly #host: Pick<LinkHost, "dial" | "counts">;
  #target: DialTarget;
  #peer: PeerKey | null = null;
  /** One after the other they are the message. */
  #parts: readonly Uint8Array[] | null = null;
  #dial: Dial | null = null;
  #connection: Connection | null = null;
  #stall: NodeJS.Timeout | null = null;
  #turn: NodeJS.Immediate | null = null;
  #totalBytes = 0;
  #sentBytes = 0;
  /** The part that is being sent, and how much of it was. */
  #part = 0;
  #partBytes = 0;

  constructor(host: Pick<LinkHost, "dial" | "counts">, target: DialTarget) {
    this.#host = host;
    this.#target = target;
  }

  get isBusy(): boolean {
    return this.#parts !== null;
  }

  /** Whom the next message is for. */
  aim(target: DialTarget, peer: PeerKey): void {
    this.#target = target;
    this.#peer = peer;
  }

  /** False: another one is under way. */
  send(parts: readonly Uint8Array[]): boolean {
    if (this.#parts !== null) return false;
    this.#parts = parts;
    this.#totalBytes = parts.reduce((sum, part) => sum + part.length, 0);
    this.#sentBytes = 0;
    this.#part = 0;
    this.#partBytes = 0;
    this.#watch(BULK_STALL_MS);
    this.#dial = this.#host.dial(this.#target, "bulk", {
      connected: (connection, ack) => this.#connected(connection, ack),
      failed: () => this.#over(false),
    });
    return true;
  }

  close(): void {
    if (this.#parts !== null) this.#over(false);
  }

  #connected(connection: Connection, ack: Ack): void {
    this.#connection = connection;
    connection.hand({
      phase: {},
      frame: () => undefined,
      fault: () => this.#over(false),
      // The receiver closes when it has everything; a close before that is a failure.
      ended: () => this.#over(this.#sentBytes === this.#totalBytes),
    });
    // The disk behind the address may be another one by now.
    if (`${ack.nodeId}@${ack.incarnation}` !== this.#peer) {
      this.#over(false);
      return;
    }
    const begin = new Uint8Array(8);
    new DataView(begin.buffer).setBigUint64(0, BigInt(this.#totalBytes));
    connection.socket.write(frame(FRAME.bulkBegin, begin));
    this.#pump();
  }

  #pump(): void {
    this.#turn = null;
    const { socket } = this.#connection!;
    socket.cork();
    const until = Math.min(this.#totalBytes, this.#sentBytes + BULK_BYTES_PER_TURN);
    while (this.#sentBytes < until) {
      const chunk = this.#nextChunk();
      const header = new Uint8Array(FRAME_HEADER_BYTES);
      writeHeader(header, 0, FRAME.bulkData, chunk.length);
      socket.write(header);
      socket.write(chunk);
      this.#sentBytes += chunk.length;
    }
    const isLast = this.#sentBytes === this.#totalBytes;
    if (isLast) socket.write(frame(FRAME.bulkEnd, NOTHING));
    socket.uncork();
    this.#watch(isLast ? BULK_FINISH_MS : BULK_STALL_MS);
    if (isLast) return;
    if (socket.writableNeedDrain) socket.once("drain", () => this.#pumpSoon());
    else this.#pumpSoon();
  }

  /** A view of one part; the last one of a part may be short. */
  #nextChunk(): Uint8Array {
    while (this.#partBytes === this.#parts![this.#part]!.length) {
      this.#part++;
      this.#partBytes = 0;
    }
    const chunk = this.#parts![this.#part]!.subarray(this.#partBytes, this.#partBytes + BULK_CHUNK_BYTES);
    this.#partBytes += chunk.length;
    return chunk;
  }

  #pumpSoon(): void {
    if (this.#connection?.isOpen !== true || this.#turn !== null) return;
    this.#turn = setImmediate(() => this.#pump());
  }

  #watch(ms: number): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall = setTimeout(() => this.#over(false), ms);
  }

  #over(done: boolean): void {
    if (this.#parts === null) return;
    this.#parts = null;
    if (this.#stall !== null) clearTimeout(this.#stall);
    if (this.#turn !== null) clearImmediate(this.#turn);
    this.#stall = null;
    this.#turn = null;
    this.#dial?.cancel();
    this.#dial = null;
    this.#connection?.close();
    this.#connection = null;
    if (done) this.#host.counts.sentBulks++;
    else this.#host.counts.failedBulks++;
  }
}
