// How much room the disk has, and what becomes of a write that finds none.
//
//   ok ◀──▶ low     free space below `minFreeBytes`; looked up about once a second
//    ▲       ▲
//    └─▶ full ◀     a write waits for room
//
// A write that finds no room has changed nothing and is tried again until it gets through: to the engine that is a
// disk that hangs, which ends its leadership (trap 30) and leaves it up for reads. A failed sync is no such case: what
// it lost is not known, so it is never tried again (trap 23).

import { TenureError } from "../../core/kit/errors.ts";
import { errorCode, type DiskIo } from "./io.ts";
import { SPACE_CHECK_MS, SPACE_RETRY_MS } from "./limits.ts";

export type SpaceState = "ok" | "low" | "full";

const NO_ROOM = ["ENOSPC", "EDQUOT"];

export class Space {
  readonly #io: DiskIo;
  readonly #path: string;
  readonly #minFreeBytes: number;
  readonly #listeners = new Set<(state: SpaceState) => void>();
  #freeBytes: number | null = null;
  #waiting = 0;
  #state: SpaceState = "ok";
  #isClosed = false;
  #lookTimer: NodeJS.Timeout | undefined;
  /** Of the writes that wait: ends their pause at once. */
  readonly #wake = new Set<() => void>();

  constructor(io: DiskIo, path: string, minFreeBytes: number) {
    this.#io = io;
    this.#path = path;
    this.#minFreeBytes = minFreeBytes;
  }

  get state(): SpaceState {
    return this.#state;
  }

  get freeBytes(): number | null {
    return this.#freeBytes;
  }

  onChange(listener: (state: SpaceState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Looks now, and from now on about once a second; a look that hangs is not followed by another. */
  async watch(): Promise<void> {
    try {
      this.#freeBytes = await this.#io.freeBytes(this.#path);
    } catch {
      // Not known is not the same as none: writes find out by themselves.
      this.#freeBytes = null;
    }
    if (this.#isClosed) return;
    this.#judge();
    this.#lookTimer = setTimeout(() => void this.watch(), SPACE_CHECK_MS);
    this.#lookTimer.unref();
  }

  /** Does it as soon as there is room; `undo` takes back what an attempt has left behind. */
  async whenRoom<T>(operation: () => Promise<T>, undo?: () => Promise<void>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      if (!isNoRoom(error)) throw error;
    }
    this.#waiting++;
    this.#judge();
    try {
      return await this.#again(operation, undo);
    } finally {
      this.#waiting--;
      this.#judge();
    }
  }

  async #again<T>(operation: () => Promise<T>, undo?: () => Promise<void>): Promise<T> {
    for (;;) {
      await undo?.();
      await this.#pause();
      try {
        return await operation();
      } catch (error) {
        if (!isNoRoom(error)) throw error;
      }
    }
  }

  /** Writes that wait are given up. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#lookTimer);
    for (const wake of this.#wake) wake();
  }

  async #pause(): Promise<void> {
    if (!this.#isClosed) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, SPACE_RETRY_MS);
      this.#wake.add(resolve);
      await promise;
      this.#wake.delete(resolve);
      clearTimeout(timer);
    }
    if (this.#isClosed) {
      throw new TenureError("DISK_FULL", `${this.#path} has no room left, and was closed while a write waited for it.`);
    }
  }

  #judge(): void {
    const isLow = this.#freeBytes !== null && this.#freeBytes < this.#minFreeBytes;
    const state = this.#waiting > 0 ? "full" : isLow ? "low" : "ok";
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener(state);
  }
}

export function isNoRoom(error: unknown): boolean {
  return NO_ROOM.includes(errorCode(error));
}
