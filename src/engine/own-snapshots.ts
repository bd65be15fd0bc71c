// A node's own snapshots, one at a time, written beside the log: the state may be large, and consensus must not wait.
// Invariant: one that a leader's snapshot has overtaken while it was made or written is dropped, never reported.

import type { SnapshotMeta } from "../core/raft/index.ts";
import type { Snapshots } from "./snapshots.ts";
import type { Storage } from "./storage.ts";

interface Surroundings {
  readonly storage: Storage;
  readonly snapshots: Snapshots;
  /** The state as of the last applied entry, taken at once. */
  readonly capture: () => Uint8Array | Promise<Uint8Array>;
  readonly metaAt: (index: number) => SnapshotMeta;
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
  save(appliedIndex: number): void {
    if (this.#saving !== null) return;
    const meta = this.#around.metaAt(appliedIndex);
    this.#saving = this.#write(meta, this.#around.capture())
      .catch((error: unknown) => this.#around.failed(error))
      .then(() => {
        this.#saving = null;
      });
  }

  /** Resolves when nothing is being saved any more; the newest one then covers `appliedIndex`, unless the engine ended. */
  async saveNow(appliedIndex: number): Promise<void> {
    await this.#saving;
    const { isRunning, snapshots } = this.#around;
    if (isRunning() && appliedIndex > snapshots.newestIndex) this.save(appliedIndex);
    await this.#saving;
  }

  async #write(meta: SnapshotMeta, capture: Uint8Array | Promise<Uint8Array>): Promise<void> {
    const { storage, snapshots, isRunning, saved } = this.#around;
    const data = await capture;
    const { keepEntries } = snapshots.policy;
    const isWanted = (): boolean => isRunning() && snapshots.newestIndex < meta.index;
    if (!isWanted()) return;
    await storage.saveSnapshot(meta, data, meta.index - keepEntries + 1);
    if (!isWanted()) return;
    snapshots.keep(meta, data);
    saved(meta.index, keepEntries);
  }
}
