// The puts that wait, on the main thread: each is cut into pieces that the writer takes one by one.
//
// The main thread never works on it for longer than TURN_MS_MAX at a stretch, and never has more than IN_FLIGHT_BYTES_MAX
// under way to the writer: past that it waits, and so do the promises of the puts. Whoever does not wait for them and puts
// on is refused at PUTS_WAITING_MAX.
//
// A put that was refused leaves a hole: the ones behind it are refused too, until the position has been asked for (writer.ts).

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { IN_FLIGHT_BYTES_MAX, PIECE_BYTES_MAX, PIECE_ROWS_MAX, PUTS_WAITING_MAX, TURN_MS_MAX } from "./limits.ts";
import type { Piece } from "./messages.ts";

/** What a row costs next to its text, about. */
const ROW_BYTES = 64;

/** What is needed of the thread that writes. */
export interface WriterThread<P extends Piece> {
  position(): Promise<number>;
  put(piece: P): Promise<unknown>;
}

/** What is put, taken apart on its way. */
export interface Load<P extends Piece, Cargo> {
  readonly position: number;
  /** Each adds one row to the piece that is being filled, and returns about how long it is. Converted one by one: it takes time. */
  readonly rows: Iterable<(cargo: Cargo) => number>;
  empty(): Cargo;
  pieceOf(cargo: Cargo, place: Pick<Piece, "bytes" | "isFirst" | "isLast">): P;
}

interface Put<P extends Piece, Cargo> {
  readonly load: Load<P, Cargo>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  isRefused: boolean;
}

interface Filling<Cargo> {
  readonly isFirst: boolean;
  readonly cargo: Cargo;
  rows: number;
  bytes: number;
}

export class PutQueue<P extends Piece, Cargo> {
  readonly #writer: WriterThread<P>;
  readonly #queue: Put<P, Cargo>[] = [];
  #waiting = 0;
  #inFlightBytes = 0;
  #isPumping = false;
  #turnEndsAtMs = 0;
  #refusal: Error | null = null;
  #wakePump: (() => void) | null = null;
  #wakeIdle: (() => void)[] = [];

  constructor(writer: WriterThread<P>) {
    this.#writer = writer;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  put(load: Load<P, Cargo>): Promise<void> {
    const { position } = load;
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
      this.#queue.push({ load, resolve, reject, isRefused: false });
      if (!this.#isPumping) void this.#pump();
    });
  }

  /** After everything that was put before. */
  async position(): Promise<number> {
    await this.idle();
    const position = await this.#writer.position();
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

  async #send(put: Put<P, Cargo>): Promise<void> {
    const { load } = put;
    let piece = newPiece(load.empty(), true);
    for (const add of load.rows) {
      if (this.#isDue(piece)) piece = await this.#breathe(put, piece);
      if (put.isRefused) return;
      piece.bytes += add(piece.cargo) + ROW_BYTES;
      piece.rows++;
    }
    this.#post(put, piece, true);
  }

  #isDue(piece: Filling<Cargo>): boolean {
    return isFull(piece) || this.#inFlightBytes >= IN_FLIGHT_BYTES_MAX || performance.now() >= this.#turnEndsAtMs;
  }

  /** Posts the piece if it is full, and waits until there is room and time for more. Returns the piece to go on with. */
  async #breathe(put: Put<P, Cargo>, piece: Filling<Cargo>): Promise<Filling<Cargo>> {
    const next = isFull(piece) ? newPiece(put.load.empty(), false) : piece;
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

  #post(put: Put<P, Cargo>, { cargo, bytes, isFirst }: Filling<Cargo>, isLast: boolean): void {
    this.#inFlightBytes += bytes;
    this.#writer.put(put.load.pieceOf(cargo, { bytes, isFirst, isLast })).then(
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

  #settle(put: Put<P, Cargo>, refusal: Error | null): void {
    this.#waiting--;
    put.isRefused = refusal !== null;
    if (refusal === null) put.resolve();
    else put.reject(refusal);
    if (this.#waiting > 0) return;
    for (const wake of this.#wakeIdle.splice(0)) wake();
  }
}

function newPiece<Cargo>(cargo: Cargo, isFirst: boolean): Filling<Cargo> {
  return { isFirst, cargo, rows: 0, bytes: 0 };
}

function isFull({ bytes, rows }: Filling<unknown>): boolean {
  return bytes >= PIECE_BYTES_MAX || rows >= PIECE_ROWS_MAX;
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
