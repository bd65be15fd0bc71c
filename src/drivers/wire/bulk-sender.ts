// One large message at a time to one peer, on a connection of its own, so that heartbeats do not wait behind it.
//
//   idle ──send──▶ dialling ──▶ sending ──all written──▶ closing ──the other closes──▶ idle
//                      └───────────┴── failed, stalled ──▶ idle: the message is lost, the engine sends it again
//
// Back-pressure is the socket's: the next chunks are written when it has taken the last ones, a few in each turn of the
// loop, because a fast receiver would otherwise keep this loop to itself for as long as the message lasts.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Connection } from "./connection.ts";
import { Dial, type DialTarget } from "./dial.ts";
import { FRAME, FRAME_HEADER_BYTES, frame, writeHeader } from "./frame.ts";
import type { Ack } from "./hello.ts";
import { BULK_BYTES_PER_TURN, BULK_CHUNK_BYTES, BULK_FINISH_MS, BULK_STALL_MS } from "./limits.ts";
import type { LinkHost } from "./link.ts";

const NOTHING = new Uint8Array(0);

export class BulkSender {
  readonly #host: Pick<LinkHost, "hello" | "security" | "counts">;
  #target: DialTarget;
  #peer: PeerKey | null = null;
  #bytes: Uint8Array | null = null;
  #dial: Dial | null = null;
  #connection: Connection | null = null;
  #stall: NodeJS.Timeout | null = null;
  #turn: NodeJS.Immediate | null = null;
  #sentBytes = 0;

  constructor(host: Pick<LinkHost, "hello" | "security" | "counts">, target: DialTarget) {
    this.#host = host;
    this.#target = target;
  }

  get isBusy(): boolean {
    return this.#bytes !== null;
  }

  /** Whom the next message is for. */
  aim(target: DialTarget, peer: PeerKey): void {
    this.#target = target;
    this.#peer = peer;
  }

  /** False: another one is under way. */
  send(bytes: Uint8Array): boolean {
    if (this.#bytes !== null) return false;
    this.#bytes = bytes;
    this.#sentBytes = 0;
    this.#watch(BULK_STALL_MS);
    this.#dial = new Dial(this.#target, this.#host.hello("bulk"), this.#host.security, {
      connected: (connection, ack) => this.#connected(connection, ack),
      failed: () => this.#over(false),
    });
    return true;
  }

  close(): void {
    if (this.#bytes !== null) this.#over(false);
  }

  #connected(connection: Connection, ack: Ack): void {
    this.#connection = connection;
    connection.hand({
      phase: {},
      frame: () => undefined,
      fault: () => this.#over(false),
      // The receiver closes when it has everything; a close before that is a failure.
      ended: () => this.#over(this.#bytes !== null && this.#sentBytes === this.#bytes.length),
    });
    // The disk behind the address may be another one by now.
    if (`${ack.nodeId}@${ack.incarnation}` !== this.#peer) {
      this.#over(false);
      return;
    }
    const begin = new Uint8Array(8);
    new DataView(begin.buffer).setBigUint64(0, BigInt(this.#bytes!.length));
    connection.socket.write(frame(FRAME.bulkBegin, begin));
    this.#pump();
  }

  #pump(): void {
    this.#turn = null;
    const { socket } = this.#connection!;
    const bytes = this.#bytes!;
    socket.cork();
    const until = Math.min(bytes.length, this.#sentBytes + BULK_BYTES_PER_TURN);
    while (this.#sentBytes < until) {
      const chunk = bytes.subarray(this.#sentBytes, Math.min(until, this.#sentBytes + BULK_CHUNK_BYTES));
      const header = new Uint8Array(FRAME_HEADER_BYTES);
      writeHeader(header, 0, FRAME.bulkData, chunk.length);
      socket.write(header);
      socket.write(chunk);
      this.#sentBytes += chunk.length;
    }
    if (this.#sentBytes === bytes.length) socket.write(frame(FRAME.bulkEnd, NOTHING));
    socket.uncork();
    const isLast = this.#sentBytes === bytes.length;
    this.#watch(isLast ? BULK_FINISH_MS : BULK_STALL_MS);
    if (isLast) return;
    if (socket.writableNeedDrain) socket.once("drain", () => this.#pumpSoon());
    else this.#pumpSoon();
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
    if (this.#bytes === null) return;
    this.#bytes = null;
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
