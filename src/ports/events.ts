// The site's sealed events as every node has them: committed and applied here, in memory or in the archive. Whoever follows
// them pulls: it asks for what is after the sequence that it has, and waits where there is nothing. So a reader that is
// slow costs nobody any memory, sees each event once, in order and without gaps (trap 67), and can go on at any other node.
// Everything that may touch a disk is asynchronous and done elsewhere than on the consensus thread (design D10).

export interface Events {
  /** From memory. */
  head(): EventsHead;
  /**
   * The hash of the event with this sequence; null of 0, and of one that is not applied here. Also of the last one that retention
   * has cut off, for the next one names it; before that LOG_COMPACTED. One that is not in memory is read from the disk, `inTurn`
   * of whoever limits that.
   */
  hashAt(sequence: number, inTurn?: InTurn): Promise<string | null>;
  /**
   * Events after `after`, in order. Rejects with LOG_COMPACTED where retention has cut them off. A page may be shorter than
   * it could be, also empty; only `through` tells how far it got.
   */
  read(after: number, wanted: EventsWanted): Promise<EventsPage>;
  /** The same at once, from memory; null where the events are not in memory: `read` brings them. */
  recent(after: number, wanted: EventsWanted): EventsPage | null;
  /** Resolves when there is an event after `after` here, or the signal aborts. Never rejects. */
  arrived(after: number, signal: AbortSignal): Promise<void>;
  /** Resolves when the next event of this entity is applied here, or the signal aborts. Never rejects; others wake nobody. */
  arrivedOf(entityId: string, signal: AbortSignal): Promise<void>;
  /**
   * Called when this node has taken over a state that it did not reach event by event. What it has under a sequence from now on may be
   * another event than before: on Postgres after a promotion without the end of the log (trap 82).
   */
  onReplaced(listener: () => void): void;
  /**
   * Reads every stored event from the last checkpoint on and checks bytes, links and tree. `progress` is told the sequence
   * that it has come to, now and then. Rejects with the signal's reason when that aborts.
   */
  verify(progress: (sequence: number) => void, signal: AbortSignal): Promise<Verified>;
  /** That the event is in the tree of the first `treeSize` events (RFC 6962). LOG_COMPACTED, NOT_FOUND beyond the head. */
  inclusion(sequence: number, treeSize: number): Promise<InclusionProof>;
  /** That the tree of the first `treeSize` events goes on where that of the first `fromSize` ends. */
  consistency(fromSize: number, treeSize: number): Promise<ConsistencyProof>;
}

/** Runs it when its turn comes. */
export type InTurn = <T>(make: () => Promise<T>) => Promise<T>;

export interface EventsHead {
  /** Of the last event that is applied here; 0 where there is none. It is the tree's size too. */
  readonly sequence: number;
  /** The first that is kept; `sequence` + 1 where none is. */
  readonly first: number;
}

export interface EventsWanted {
  /** Null: all. */
  readonly filter: EventsFilter | null;
  /** Of a page, before the filter. */
  readonly max: number;
  /** A page ends with the event that reaches it. */
  readonly bytesMax: number;
}

/** All that are given must hold. */
export interface EventsFilter {
  /** One of them: `build:completed`, or `build:*`. */
  readonly types: readonly string[] | null;
  readonly entityId: string | null;
  readonly entityType: string | null;
}

export interface EventsPage {
  readonly events: readonly EventRecord[];
  /** Everything up to here was looked at: go on from here. */
  readonly through: number;
  /** Of the event `through`; null where nothing was looked at. */
  readonly hash: string | null;
}

export interface EventRecord {
  readonly sequence: number;
  readonly eventType: string;
  /** The canonical JSON of all fields but eventHash: exactly what is hashed. */
  readonly bytes: Uint8Array;
  /** Lower-case hex. */
  readonly eventHash: string;
}

export type Verified =
  | {
      readonly valid: true;
      readonly first: number;
      readonly through: number;
      /** Null where there is no event. */
      readonly headHash: string | null;
      /** Of the tree of the first `through` events, hex. */
      readonly root: string;
    }
  | { readonly valid: false; readonly first: number; readonly firstBrokenSequence: number; readonly reason: string };

export interface InclusionProof {
  readonly sequence: number;
  readonly treeSize: number;
  readonly leafHash: string;
  readonly root: string;
  /** From the leaf's sibling up, hex. */
  readonly path: readonly string[];
}

export interface ConsistencyProof {
  readonly fromSize: number;
  readonly treeSize: number;
  readonly fromRoot: string;
  readonly root: string;
  readonly path: readonly string[];
}
