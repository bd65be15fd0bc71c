// The puts that wait, on the main thread: each is cut into pieces that the writer takes one by one.
//
// The main thread never works on it for longer than TURN_MS_MAX at a stretch, and never has more than IN_FLIGHT_BYTES_MAX
// under way to the writer: past that it waits, and so do the promises of the puts. Whoever does not wait for them and puts
// on is refused at PUTS_WAITING_MAX.
//
// A put that was refused leaves a hole: the ones behind it are refused too, until the position has been asked for (writer.ts).

import type { Job } from "../../core/jobs/model.ts";
import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { JobLog, PutHow } from "../../ports/views.ts";
import { IN_FLIGHT_BYTES_MAX, PIECE_BYTES_MAX, PIECE_ROWS_MAX, PUTS_WAITING_MAX, TURN_MS_MAX } from "./limits.ts";
import type { PutPiece, WriterRequest } from "./messages.ts";
import type { Thread } from "./thread.ts";

/** What a row costs beside its text, about. */
const ROW_BYTES = 64;

interface Put extends Pick<PutPiece, "position" | "line" | "isPast" | "settles" | "logs" | "forgotten"> {
  readonly jobs: readonly Job[];
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  isRefused: boolean;
}

export class PutQueue {
  readonly #writer: Thread<WriterRequest>;
  readonly #queue: Put[] = [];
  #waiting = 0;
  #inFlightBytes = 0;
  #isPumping = false;
  #turnEndsAtMs = 0;
  #refusal: Error | null = null;
  #wakePump: (() => void) | null = null;
  #wakeIdle: (() => void)[] = [];

  constructor(writer: Thread<WriterRequest>) {
    this.#writer = writer;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  put(
    position: number,
    jobs: readonly Job[],
    logs: readonly JobLog[],
    forgotten: readonly string[],
    { line = null, isPast = false, settles = false }: PutHow = {},
  ): Promise<void> {
    assert(Number.isSafeInteger(position) && position >= 0, "a position is a whole number", () => String(position));
    if (this.#refusal === null && this.#waiting >= PUTS_WAITING_MAX) {
      this.#refusal = new TenureError(
        "OVERLOADED",
        `${PUTS_WAITING_MAX} puts wait for the views already: wait for them, then ask for the position and feed from there.`,
      );
    }
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    this.#waiting++;
    return new Promise<void>((resolve, reject) => {
      this.#queue.push({ position, line, isPast, settles, jobs, logs, forgotten, resolve, reject, isRefused: false });
      if (!this.#isPumping) void this.#pump();
    });
  }

  /** Behind everything that was put before. */
  async position(): Promise<number> {
    await this.idle();
    const position = await this.#writer.ask({ kind: "position" });
    this.#refusal = null;
    return position;
  }

  /** Until all puts so far are stored or refused. */
  async idle(): Promise<void> {
    if (this.#waiting === 0) return;
    await new Promise<void>((resolve) => this.#wakeIdle.push(resolve));
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    // What comes in the same turn goes over together.
    await turn();
    this.#newTurn();
    for (let put = this.#queue.shift(); put !== undefined; put = this.#queue.shift()) {
      // A put without rows never breathes by itself.
      if (performance.now() >= this.#turnEndsAtMs) await turn().then(() => this.#newTurn());
      await this.#send(put);
    }
    this.#isPumping = false;
  }

  async #send(put: Put): Promise<void> {
    let piece = emptyPiece(true);
    for (const job of put.jobs) {
      if (this.#isDue(piece)) piece = await this.#breathe(put, piece);
      if (put.isRefused) return;
      const json = JSON.stringify(job);
      piece.jobs.push(json);
      grow(piece, json.length);
    }
    for (const log of put.logs) {
      if (this.#isDue(piece)) piece = await this.#breathe(put, piece);
      if (put.isRefused) return;
      piece.logs.push(log);
      grow(piece, log.text.length);
    }
    for (const jobId of put.forgotten) {
      if (this.#isDue(piece)) piece = await this.#breathe(put, piece);
      if (put.isRefused) return;
      piece.forgotten.push(jobId);
      grow(piece, jobId.length);
    }
    this.#post(put, piece, true);
  }

  #isDue(piece: Piece): boolean {
    return isFull(piece) || this.#inFlightBytes >= IN_FLIGHT_BYTES_MAX || performance.now() >= this.#turnEndsAtMs;
  }

  /** Posts the piece if it is full, and waits until there is room and time for more. Returns the piece to go on with. */
  async #breathe(put: Put, piece: Piece): Promise<Piece> {
    const next = isFull(piece) ? emptyPiece(false) : piece;
    if (next !== piece) this.#post(put, piece, false);
    while (this.#inFlightBytes >= IN_FLIGHT_BYTES_MAX) {
      await new Promise<void>((resolve) => {
        this.#wakePump = resolve;
      });
    }
    if (performance.now() >= this.#turnEndsAtMs) await turn();
    this.#newTurn();
    return next;
  }

  #post(put: Put, piece: Piece, isLast: boolean): void {
    const { jobs, logs, forgotten, bytes, isFirst } = piece;
    const { position, line, isPast } = put;
    const settles = put.settles && isLast;
    const how = { line, isPast, settles };
    const message: PutPiece = { kind: "put", position, ...how, jobs, logs, forgotten, bytes, isFirst, isLast };
    this.#inFlightBytes += bytes;
    this.#writer.ask(message).then(
      () => {
        this.#taken(bytes);
        if (isLast) this.#settle(put, null);
      },
      (error: Error) => {
        this.#taken(bytes);
        this.#refusal ??= error;
        if (!put.isRefused) this.#settle(put, error);
      },
    );
  }

  #newTurn(): void {
    this.#turnEndsAtMs = performance.now() + TURN_MS_MAX;
  }

  #taken(bytes: number): void {
    this.#inFlightBytes -= bytes;
    const wake = this.#wakePump;
    this.#wakePump = null;
    wake?.();
  }

  #settle(put: Put, refusal: Error | null): void {
    this.#waiting--;
    put.isRefused = refusal !== null;
    if (refusal === null) put.resolve();
    else put.reject(refusal);
    if (this.#waiting > 0) return;
    for (const wake of this.#wakeIdle.splice(0)) wake();
  }
}

interface Piece {
  readonly isFirst: boolean;
  readonly jobs: string[];
  readonly logs: JobLog[];
  readonly forgotten: string[];
  rows: number;
  bytes: number;
}

function emptyPiece(isFirst: boolean): Piece {
  return { isFirst, jobs: [], logs: [], forgotten: [], rows: 0, bytes: 0 };
}

function grow(piece: Piece, length: number): void {
  piece.rows++;
  piece.bytes += length + ROW_BYTES;
}

function isFull(piece: Piece): boolean {
  return piece.bytes >= PIECE_BYTES_MAX || piece.rows >= PIECE_ROWS_MAX;
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
