// The names of one disk: those on the platter, and the operations that no directory sync covers yet.
// Invariants: names change on the platter in the order of the operations, so after a crash a prefix of the
// unsynced ones has happened and a rename is never half done; a name and its file's bytes are independent, so a
// synced file may be nameless and a named one empty.

import { Inode } from "./disk-inode.ts";

type Names = Map<string, Inode>;

interface PendingName {
  readonly apply: (names: Names) => void;
  completed: boolean;
}

export class Directory {
  #durable: Names = new Map();
  #visible: Names = new Map();
  #pending: PendingName[] = [];
  #folded = 0;
  laneMs = 0;

  get pendingOperations(): number {
    return this.#pending.length;
  }

  /** What a power loss that keeps nothing would leave. */
  get durable(): ReadonlyMap<string, Inode> {
    return this.#durable;
  }

  names(): string[] {
    return [...this.#visible.keys()].toSorted();
  }

  find(name: string): Inode | undefined {
    return this.#visible.get(name);
  }

  create(name: string): () => void {
    const inode = new Inode();
    return this.#push((names) => names.set(name, inode));
  }

  rename(from: string, to: string): () => void {
    return this.#push((names) => {
      const inode = names.get(from);
      if (inode === undefined) return;
      names.delete(from);
      names.set(to, inode);
    });
  }

  remove(name: string): () => void {
    return this.#push((names) => names.delete(name));
  }

  syncPoint(): number {
    let point = 0;
    while (this.#pending[point]?.completed === true) point++;
    return this.#folded + point;
  }

  sync(point: number): void {
    while (this.#folded < point) {
      const operation = this.#pending.shift();
      if (operation === undefined) return;
      this.#folded++;
      operation.apply(this.#durable);
    }
  }

  /** Keeps the first `survivors` of the unsynced operations; returns the files that still have a name, by name. */
  crash(survivors: number): Inode[] {
    for (const operation of this.#pending.slice(0, survivors)) operation.apply(this.#durable);
    this.#folded += this.#pending.length;
    this.#pending = [];
    this.#visible = new Map(this.#durable);
    this.laneMs = 0;
    return this.names().map((name) => this.#visible.get(name) as Inode);
  }

  #push(apply: (names: Names) => void): () => void {
    const operation: PendingName = { apply, completed: false };
    this.#pending.push(operation);
    apply(this.#visible);
    return () => {
      operation.completed = true;
    };
  }
}
