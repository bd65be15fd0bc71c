// A gRPC client with nothing in it that a benchmark does not need: unary calls over HTTP/2 without TLS (RFC 9113, RFC 7541),
// written by hand because node:http2 spends more on a small call than the server that answers it, and the other side of a
// comparison must not be held back by our client. Requests of one turn leave in one write.
//
//   connecting ─▶ open ─▶ over        for ever; whoever wants another makes another
//   call: asked ─▶ answered | refused (no message came: an error of the server) | lost (the connection ended)
//
// A unary call that fails has trailers and no message, so the headers of an answer need not be decoded. The header table is
// set to size 0, so that this stays true of every server.

import { connect, type Socket } from "node:net";

const HOST = "127.0.0.1";
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER_BYTES = 9;
const MESSAGE_PREFIX_BYTES = 5;
const STREAM_ID_MAX = 2 ** 31 - 1;
const WINDOW_BYTES = 65_535;
const OUR_WINDOW_BYTES = 2 ** 30;
const OUT_BYTES = 64 * 1_024;

const TYPE = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8 } as const;
const END_STREAM = 0x1;
const ACK = 0x1;
const END_HEADERS = 0x4;
const PADDED = 0x8;

export type GrpcOutcome =
  | { readonly kind: "answered"; readonly message: Buffer }
  | { readonly kind: "refused" }
  /** It may or may not have happened. */
  | { readonly kind: "lost" };

interface Call {
  readonly settle: (outcome: GrpcOutcome) => void;
  message: Buffer | null;
}

export class GrpcConnection {
  readonly #socket: Socket;
  readonly #authority: string;
  readonly #calls = new Map<number, Call>();
  /** The headers of these paths are in the server's table: a call needs a few bytes for them. */
  readonly #tables = new Map<string, Buffer>();
  #state: "connecting" | "open" | "over" = "connecting";
  #out = Buffer.allocUnsafe(OUT_BYTES);
  #outBytes = 0;
  #isFlushScheduled = false;
  #nextStream = 1;
  #windowBytes = WINDOW_BYTES;
  #waiting: { readonly path: string; readonly message: Uint8Array; readonly call: Call }[] = [];
  #consumedBytes = 0;
  #rest: Buffer | null = null;

  constructor(port: number) {
    this.#authority = `${HOST}:${port}`;
    this.#socket = connect({ host: HOST, port, noDelay: true });
    this.#socket.once("connect", () => {
      if (this.#state !== "connecting") return;
      this.#state = "open";
      this.#greet();
      this.#flush();
    });
    this.#socket.on("error", () => undefined);
    this.#socket.once("close", () => this.close());
    this.#socket.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  call(path: string, message: Uint8Array): Promise<GrpcOutcome> {
    if (this.#state === "over") return Promise.resolve({ kind: "lost" });
    return new Promise((settle) => {
      this.#waiting.push({ path, message, call: { settle, message: null } });
      this.#flushSoon();
    });
  }

  close(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#socket.destroy();
    const calls = [...this.#calls.values(), ...this.#waiting.map(({ call }) => call)];
    this.#calls.clear();
    this.#waiting = [];
    for (const { settle } of calls) settle({ kind: "lost" });
  }

  // ---- out -----------------------------------------------------------------------------------------

  #greet(): void {
    this.#socket.write(PREFACE);
    // SETTINGS_HEADER_TABLE_SIZE 0, SETTINGS_ENABLE_PUSH 0; then a window that never fills up between two updates.
    this.#frame(TYPE.settings, 0, 0, Buffer.from([0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]));
    this.#frame(TYPE.window, 0, 0, uint32(OUR_WINDOW_BYTES));
  }

