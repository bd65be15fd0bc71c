// Leader and worker are never at once on a node (specification §2.3): who was elected asks for the node to be cleared of its
// worker before anything is decided, and releases it when it does not lead any more.

export interface Clearance {
  /** Resolves to true when no worker, nor any job of it, runs here, and none will be started before `release`. */
  clear(epoch: number): Promise<boolean>;
  /** Soon this node may be handed leadership: no worker runs, nor is one started for a moment. False: not known. */
  empty(): Promise<boolean>;
  /** The gate is open, from now on. */
  opened(epoch: number): void;
  /**
   * This node does not lead. Told at every end of a leadership, and once where none has begun. `isLate`: it was not cleared in
   * time; then no worker is started for a while, so that the next election finds none.
   */
  release(isLate?: boolean): void;
  /** An operator has taken this node out, or in again: meanwhile no worker is started. */
  drained(isDrained: boolean): void;
}
