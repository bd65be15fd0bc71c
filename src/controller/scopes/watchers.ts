// Those who wait for a scope to change, on any node: long polls. They look at applied state and are bounded in number.

import { TenureError } from "../../core/kit/errors.ts";
import { SCOPE_WATCHERS_TOTAL_MAX } from "./limits.ts";

interface Watcher {
  readonly isDue: () => boolean;
  readonly wake: () => void;
}

export class ScopeWatchers {
  readonly #byScope = new Map<string, Set<Watcher>>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  /** Resolves when `isDue` is true after a change of the scope, or when the signal aborts. */
  wait(scope: string, isDue: () => boolean, signal: AbortSignal): Promise<void> {
    if (isDue() || signal.aborted) return Promise.resolve();
    if (this.#total >= SCOPE_WATCHERS_TOTAL_MAX) {
      const message = `${SCOPE_WATCHERS_TOTAL_MAX} requests wait for a scope to change on this node; retry in a moment, or ask another node`;
      return Promise.reject(new TenureError("OVERLOADED", message));
    }
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        if (this.#remove(scope, watcher)) resolve();
      };
      const watcher: Watcher = { isDue, wake };
      signal.addEventListener("abort", wake, { once: true });
      this.#add(scope, watcher);
    });
  }

  changed(scope: string): void {
    for (const watcher of this.#byScope.get(scope) ?? []) if (watcher.isDue()) watcher.wake();
  }

  /** Any of them may have changed. */
  allChanged(): void {
    for (const scope of this.#byScope.keys()) this.changed(scope);
  }

  close(): void {
    for (const watchers of this.#byScope.values()) for (const watcher of watchers) watcher.wake();
  }

  #add(scope: string, watcher: Watcher): void {
    const watchers = this.#byScope.get(scope) ?? new Set();
    watchers.add(watcher);
    this.#byScope.set(scope, watchers);
    this.#total++;
  }

  #remove(scope: string, watcher: Watcher): boolean {
    const watchers = this.#byScope.get(scope);
    if (watchers?.delete(watcher) !== true) return false;
    this.#total--;
    if (watchers.size === 0) this.#byScope.delete(scope);
    return true;
  }
}
