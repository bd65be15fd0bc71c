// Leases that must not stay: of tries that were lost, given up or never answered, and of holds that were let go. Each
// is revoked in the background, and for sure before the next try: `settle` rejects while one of them may live.
// There are never many, because each try begins with settling.

import type { EtcdSession } from "./session.ts";

export class OwedLeases {
  readonly #session: EtcdSession;
  readonly #life: AbortSignal;
  readonly #owed = new Set<string>();

  constructor(session: EtcdSession, life: AbortSignal) {
    this.#session = session;
    this.#life = life;
  }

  owe(lease: string): void {
    this.#owed.add(lease);
    this.#pay(lease, this.#life).catch(() => undefined);
  }

  async settle(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#owed].map((lease) => this.#pay(lease, signal)));
  }

  async #pay(lease: string, signal: AbortSignal): Promise<void> {
    await this.#session.revoke(lease, signal);
    this.#owed.delete(lease);
  }
}
