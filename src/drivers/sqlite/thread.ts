// One thread of SQLite, seen from the main thread: requests go in, answers come back. A thread that dies takes what waits
// with it and is started again.
//
//   running ──dies──▶ running      at most RESTARTS_MAX times; a healthy minute forgives all of them
//      │     └──once too often──▶ failed    everything is refused
//      └──close──▶ closing ──▶ closed

import { Worker } from "node:worker_threads";
import { TenureError } from "../../core/kit/errors.ts";
import type { Logger } from "../../ports/logger.ts";
import { RESTARTS_FORGIVEN_MS, RESTARTS_MAX, THREAD_HEAP_MB_MAX } from "./limits.ts";
import type { Posted, StoreOptions, ThreadMessage } from "./messages.ts";

export interface ThreadOptions {
  readonly name: keyof typeof FILES;
  readonly store: StoreOptions;
  readonly logger: Logger;
  readonly onReplaced: (aside: string | null, reason: string) => void;
  readonly onRestarted: () => void;
}

interface Waiter {
  readonly resolve: (value: never) => void;
  readonly reject: (error: TenureError) => void;
}

type State = "running" | "failed" | "closing" | "closed";

const FILES = {
  writer: {
    source: new URL("./writer-thread.ts", import.meta.url),
    built: new URL("./writer-thread.js", import.meta.url),
  },
  reader: {
    source: new URL("./reader-thread.ts", import.meta.url),
    built: new URL("./reader-thread.js", import.meta.url),
  },
  "mesh-writer": {
    source: new URL("./mesh/writer-thread.ts", import.meta.url),
    built: new URL("./mesh/writer-thread.js", import.meta.url),
  },
  "mesh-reader": {
    source: new URL("./mesh/reader-thread.ts", import.meta.url),
    built: new URL("./mesh/reader-thread.js", import.meta.url),
  },
};

export class Thread<R extends { readonly kind: string }, A extends Record<R["kind"], unknown>> {
  readonly #options: ThreadOptions;
  readonly #waiters = new Map<number, Waiter>();
  /** Started by its first request: a node that nobody asks has no reader. */
  #worker: Worker | null = null;
  #state: State = "running";
  #nextId = 1;
  #restarts = 0;
  #restartedAtMs = 0;

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get isStarted(): boolean {
    return this.#worker !== null;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** `transfer`: buffers of the request that are handed over and not copied. */
  ask<K extends R["kind"]>(request: Extract<R, { kind: K }>, transfer: readonly ArrayBuffer[] = []): Promise<A[K]> {
    if (this.#state !== "running") return Promise.reject(this.#gone());
    const id = this.#nextId++;
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise<A[K]>((resolve, reject) => {
      this.#waiters.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, request } satisfies Posted<R>, transfer);
    });
  }

  /** The request to close: the thread ends by itself after it. */
  async close(request: Extract<R, { kind: "close" }>): Promise<void> {
    const answer = this.#worker === null ? null : this.ask(request);
    this.#state = "closing";
    await answer;
  }

  /** At once; what waits is refused. */
  async end(): Promise<void> {
    this.#state = "closed";
    this.#refuseAll(this.#gone());
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const { name, store } = this.#options;
    const file = import.meta.url.endsWith(".ts") ? FILES[name].source : FILES[name].built;
    const worker = new Worker(file, {
      name: `views-${name}`,
      workerData: store,
      resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB_MAX },
    });
    let cause: unknown;
    worker.on("message", (message: ThreadMessage) => this.#onMessage(message));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => this.#onExit(worker, cause));
    // Only what waits keeps a process alive.
    worker.unref();
    return worker;
  }

  #onMessage(message: ThreadMessage): void {
    if (message.kind === "replaced") {
      this.#options.onReplaced(message.aside, message.reason);
      return;
    }
    const waiter = this.#waiters.get(message.id);
    if (waiter === undefined) return;
    this.#waiters.delete(message.id);
    if (this.#waiters.size === 0) this.#worker?.unref();
    if (message.kind === "answer") waiter.resolve(message.value as never);
    else waiter.reject(new TenureError(message.code, message.message));
  }

  #onExit(worker: Worker, cause: unknown): void {
    if (worker !== this.#worker) return;
    if (this.#state === "closing") this.#refuseAll(this.#gone());
    if (this.#state !== "running") return;
    const { name, logger } = this.#options;
    const why = cause instanceof Error ? (cause.stack ?? cause.message) : "no reason given";
    const nowMs = performance.now();
    if (nowMs - this.#restartedAtMs > RESTARTS_FORGIVEN_MS) this.#restarts = 0;
    this.#restartedAtMs = nowMs;
    if (this.#restarts >= RESTARTS_MAX) {
      this.#state = "failed";
      logger.error(
        { thread: name, why, restarts: this.#restarts },
        "a thread of the views died too often: it stays down",
      );
    } else {
      this.#restarts++;
      this.#worker = this.#start();
      logger.error({ thread: name, why, restarts: this.#restarts }, "a thread of the views died and was started again");
    }
    const again = this.#state === "running" ? "It was started again." : "It died too often: restart this server.";
    this.#refuseAll(new TenureError("BACKEND_UNAVAILABLE", `the views' ${name} died: ${why}. ${again}`, { cause }));
    if (this.#state === "running") this.#options.onRestarted();
  }

  #refuseAll(error: TenureError): void {
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.reject(error);
  }

  #gone(): TenureError {
    const why = this.#state === "failed" ? "died too often: restart this server" : "were closed";
    return new TenureError("BACKEND_UNAVAILABLE", `the views ${why}.`);
  }
}
