import type { Pieces } from "../core/kit/pieces.ts";

/** A state as bytes; a large one in pieces, which are made while they are written down. */
export type SnapshotData = Uint8Array | Pieces;

/** What the committed log is folded into. Calls come in log order, one at a time. */
export interface StateMachine {
  /**
   * Must not fail: an entry that makes no sense to the machine is the machine's business to ignore. What it returns is the
   * answer to whoever proposed the entry here (ProposeOutcome).
   */
  apply(entry: { readonly index: number; readonly term: number; readonly data: Uint8Array }): unknown;
  /**
   * The state as of the last applied entry: fixed in this turn, also where serialising it takes many, in which entries are
   * applied and another state may be restored.
   */
  snapshot(): SnapshotData | Promise<SnapshotData>;
  restore(data: Uint8Array): void;
  /**
   * What a restore of these very bytes will need, made bit by bit before it, so that it takes no time itself; the state does
   * not change. Whether it is restored then is not known: the last one is kept until another comes.
   */
  prepare?(data: Uint8Array): Generator<void, void, void>;
}
