// The API keys of a site as its log has them: by name, and by the hash that a request is looked up with.

import { API_KEYS_MAX } from "../../core/kit/limits.ts";
import type { ApiRole } from "../../core/kit/api-role.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { StoredEvent } from "../../core/events/index.ts";
import type { KeyView } from "../../ports/keys.ts";
import type { Tenant } from "../journal/tenant.ts";

export interface StoredKey extends KeyView {
  readonly sha256: string;
}

/** Of `key:created`; the name is the entity's. */
interface Created {
  readonly role: ApiRole;
  readonly sha256: string;
  readonly by: string;
}

export class KeysFold implements Tenant {
  readonly name = "keys";
  readonly eventTypes = ["key:created", "key:revoked"] as const;
  readonly #byName = new Map<string, StoredKey>();
  readonly #byHash = new Map<string, StoredKey>();

  readonly #listeners: (() => void)[] = [];

  get size(): number {
    return this.#byName.size;
  }

  byName(name: string): StoredKey | undefined {
    return this.#byName.get(name);
  }

  byHash(sha256: string): StoredKey | undefined {
    return this.#byHash.get(sha256);
  }

  /** Called when keys have gone. */
  onDropped(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** By name. */
  all(): readonly StoredKey[] {
    return [...this.#byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  apply({ eventType, entityId: name, payload, timestamp }: StoredEvent): void {
    if (eventType === "key:revoked") return this.#drop(name);
    if (eventType !== "key:created" || this.size >= API_KEYS_MAX) return;
    const { role, sha256, by } = payload as unknown as Created;
    if (this.#byName.has(name) || this.#byHash.has(sha256)) return;
    this.#keep({ name, role, sha256, createdBy: by, createdAtMs: Math.floor(timestamp) });
  }

  snapshot(): string {
    return JSON.stringify(this.all());
  }

  restore(text: string | null): void {
    this.#byName.clear();
    this.#byHash.clear();
    for (const key of parseJson(text ?? "[]") as StoredKey[]) this.#keep(key);
    this.#tell();
  }

  #keep(key: StoredKey): void {
    this.#byName.set(key.name, key);
    this.#byHash.set(key.sha256, key);
  }

  #drop(name: string): void {
    const key = this.#byName.get(name);
    if (key === undefined) return;
    this.#byName.delete(name);
    this.#byHash.delete(key.sha256);
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
