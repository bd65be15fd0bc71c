// Those who wait for values to change, on any node. They look at applied state and are bounded in number.

import { TenureError } from "../../core/kit/errors.ts";
import { VALUE_WATCHERS_MAX } from "./limits.ts";

interface Watcher {
  readonly prefix: string;
  /** `through`: up to this version there is nothing for it. */
  readonly wake: (through: number) => void;
}

export class ValueWatchers {
  readonly #watchers = new Set<Watcher>();
  #isClosed = false;
  /** Whoever still waits has missed no change up to this version. */
  #through = 0;

  get total(): number {
    return this.#watchers.size;
  }

  /** Resolves at a change of a name with this prefix, when the signal aborts, or when the node stops; at once where `isDue`. */
  wait(prefix: string, after: number, isDue: boolean, signal: AbortSignal): Promise<number> {
    if (isDue || signal.aborted || this.#isClosed) return Promise.resolve(after);
    if (this.#watchers.size >= VALUE_WATCHERS_MAX) {
      const message = `${VALUE_WATCHERS_MAX} requests wait for values to change on this node; retry in a moment, or ask another node`;
      return Promise.reject(new TenureError("OVERLOADED", message));
    }
    return new Promise((resolve) => {
      const wake = (through: number): void => {
        signal.removeEventListener("abort", abort);
        this.#watchers.delete(watcher);
        resolve(Math.max(after, through));
      };
      // Others' changes may have pushed out what comes after `after`.
      const abort = (): void => wake(this.#through);
      const watcher: Watcher = { prefix, wake };
      signal.addEventListener("abort", abort, { once: true });
      this.#watchers.add(watcher);
    });
  }

  /** `before`: the version before this change. */
  changed(name: string, before: number): void {
    for (const watcher of this.#watchers) if (name.startsWith(watcher.prefix)) watcher.wake(before);
    this.#through = before + 1;
  }

  /** Any of them may have changed, and nothing is known of when. */
  allChanged(): void {
    for (const watcher of this.#watchers) watcher.wake(0);
  }

  close(): void {
    this.#isClosed = true;
    this.allChanged();
  }
}
