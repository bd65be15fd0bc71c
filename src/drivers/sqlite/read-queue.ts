// Reads of the views on their way to the thread that answers them: a few are posted at a time, so that the thread always has
// its next one, and the others wait here, where they can still be shared, ordered and given up.
//
//   waiting ──its turn──▶ posted ──▶ answered
//      └──WAIT_MS_MAX, or more than WAITING_MAX──▶ refused (OVERLOADED)
//
// Invariants:
// - In order of arrival, in two lanes that take turns: a read of one job never waits for all the searches before it.
// - A page that many ask for while it waits is read once, for all of them: it is read after each of them asked, so none is
//   shown anything older than it would have been. One that is posted already is not joined.
// - Nobody waits longer than the bound in time, whatever the thread does.

import { TenureError } from "../../core/kit/errors.ts";
import { READS_POSTED_MAX, READS_WAITING_MAX, READ_WAIT_MS_MAX } from "./limits.ts";

/** A page is of the kind `list`, and what it depends on is its `query`. */
interface Request {
  readonly kind: string;
  readonly query?: unknown;
}

/** What is needed of the thread. */
export interface ReadThread<R extends Request, A extends Record<R["kind"], unknown>> {
  ask<K extends R["kind"]>(request: Extract<R, { kind: K }>): Promise<A[K]>;
}

interface Waiter {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
}

interface Read {
  readonly request: Request;
  /** Null: it is nobody else's. */
  readonly key: string | null;
  readonly atMs: number;
  readonly waiters: Waiter[];
}

class Lane {
  #reads: Read[] = [];
  #next = 0;

  get first(): Read | undefined {
    return this.#reads[this.#next];
  }

  push(read: Read): void {
    this.#reads.push(read);
  }

  shift(): Read | undefined {
    const read = this.#reads[this.#next];
    if (read === undefined) return undefined;
    this.#next++;
    if (this.#next > this.#reads.length / 2) {
      this.#reads = this.#reads.slice(this.#next);
      this.#next = 0;
    }
    return read;
  }
}

export class ReadQueue<R extends Request, A extends Record<R["kind"], unknown>> {
  readonly #thread: ReadThread<R, A>;
  readonly #nowMs: () => number;
  readonly #quick = new Lane();
  readonly #pages = new Lane();
  readonly #shared = new Map<string, Read>();
  #isPagesTurn = false;
  #waiting = 0;
  #posted = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(thread: ReadThread<R, A>, nowMs: () => number = () => performance.now()) {
    this.#thread = thread;
    this.#nowMs = nowMs;
  }

  /** Callers that wait, posted or not. */
  get waiting(): number {
    return this.#waiting;
  }

  ask<K extends R["kind"]>(request: Extract<R, { kind: K }>): Promise<A[K]> {
    this.#giveUp();
    if (this.#waiting >= READS_WAITING_MAX) {
      const text = `${READS_WAITING_MAX} reads wait for the views already. Try again later.`;
      return Promise.reject(new TenureError("OVERLOADED", text));
    }
    return new Promise<A[K]>((resolve, reject) => {
      this.#waiting++;
      this.#add(request, { resolve, reject });
      this.#pump();
    });
  }

  #add(request: Request, waiter: Waiter): void {
    const key = request.kind === "list" ? JSON.stringify(request.query) : null;
    const same = key === null ? undefined : this.#shared.get(key);
    if (same !== undefined) return void same.waiters.push(waiter);
    const read: Read = { request, key, atMs: this.#nowMs(), waiters: [waiter] };
    if (key !== null) this.#shared.set(key, read);
    (request.kind === "list" ? this.#pages : this.#quick).push(read);
  }

  #pump(): void {
    while (this.#posted < READS_POSTED_MAX) {
      const read = this.#take();
      if (read === undefined) break;
      this.#posted++;
      const settled = (settle: (waiter: Waiter) => void): void => {
        this.#posted--;
        this.#settle(read, settle);
        this.#pump();
      };
      this.#thread.ask(read.request as Extract<R, { kind: R["kind"] }>).then(
        (answer) => settled(({ resolve }) => resolve(answer as never)),
        (error: unknown) => settled(({ reject }) => reject(error)),
      );
    }
    this.#arm();
  }

  #take(): Read | undefined {
    this.#isPagesTurn = !this.#isPagesTurn;
    const lanes = this.#isPagesTurn ? [this.#pages, this.#quick] : [this.#quick, this.#pages];
    const read = lanes[0]!.shift() ?? lanes[1]!.shift();
    // Whoever comes from now on may have to see more than it will.
    if (read !== undefined) this.#unshare(read);
    return read;
  }

  #unshare({ key }: Read): void {
    if (key !== null) this.#shared.delete(key);
  }

  #settle({ waiters }: Read, settle: (waiter: Waiter) => void): void {
    this.#waiting -= waiters.length;
    for (const waiter of waiters) settle(waiter);
  }

  /** Those that have waited for too long; in each lane the first has waited for longest. */
  #giveUp(): void {
    const sinceMs = this.#nowMs() - READ_WAIT_MS_MAX;
    for (const lane of [this.#quick, this.#pages]) {
      while (lane.first !== undefined && lane.first.atMs <= sinceMs) {
        const read = lane.shift()!;
        this.#unshare(read);
        const text = `This read has waited for ${READ_WAIT_MS_MAX} ms for others before it. Retry later, or ask another node.`;
        this.#settle(read, ({ reject }) => reject(new TenureError("OVERLOADED", text)));
      }
    }
  }

  #arm(): void {
    const oldestMs = Math.min(this.#quick.first?.atMs ?? Infinity, this.#pages.first?.atMs ?? Infinity);
    if (oldestMs === Infinity || this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#giveUp();
        this.#arm();
      },
      Math.max(1, oldestMs + READ_WAIT_MS_MAX - this.#nowMs()),
    );
    this.#timer.unref();
  }
}
