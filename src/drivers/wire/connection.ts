// One socket, from either side: frames in, frames out, and one end.
//
//   open ──▶ ended      by the other (eof, reset), by the network or TLS (failed), or by us (ours); told exactly once,
//                       after the last frame that came
//
// Whoever owns the connection changes hands with the phase: first the handshake, then a link, an inbound or a bulk.

import type { Socket } from "node:net";
import { assertNever } from "../../core/kit/assert.ts";
import { FrameReader, type FrameFault, type FrameType, type Phase } from "./frame.ts";
import { KEEPALIVE_DELAY_MS, LINGER_MS_MAX } from "./limits.ts";
import { Outbox } from "./outbox.ts";

export type ConnectionEnd =
  | { readonly kind: "eof" }
  | { readonly kind: "reset" }
  | { readonly kind: "failed"; readonly error: NodeJS.ErrnoException }
  | { readonly kind: "ours" };

export interface ConnectionOwner {
  readonly phase: Phase;
  frame(type: FrameType, payload: Uint8Array): void;
  /** The other sent what it must not; the owner closes. */
  fault(fault: FrameFault): void;
  ended(end: ConnectionEnd): void;
}

const ignore = (): void => undefined;
/** Of a connection that is given up. */
export const NOBODY: ConnectionOwner = { phase: {}, frame: ignore, fault: ignore, ended: ignore };

const RESETS = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED"]);

export class Connection {
  readonly socket: Socket;
  readonly outbox: Outbox;
  /** When something was last heard on it. */
  heardAtMs = performance.now();
  readonly #reader: FrameReader;
  #owner: ConnectionOwner;
  #ended = false;
  #receivedBytes = 0;

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.socket = socket;
    this.outbox = new Outbox(socket);
    this.#owner = owner;
    this.#reader = new FrameReader(owner.phase);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_DELAY_MS);
    const take = (type: FrameType, payload: Uint8Array): void => this.#owner.frame(type, payload);
    socket.on("data", (chunk: Buffer) => {
      this.heardAtMs = performance.now();
      this.#receivedBytes += chunk.length;
      const fault = this.#reader.push(chunk, take);
      if (fault !== null) this.#owner.fault(fault);
    });
    socket.on("end", () => this.#end({ kind: "eof" }));
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#end(RESETS.has(error.code ?? "") ? { kind: "reset" } : { kind: "failed", error });
    });
    socket.on("close", () => this.#end({ kind: "eof" }));
  }

  get isOpen(): boolean {
    return !this.#ended;
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** The handshake is over: frames after it, in the same chunk too, go to the new owner. */
  hand(owner: ConnectionOwner): void {
    this.#owner = owner;
    this.#reader.expect(owner.phase);
  }

  /** Lets the others of this loop have their turn: the kernel hands over up to 2 MiB of one socket at a stretch. */
  rest(): void {
    if (this.socket.isPaused()) return;
    this.socket.pause();
    setImmediate(() => this.socket.resume());
  }

  /** At once; what was not written yet is lost. */
  close(): void {
    this.#end({ kind: "ours" });
  }

  /** Says a last word first, as far as the socket takes it; whatever still comes is not read. */
  closeAfter(lastFrame: Uint8Array): void {
    if (this.#ended) return;
    this.#reader.end();
    this.#ended = true;
    this.outbox.flush();
    this.socket.end(lastFrame);
    // Closed with unread bytes, the kernel would send a reset, and the last word might never be read: what still
    // comes is read and dropped, for a while.
    const timer = setTimeout(() => this.socket.destroy(), LINGER_MS_MAX);
    this.socket.once("close", () => clearTimeout(timer));
    this.#owner.ended({ kind: "ours" });
  }

  #end(end: ConnectionEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reader.end();
    this.socket.destroy();
    this.#owner.ended(end);
  }
}

export function whyLost(end: Exclude<ConnectionEnd, { kind: "ours" }>): string {
  switch (end.kind) {
    case "eof":
      return "it ended the connection";
    case "reset":
      return "the connection was reset";
    case "failed":
      return `the connection failed (${end.error.code ?? end.error.message})`;
    default:
      return assertNever(end, "end of a connection");
  }
}
