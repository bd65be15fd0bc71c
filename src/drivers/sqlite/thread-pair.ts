// One file of SQLite and its two threads: one writes, one reads. Two, because Node's SQLite can't be interrupted: with one, a put would
// wait for whatever is being searched.
//
//   made ──opened()──▶ open ──damage is read──▶ being replaced ──opened()──▶ open
//     └──────────────────┴──close──▶ closed
//
// A file that can't be used is moved aside by the thread that writes (writer.ts); the reader opens the new one, and whoever feeds it is
// notified.

import { TenureError } from "../../core/kit/errors.ts";
import type { Logger } from "../../ports/logger.ts";
import { VIEWS_CLOSE_MS_MAX } from "./limits.ts";
import { ReadQueue } from "./read-queue.ts";
import { Thread, type ThreadOptions } from "./thread.ts";

export interface PairOptions {
  /** Of the file; `-wal`, `-shm` and files that were moved aside are next to it. */
  readonly path: string;
  /** A file of another cluster is moved aside. */
  readonly clusterId: string;
  readonly logger: Logger;
  /** What was kept is gone, or the writer died: ask for the position and feed from there. */
  readonly onReset?: (() => void) | undefined;
}

interface Names {
  readonly writer: ThreadOptions["name"];
  readonly reader: ThreadOptions["name"];
  /** For the log: "the views". */
  readonly file: string;
}

type Closing = { readonly kind: "close" };
type Writing = { readonly kind: "discard"; readonly reason: string } | Closing;
type Reading = { readonly kind: "reopen" } | Closing;

export class ThreadPair<
  W extends { readonly kind: string },
  WA extends Record<W["kind"], unknown>,
  R extends { readonly kind: string; readonly query?: unknown },
  RA extends Record<R["kind"], unknown>,
> {
  readonly writer: Thread<W | Writing, WA & Record<Writing["kind"], unknown>>;
  readonly #reader: Thread<R | Reading, RA & Record<Reading["kind"], unknown>>;
  readonly #reads: ReadQueue<R, RA>;
  readonly #options: PairOptions;
  readonly #names: Names;
  readonly #resets: (() => void)[] = [];
  #isOpen = false;
  #closed: Promise<void> | null = null;

  constructor(names: Names, options: PairOptions) {
    const { path, clusterId, logger, onReset } = options;
    const common = { store: { path, clusterId }, logger };
    this.#options = options;
    this.#names = names;
    if (onReset !== undefined) this.#resets.push(onReset);
    this.writer = new Thread({
      ...common,
      name: names.writer,
      onReplaced: (aside, reason) => this.#onReplaced(aside, reason),
      onRestarted: () => this.#reset(),
    });
    this.#reader = new Thread({
      ...common,
      name: names.reader,
      onReplaced: () => undefined,
      onRestarted: () => undefined,
    });
    this.#reads = new ReadQueue<R, RA>(this.#reader as unknown as Thread<R, RA>);
  }

  get readsWaiting(): number {
    return this.#reads.waiting;
  }

  get restarts(): number {
    return this.writer.restarts + this.#reader.restarts;
  }

  /** The writer has said its position. */
  opened(): void {
    this.#isOpen = true;
  }

  /** Resolves on a full disk too: the server has to start, and puts are refused until there is room. `position` opens the file. */
  async open(position: () => Promise<number>): Promise<void> {
    const { logger, path } = this.#options;
    try {
      await position();
    } catch (error) {
      if (TenureError.is(error) && error.code === "DISK_FULL") return logger.error({ path }, error.message);
      await this.close(() => Promise.resolve());
      throw error;
    }
  }

  /** As `onReset` of the options, from now on. */
  onReset(listener: () => void): void {
    this.#resets.push(listener);
  }

  async read<K extends R["kind"]>(request: Extract<R, { kind: K }>): Promise<RA[K]> {
    try {
      return await this.#reads.ask(request);
    } catch (error) {
      if (TenureError.is(error) && error.code === "DISK_DAMAGED") this.#discard(error.message);
      throw error;
    }
  }

  /** `idle`: until all puts are stored or refused. Safe to call twice. */
  close(idle: () => Promise<void>): Promise<void> {
    this.#closed ??= this.#close(idle);
    return this.#closed;
  }

  async #close(idle: () => Promise<void>): Promise<void> {
    const close = { kind: "close" } as const;
    const drained = idle()
      // The reader first: the last connection that is closed tidies up the WAL.
      .then(() => this.#reader.close(close as never).catch(() => undefined))
      .then(() => this.writer.close(close as never))
      .catch(() => undefined);
    const { promise: late, resolve: isLate } = Promise.withResolvers<void>();
    const timer = setTimeout(isLate, VIEWS_CLOSE_MS_MAX);
    await Promise.race([drained, late]);
    clearTimeout(timer);
    await Promise.all([this.#reader.end(), this.writer.end()]);
  }

  /** The reader has come upon damage before the writer did. */
  #discard(reason: string): void {
    if (!this.#isOpen) return;
    // So that reads that wait behind this one and find the same do not discard the new file too.
    this.#isOpen = false;
    this.writer.ask({ kind: "discard", reason } as never).catch(() => undefined);
  }

  #onReplaced(aside: string | null, reason: string): void {
    const { logger, path } = this.#options;
    const { file } = this.#names;
    if (this.#reader.isStarted) this.#reader.ask({ kind: "reopen" } as never).catch(() => undefined);
    if (aside === null) {
      logger.warn({ path, reason }, `${file} file was removed and is built anew`);
      return;
    }
    logger.error({ path, aside, reason }, `${file} file was moved aside and is built anew from snapshot and archive`);
    this.#reset();
  }

  #reset(): void {
    for (const listener of this.#resets) listener();
  }
}
