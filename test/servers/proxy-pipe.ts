// One direction of a proxied connection: what one socket receives, in order, on its way to the other.
//
//   open ⇄ silent      what comes while it is silent stays in the queue
//
// Bytes, the end (FIN) and a break (RST) are all events in the queue, so that none overtakes another and a silent
// direction hides the death of the other end too.

import type { Socket } from "node:net";

type Passage =
  | { readonly kind: "bytes"; readonly bytes: Buffer; readonly dueMs: number }
  | { readonly kind: "end" | "break"; readonly dueMs: number };

/**
 * With a RST where that is possible: not for a connection that is not there yet, nor for one that was ended (libuv refuses,
 * and Node then never closes it), nor for one with bytes under way (Node would wait until a frozen peer takes them).
 */
export function breakOff(socket: Socket): void {
  if (socket.destroyed) return;
  const canReset =
    !socket.connecting && socket.remoteAddress !== undefined && !socket.writableEnded && socket.writableLength === 0;
  if (canReset) socket.resetAndDestroy();
  else socket.destroy();
}

export class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #delay: () => number;
  readonly #rewrite: (bytes: Buffer) => Buffer;
  readonly #queue: Passage[] = [];
  #silent = false;
  #isFull = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, delay: () => number, rewrite: (bytes: Buffer) => Buffer) {
    this.#from = from;
    this.#to = to;
    this.#delay = delay;
    this.#rewrite = rewrite;
    from.on("data", (bytes: Buffer) => this.#push({ kind: "bytes", bytes, dueMs: this.#due() }));
    from.once("end", () => this.#push({ kind: "end", dueMs: this.#due() }));
    from.once("error", () => this.#push({ kind: "break", dueMs: this.#due() }));
    // Later errors of a socket that is broken already say nothing new.
    from.on("error", () => undefined);
    to.once("close", () => clearTimeout(this.#timer));
  }

  silence(silent: boolean): void {
    this.#silent = silent;
    this.#pump();
  }

  #due(): number {
    return performance.now() + this.#delay();
  }

  #push(passage: Passage): void {
    this.#queue.push(passage);
    this.#pump();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let head = this.#queue[0]; head !== undefined && !this.#silent; head = this.#queue[0]) {
      const waitMs = head.dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#pump(), Math.ceil(waitMs));
        return;
      }
      this.#queue.shift();
      this.#pass(head);
    }
  }

  #pass(passage: Passage): void {
    if (this.#to.destroyed) return;
    if (passage.kind === "end") this.#to.end();
    if (passage.kind === "break") breakOff(this.#to);
    if (passage.kind !== "bytes" || this.#to.writableEnded) return;
    if (this.#to.write(this.#rewrite(passage.bytes))) return;
    // What was held back passes at once, and may find it full many times.
    if (this.#isFull) return;
    this.#isFull = true;
    this.#from.pause();
    this.#to.once("drain", () => {
      this.#isFull = false;
      this.#from.resume();
    });
  }
}
