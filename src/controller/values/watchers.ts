// Those who wait for values to change, on any node. They look at applied state and are bounded in number.

import { TenureError } from "../../core/kit/errors.ts";
import { VALUE_WATCHERS_MAX } from "./limits.ts";

interface Watcher {
  readonly prefix: string;
  readonly isDue: () => boolean;
  readonly wake: () => void;
}

export class ValueWatchers {
  readonly #watchers = new Set<Watcher>();
  #isClosed = false;

  get total(): number {
    return this.#watchers.size;
  }

  /** Resolves when `isDue` is true after a change of a name with this prefix, when the signal aborts, or when the node stops. */
  wait(prefix: string, isDue: () => boolean, signal: AbortSignal): Promise<void> {
    if (isDue() || signal.aborted || this.#isClosed) return Promise.resolve();
    if (this.#watchers.size >= VALUE_WATCHERS_MAX) {
      const message = `${VALUE_WATCHERS_MAX} requests wait for values to change on this node; retry in a moment, or ask another node`;
      return Promise.reject(new TenureError("OVERLOADED", message));
    }
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        this.#watchers.delete(watcher);
        resolve();
      };
      const watcher: Watcher = { prefix, isDue, wake };
      signal.addEventListener("abort", wake, { once: true });
      this.#watchers.add(watcher);
    });
  }

  changed(name: string): void {
    for (const watcher of this.#watchers) if (name.startsWith(watcher.prefix) && watcher.isDue()) watcher.wake();
  }

  /** Any of them may have changed. */
  allChanged(): void {
    for (const watcher of this.#watchers) if (watcher.isDue()) watcher.wake();
  }

  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#watchers) watcher.wake();
  }
}
