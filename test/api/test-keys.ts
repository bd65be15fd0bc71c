// Keys in memory, as ports/keys.ts promises them.

import { TenureError } from "../../src/core/kit/errors.ts";
import type { Request } from "../../src/ports/jobs.ts";
import type { Keys, KeyView, NewKey } from "../../src/ports/keys.ts";
import type { TestCluster } from "./test-cluster.ts";

export class TestKeys implements Keys {
  readonly #cluster: TestCluster;
  readonly #keys = new Map<string, KeyView & { readonly sha256: string }>();

  readonly #listeners: (() => void)[] = [];

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  /** Arrives here as others made it. */
  apply(name: string, role: KeyView["role"], sha256: string): void {
    this.#keys.set(name, { name, role, sha256, createdAtMs: 1_700_000_000_000, createdBy: "the operator" });
  }

  fingerprint(): string {
    return JSON.stringify([...this.#keys]);
  }

  find(sha256: string): KeyView | null {
    return [...this.#keys.values()].find((key) => key.sha256 === sha256) ?? null;
  }

  list(): readonly KeyView[] {
    return [...this.#keys.values()].map(({ sha256: _hidden, ...key }) => key);
  }

  async create({ caller }: Request, { name, role, sha256 }: NewKey): Promise<KeyView> {
    this.#requireLeader();
    const known = this.#keys.get(name);
    if (known !== undefined ? known.sha256 !== sha256 || known.role !== role : this.find(sha256) !== null) {
      throw new TenureError("KEY_EXISTS", "There is another key of that name, or that key under another name.");
    }
    const key = { name, role, createdAtMs: 1_700_000_000_000, createdBy: caller };
    this.#keys.set(name, { ...key, sha256 });
    return key;
  }

  async revoke(_request: Request, name: string): Promise<void> {
    this.#requireLeader();
    if (!this.#keys.delete(name)) throw new TenureError("NOT_FOUND", `There is no key ${name}.`);
    for (const listener of this.#listeners) listener();
  }

  onRevoked(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #requireLeader(): void {
    if (this.#cluster.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
  }
}
