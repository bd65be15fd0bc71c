// API keys that are part of the replicated state. They change seldom: each change is decided on what is applied, after the one
// before it is.

import { TenureError } from "../../core/kit/errors.ts";
import { API_KEYS_MAX } from "../../core/kit/limits.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Keys, KeyView, NewKey } from "../../ports/keys.ts";
import type { JournalService } from "../journal/service.ts";
import { checkLeaderEpoch } from "../leadership/leader-epoch.ts";
import type { KeysFold, StoredKey } from "./keys-fold.ts";

export interface KeysServiceOptions {
  readonly fold: KeysFold;
  readonly journal: Pick<JournalService, "change">;
}

export class KeysService implements Keys {
  readonly #options: KeysServiceOptions;

  constructor(options: KeysServiceOptions) {
    this.#options = options;
  }

  find(sha256: string): KeyView | null {
    const key = this.#options.fold.byHash(sha256);
    return key === undefined ? null : shown(key);
  }

  list(): readonly KeyView[] {
    return this.#options.fold.all().map(shown);
  }

  async create({ caller, leaderEpoch: named }: Request, { name, role, sha256 }: NewKey): Promise<KeyView> {
    const { fold, journal } = this.#options;
    await journal.change(({ newId, nowMs, leaderEpoch }) => {
      checkLeaderEpoch(named, leaderEpoch);
      const known = fold.byName(name);
      if (known !== undefined && known.sha256 === sha256 && known.role === role) return [];
      if (known !== undefined || fold.byHash(sha256) !== undefined) {
        throw new TenureError(
          "KEY_EXISTS",
          `There is another key of this ${known === undefined ? "hash" : "name"}. Nothing was done.`,
        );
      }
      if (fold.size >= API_KEYS_MAX) {
        throw new TenureError("OVERLOADED", `There are ${API_KEYS_MAX} keys. Revoke one that is not used any more.`);
      }
      const payload = { role, sha256, by: caller };
      return [{ id: newId(), eventType: "key:created", entityType: "key", entityId: name, payload, timestamp: nowMs }];
    });
    return shown(fold.byName(name)!);
  }

  async revoke({ caller, leaderEpoch: named }: Request, name: string): Promise<void> {
    const { fold, journal } = this.#options;
    await journal.change(({ newId, nowMs, leaderEpoch }) => {
      checkLeaderEpoch(named, leaderEpoch);
      if (fold.byName(name) === undefined) throw new TenureError("NOT_FOUND", `There is no key "${name}".`);
      const payload = { by: caller };
      return [{ id: newId(), eventType: "key:revoked", entityType: "key", entityId: name, payload, timestamp: nowMs }];
    });
  }

  onRevoked(listener: () => void): void {
    this.#options.fold.onDropped(listener);
  }
}

function shown({ name, role, createdAtMs, createdBy }: StoredKey): KeyView {
  return { name, role, createdAtMs, createdBy };
}
