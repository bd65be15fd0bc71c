// The small load of `npm start`: one client that takes a scope and lets it go again, some twenty times a second, and says
// how long writes stood still after something was done to the leader: from then to the next write that was acknowledged.

import { setTimeout as sleep } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { TenureError } from "../core/kit/errors.ts";
import { type Client, createClient } from "../client/index.ts";

const SCOPE = "npm-start";
const EVERY_MS = 40;
const RETRY_MS = 5;
/** On one machine a server that says nothing for so long is frozen. */
const ATTEMPT_MS = 100;
const CALL_LIMIT_MS = 5_000;
const TTL_MS = 5_000;

export class DevLoad {
  acknowledged = 0;
  readonly #client: Client;
  readonly #resumed: (what: string, afterMs: number) => void;
  /** One for its whole life: a grant whose answer was lost is given again. */
  readonly #session = randomUUID();
  #wound: { readonly what: string; readonly atMs: number } | null = null;

  constructor(urls: readonly string[], key: string, resumed: (what: string, afterMs: number) => void) {
    this.#client = createClient({ urls, key, timeoutMs: CALL_LIMIT_MS });
    this.#resumed = resumed;
  }

  /** Something was done to the leader just now. What is known already is not counted from a later moment. */
  mark(what: string): void {
    this.#wound ??= { what, atMs: performance.now() };
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const sentMs = performance.now();
      const isDone = await this.#write(signal).catch((error: unknown) => {
        // A server that starts, stops or is frozen: that is what this demonstration is about.
        if (signal.aborted || TenureError.is(error)) return false;
        throw error;
      });
      if (isDone) this.#acknowledge(sentMs);
      await sleep(isDone ? EVERY_MS : RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #write(signal: AbortSignal): Promise<boolean> {
    const request = { scope: SCOPE, session: this.#session, identity: "npm start", ttlMs: TTL_MS, waitMs: 0 };
    const options = { signal, attemptMs: ATTEMPT_MS };
    const grant = await this.#client.scopes.acquire(request, options);
    if (!grant.granted) return false;
    await this.#client.scopes.resign({ scope: SCOPE, session: this.#session, epoch: grant.epoch }, options);
    return true;
  }

  /** A write that was sent before it says nothing about what came after. */
  #acknowledge(sentMs: number): void {
    this.acknowledged++;
    const wound = this.#wound;
    if (wound === null || sentMs < wound.atMs) return;
    this.#wound = null;
    this.#resumed(wound.what, performance.now() - wound.atMs);
  }
}
