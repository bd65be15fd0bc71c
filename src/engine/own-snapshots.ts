// A node's own snapshots, one at a time, written next to the log: the state may be large, and consensus must not wait.
// Invariant: one that a leader's snapshot has overtaken while it was made or written is dropped, never reported.

import type { SnapshotMeta } from "../core/raft/index.ts";
import { letGo } from "../core/kit/pieces.ts";
import type { SnapshotData } from "../ports/state-machine.ts";
import type { Snapshots } from "./snapshots.ts";
import type { Storage } from "./storage.ts";

interface Surroundings {
  readonly storage: Storage;
  readonly snapshots: Snapshots;
  /** The state as of the last applied entry, and what the log says of it: both at once, in the same turn. */
  readonly capture: () => { readonly meta: SnapshotMeta; readonly data: SnapshotData | Promise<SnapshotData> };
  /** How many of these entries up to the index may be kept. */
  readonly keepable: (index: number, entries: number) => number;
  readonly isRunning: () => boolean;
  /** It is durable: the log below it, less so many entries, may go. */
  readonly saved: (index: number, keepEntries: number) => void;
  readonly failed: (error: unknown) => void;
}

export class OwnSnapshots {
  readonly #around: Surroundings;
  #saving: Promise<void> | null = null;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Nothing happens where one is being saved: the next is due soon enough. */
  save(): void {
    if (this.#saving !== null) return;
    const { meta, data } = this.#around.capture();
    this.#saving = this.#write(meta, data)
      .catch((error: unknown) => this.#around.failed(error))
      .then(() => {
        this.#saving = null;
      });
  }

  /** Resolves when the newest one covers `index`, which is applied, or the engine has ended. */
  async saveNow(index: number): Promise<void> {
    const { isRunning, snapshots } = this.#around;
    // One that was under way may be older; the next one can't be.
    while (isRunning() && snapshots.newestIndex < index) {
      this.save();
      await this.#saving;
    }
  }

  async #write(meta: SnapshotMeta, capture: SnapshotData | Promise<SnapshotData>): Promise<void> {
    const { storage, snapshots, isRunning, saved, keepable } = this.#around;
    const data = await capture;
    try {
      const keepEntries = keepable(meta.index, snapshots.policy.keepEntries);
      const isWanted = (): boolean => isRunning() && snapshots.newestIndex < meta.index;
      if (!isWanted()) return;
      const bytes = await storage.saveSnapshot(meta, data, meta.index - keepEntries + 1, isWanted);
      if (bytes === null || !isWanted()) return;
      if (data instanceof Uint8Array) snapshots.keep(meta, data);
      else snapshots.keepOnDisk(meta, bytes);
      saved(meta.index, keepEntries);
    } finally {
      letGo(data);
    }
  }
}
