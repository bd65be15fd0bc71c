// What clients and nodes of the test store say to each other over TCP: frames of a length, the request's number, a kind
// and a body. Many requests are under way on one connection; answers come in any order and carry the number back.
//
//   request   put {command} | cas {command} | get {key}
//   answer    committed {index, done} | value {index, present, value} | refused {code, leader} | unknown {}
//   notice    leader {term, leader}: unasked, to every connection, whenever this node learns who leads
//
// The body of a put and of a cas is the log entry itself (machine.ts), so the node passes it on without reading it.

import { ByteReader, ByteWriter } from "../../src/core/kit/bytes.ts";
import { KEY_BYTES_MAX, VALUE_BYTES_MAX } from "./machine.ts";

const FRAME_BYTES_MAX = KEY_BYTES_MAX + 2 * VALUE_BYTES_MAX + 256;
const HEADER_BYTES = 9;
const CODE_BYTES_MAX = 256;

const REQUEST = { put: 1, cas: 2, get: 3 } as const;
export type RequestKind = keyof typeof REQUEST;
const KINDS: readonly (RequestKind | undefined)[] = [undefined, "put", "cas", "get"];

export interface Request {
  readonly id: number;
  readonly kind: RequestKind;
  readonly body: Uint8Array;
}

export type Answer =
  /** `done`: false for a cas that found another value. */
  | { readonly kind: "committed"; readonly index: number; readonly done: boolean }
  | { readonly kind: "value"; readonly index: number; readonly value: Uint8Array | null }
  /** Nothing was written. `leader`: the node id that leads, as far as this node knows; empty where it knows of none. */
  | { readonly kind: "refused"; readonly code: string; readonly leader: string }
  | { readonly kind: "unknown" }
  | { readonly kind: "leader"; readonly term: number; readonly leader: string };

const ANSWERS: readonly Answer["kind"][] = ["committed", "value", "refused", "unknown", "leader"];
/** No request has this number. */
export const NOTICE_ID = 2 ** 32 - 1;

export function encodeRequest(writer: FrameWriter, id: number, kind: RequestKind, body: Uint8Array): void {
  writer.frame(id, REQUEST[kind], body);
}

export function decodeRequest({ id, kind, body }: Frame): Request {
  const named = KINDS[kind];
  if (named === undefined) throw new RangeError(`a request of kind ${kind}`);
  return { id, kind: named, body };
}

const bodies = new ByteWriter(16 * 1_024);

export function encodeAnswer(writer: FrameWriter, id: number, answer: Answer): void {
  bodies.begin(64);
  switch (answer.kind) {
    case "committed":
      bodies.uint53(answer.index);
      bodies.bool(answer.done);
      break;
    case "value":
      bodies.uint53(answer.index);
      bodies.bool(answer.value !== null);
      bodies.bytes(answer.value ?? NOTHING);
      break;
    case "refused":
      bodies.text(answer.code);
      bodies.text(answer.leader);
      break;
    case "leader":
      bodies.uint53(answer.term);
      bodies.text(answer.leader);
      break;
    case "unknown":
      break;
  }
  writer.frame(id, ANSWERS.indexOf(answer.kind), bodies.finish());
}

export function decodeAnswer({ kind, body }: Frame): Answer {
  const reader = new ByteReader(body);
  const named = ANSWERS[kind];
  switch (named) {
    case "committed":
      return { kind: named, index: reader.uint53(), done: reader.bool() };
    case "value": {
      const index = reader.uint53();
      const isPresent = reader.bool();
      const value = reader.bytes(VALUE_BYTES_MAX);
      return { kind: named, index, value: isPresent ? value : null };
    }
    case "refused":
      return { kind: named, code: reader.text(CODE_BYTES_MAX), leader: reader.text(CODE_BYTES_MAX) };
    case "leader":
      return { kind: named, term: reader.uint53(), leader: reader.text(CODE_BYTES_MAX) };
    case "unknown":
      return { kind: named };
    default:
      throw new RangeError(`an answer of kind ${kind}`);
  }
}

const NOTHING = new Uint8Array(0);

// ---- frames ----------------------------------------------------------------------------------------

export interface Frame {
  readonly id: number;
  readonly kind: number;
  /** A view of what was received. */
  readonly body: Uint8Array;
}

/** Frames that leave together: one buffer, one write to the socket. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(16 * 1_024);
  #end = 0;

  get isEmpty(): boolean {
    return this.#end === 0;
  }

  frame(id: number, kind: number, body: Uint8Array): void {
    const size = HEADER_BYTES + body.length;
    if (this.#end + size > this.#buffer.length) this.#grow(size);
    const at = this.#end;
    this.#buffer.writeUInt32BE(body.length, at);
    this.#buffer.writeUInt32BE(id, at + 4);
    this.#buffer[at + 8] = kind;
    this.#buffer.set(body, at + HEADER_BYTES);
    this.#end = at + size;
  }

  /** The socket keeps what it is given, so the next frames go into another buffer. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#end);
    this.#buffer = Buffer.allocUnsafe(16 * 1_024);
    this.#end = 0;
    return taken;
  }

  #grow(size: number): void {
    const grown = Buffer.allocUnsafe(2 * (this.#end + size));
    this.#buffer.copy(grown, 0, 0, this.#end);
    this.#buffer = grown;
  }
}

/** Cuts what a socket delivers into frames. Throws RangeError for a frame that is too long. */
export class FrameReader {
  #rest: Buffer | null = null;

  read(chunk: Buffer, each: (frame: Frame) => void): void {
    const bytes = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(at);
      if (length > FRAME_BYTES_MAX) throw new RangeError(`a frame of ${length} bytes; ${FRAME_BYTES_MAX} are allowed`);
      const end = at + HEADER_BYTES + length;
      if (end > bytes.length) break;
      each({ id: bytes.readUInt32BE(at + 4), kind: bytes[at + 8]!, body: bytes.subarray(at + HEADER_BYTES, end) });
      at = end;
    }
    this.#rest = at === bytes.length ? null : bytes.subarray(at);
  }
}
