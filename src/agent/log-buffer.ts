// What one attempt prints, until the cluster has it: chunks with the byte offset at which each begins, in order. Pure.
//
// Invariants: chunks are taken from the front, sent, and dropped only when they are confirmed, so one that is sent again has the
// same offset and text, unless the cluster's log ends before it; what waits is at most LOG_BUFFER_BYTES_MAX, and what does not fit is left out with a line that says so.

import { LOG_CHUNK_BYTES_MAX } from "../core/kit/limits.ts";
import type { LogChunk } from "../ports/jobs.ts";
import { LOG_BUFFER_BYTES_HIGH, LOG_BUFFER_BYTES_MAX, LOG_CHUNK_UNITS_MAX } from "./limits.ts";

interface Chunk extends LogChunk {
  readonly bytes: number;
}

export class LogBuffer {
  readonly #chunks: Chunk[] = [];
  /** Printed since the last chunk was cut. */
  #open = "";
  #openBytes = 0;
  #waitingBytes = 0;
  #endOffset = 0;
  #droppedBytes = 0;
  #waiters: (() => void)[] = [];

  get isEmpty(): boolean {
    return this.#chunks.length === 0 && this.#open === "" && this.#droppedBytes === 0;
  }

  /** Half of it is free. */
  get hasRoom(): boolean {
    return this.#waitingBytes <= LOG_BUFFER_BYTES_HIGH;
  }

  /** Resolves when it has room, or when nobody takes any of it any more. */
  room(): Promise<void> {
    return this.hasRoom ? Promise.resolve() : new Promise((resolve) => void this.#waiters.push(resolve));
  }

  release(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }

  write(text: string): void {
    const whole = text.toWellFormed();
    if (whole === "") return;
    const bytes = utf8Bytes(whole);
    if (this.#waitingBytes + bytes > LOG_BUFFER_BYTES_MAX) {
      this.#droppedBytes += bytes;
      return;
    }
    this.#noteDropped();
    this.#append(whole, bytes);
  }

  /** The next ones, oldest first, of at most so many bytes together; the first always. They stay until `confirm`. */
  take(bytesMax: number): readonly LogChunk[] {
    this.#noteDropped();
    this.#cut();
    const taken: LogChunk[] = [];
    let bytes = 0;
    for (const chunk of this.#chunks) {
      bytes += chunk.bytes;
      if (taken.length > 0 && bytes > bytesMax) break;
      taken.push({ offset: chunk.offset, text: chunk.text });
    }
    return taken;
  }

  /**
   * These were answered: with where the log ended after the first of them, or null. An end before it says that something in
   * front of it never arrived (it was refused, for instance): all that waits goes on from there, or it would be refused for
   * ever. Otherwise they are taken, or not wanted: that they go out again would change nothing.
   */
  answered(chunks: readonly LogChunk[], end: number | null): void {
    const first = chunks[0]?.offset ?? 0;
    if (end === null || end >= first) return this.confirm(chunks);
    const by = end - first;
    for (const [at, chunk] of this.#chunks.entries()) this.#chunks[at] = { ...chunk, offset: chunk.offset + by };
    this.#endOffset += by;
  }

  /** The cluster has these. */
  confirm(chunks: readonly LogChunk[]): void {
    const last = chunks.at(-1)?.offset ?? -1;
    const left = this.#chunks.findIndex(({ offset }) => offset > last);
    const gone = this.#chunks.splice(0, left === -1 ? this.#chunks.length : left);
    for (const { bytes } of gone) this.#waitingBytes -= bytes;
    if (this.hasRoom) this.release();
  }

  /** As soon as there is room for it, also where nothing is printed after it. */
  #noteDropped(): void {
    if (this.#droppedBytes === 0) return;
    const note = `\n[${this.#droppedBytes} bytes left out: the cluster did not take the log fast enough]\n`;
    if (this.#waitingBytes + note.length > LOG_BUFFER_BYTES_MAX) return;
    this.#droppedBytes = 0;
    this.#append(note, note.length);
  }

  #append(text: string, bytes: number): void {
    this.#open += text;
    this.#openBytes += bytes;
    this.#waitingBytes += bytes;
    if (this.#openBytes >= LOG_CHUNK_BYTES_MAX) this.#cut();
  }

  #cut(): void {
    for (let at = 0; at < this.#open.length;) {
      let end = Math.min(this.#open.length, at + LOG_CHUNK_UNITS_MAX);
      // A pair of surrogates is one character.
      if (end < this.#open.length && isLow(this.#open.charCodeAt(end))) end--;
      const text = this.#open.slice(at, end);
      const bytes = utf8Bytes(text);
      this.#chunks.push({ offset: this.#endOffset, text, bytes });
      this.#endOffset += bytes;
      at = end;
    }
    this.#open = "";
    this.#openBytes = 0;
  }
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Of well-formed text. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    // Each half of a pair counts two of its four bytes.
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
  }
  return bytes;
}
