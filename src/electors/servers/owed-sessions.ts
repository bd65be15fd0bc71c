// Sessions that must not hold the scope: of campaigns that were given up or never answered, and of holds that were let go.
// Each is resigned in the background, and for sure before the next campaign, so that we never wait for ourselves: `settle`
// rejects while one of them may hold. What a request does that arrives later still, the TTL ends.
// There are never many, because each campaign begins with settling.

import type { ScopesClient } from "./scopes-client.ts";

export class OwedSessions {
  readonly #scopes: ScopesClient;
  readonly #identity: string;
  readonly #life: AbortSignal;
  /** The epoch that it held; null where its grant, if there was one, was never heard of. */
  readonly #owed = new Map<string, number | null>();

  constructor(scopes: ScopesClient, identity: string, life: AbortSignal) {
    this.#scopes = scopes;
    this.#identity = identity;
    this.#life = life;
  }

  owe(session: string, epoch: number | null): void {
    this.#owed.set(session, epoch);
    this.#pay(session, epoch, this.#life).catch(() => undefined);
  }

  async settle(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#owed].map(([session, epoch]) => this.#pay(session, epoch, signal)));
  }

  async #pay(session: string, epoch: number | null, signal: AbortSignal): Promise<void> {
    const held = epoch ?? (await this.#epochOfOurs(signal));
    // Another session's hold is not touched by this, although it may have our identity: the server compares sessions.
    if (held !== null) await this.#scopes.resign(session, held, signal);
    this.#owed.delete(session);
  }

  async #epochOfOurs(signal: AbortSignal): Promise<number | null> {
    const { leader } = await this.#scopes.read(signal);
    return leader?.identity === this.#identity ? leader.epoch : null;
  }
}