  #flushSoon(): void {
    if (this.#isFlushScheduled || this.#state !== "open") return;
    this.#isFlushScheduled = true;
    process.nextTick(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    if (this.#state !== "open") return;
    let sent = 0;
    for (const { path, message, call } of this.#waiting) {
      const bytes = MESSAGE_PREFIX_BYTES + message.length;
      if (bytes > this.#windowBytes || this.#nextStream > STREAM_ID_MAX) break;
      this.#windowBytes -= bytes;
      this.#start(path, message, call);
      sent++;
    }
    if (sent > 0) this.#waiting = this.#waiting.slice(sent);
    if (this.#outBytes === 0) return;
    this.#socket.write(this.#out.subarray(0, this.#outBytes));
    this.#out = Buffer.allocUnsafe(OUT_BYTES);
    this.#outBytes = 0;
  }

  #start(path: string, message: Uint8Array, call: Call): void {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    this.#calls.set(stream, call);
    this.#frame(TYPE.headers, END_HEADERS, stream, this.#headers(path));
    const length = MESSAGE_PREFIX_BYTES + message.length;
    const at = this.#begin(TYPE.data, END_STREAM, stream, length);
    this.#out[at] = 0;
    this.#out.writeUInt32BE(message.length, at + 1);
    this.#out.set(message, at + MESSAGE_PREFIX_BYTES);
  }

  /** The first path of a connection goes into the server's table; the others are spelled out each time. */
  #headers(path: string): Buffer {
    const known = this.#tables.get(path);
    if (known !== undefined) return known;
    const isFirst = this.#tables.size === 0;
    const form = isFirst ? 0x40 : 0x00;
    const field = (name: number[], value: string): Buffer => Buffer.concat([Buffer.from(name), text(value)]);
    const contentType = isFirst ? [0x40 | 31] : [0x0f, 31 - 0x0f];
    const spelled = Buffer.concat([
      Buffer.from([0x80 | 3, 0x80 | 6]),
      field([form | 4], path),
      field([form | 1], this.#authority),
      field(contentType, "application/grpc"),
      field([form, ...text("te")], "trailers"),
    ]);
    const [te, type, authority, first] = [62, 63, 64, 65];
    const indexed = Buffer.from([3, 6, first, authority, type, te].map((index) => 0x80 | index));
    this.#tables.set(path, isFirst ? indexed : spelled);
    return spelled;
  }

  #frame(type: number, flags: number, stream: number, payload: Uint8Array): void {
    const at = this.#begin(type, flags, stream, payload.length);
    this.#out.set(payload, at);
  }

  /** Returns where the payload goes. */
  #begin(type: number, flags: number, stream: number, lengthBytes: number): number {
    const size = FRAME_HEADER_BYTES + lengthBytes;
    if (this.#outBytes + size > this.#out.length) {
      const grown = Buffer.allocUnsafe(2 * (this.#outBytes + size));
      this.#out.copy(grown, 0, 0, this.#outBytes);
      this.#out = grown;
    }
    const at = this.#outBytes;
    this.#out.writeUIntBE(lengthBytes, at, 3);
    this.#out[at + 3] = type;
    this.#out[at + 4] = flags;
    this.#out.writeUInt32BE(stream, at + 5);
    this.#outBytes = at + size;
    return at + FRAME_HEADER_BYTES;
  }

  // ---- in ------------------------------------------------------------------------------------------

  #read(chunk: Buffer): void {
    const bytes = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEADER_BYTES) {
      const end = at + FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const stream = bytes.readUInt32BE(at + 5) & STREAM_ID_MAX;
      this.#take(bytes[at + 3]!, bytes[at + 4]!, stream, bytes.subarray(at + FRAME_HEADER_BYTES, end));
      at = end;
    }
    this.#rest = at === bytes.length ? null : bytes.subarray(at);
    if (this.#consumedBytes < OUR_WINDOW_BYTES / 2) return;
    this.#frame(TYPE.window, 0, 0, uint32(this.#consumedBytes));
    this.#consumedBytes = 0;
    this.#flushSoon();
  }

  #take(type: number, flags: number, stream: number, payload: Buffer): void {
    switch (type) {
      case TYPE.data:
        this.#consumedBytes += payload.length;
        if ((flags & PADDED) !== 0) return this.close();
        this.#data(stream, payload);
        if ((flags & END_STREAM) !== 0) this.#ended(stream);
        return;
      case TYPE.headers:
        if ((flags & END_STREAM) !== 0) this.#ended(stream);
        return;
      case TYPE.reset:
        this.#settle(stream, { kind: "refused" });
        return;
      case TYPE.settings:
        if ((flags & ACK) === 0) this.#reply(TYPE.settings, Buffer.alloc(0));
        return;
      case TYPE.ping:
        if ((flags & ACK) === 0) this.#reply(TYPE.ping, payload);
        return;
      case TYPE.window:
        if (stream === 0) this.#windowBytes += payload.readUInt32BE(0) & STREAM_ID_MAX;
        this.#flushSoon();
        return;
      case TYPE.goaway:
        return this.close();
      default:
        return;
    }
  }

  #reply(type: number, payload: Uint8Array): void {
    this.#frame(type, ACK, 0, payload);
    this.#flushSoon();
  }

  #data(stream: number, payload: Buffer): void {
    const call = this.#calls.get(stream);
    if (call !== undefined) call.message = call.message === null ? payload : Buffer.concat([call.message, payload]);
  }

  #ended(stream: number): void {
    const message = this.#calls.get(stream)?.message ?? null;
    const isWhole = message !== null && message.length >= MESSAGE_PREFIX_BYTES;
    this.#settle(
      stream,
      isWhole ? { kind: "answered", message: message.subarray(MESSAGE_PREFIX_BYTES) } : { kind: "refused" },
    );
  }

  #settle(stream: number, outcome: GrpcOutcome): void {
    const call = this.#calls.get(stream);
    this.#calls.delete(stream);
    call?.settle(outcome);
  }
}

/** A string of HPACK, not Huffman coded; all of ours are short. */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}
