// What the sites of a mesh exchange: lines, their rings of keys, pages of events and signed checkpoints. Shapes only; what each rule is,
// the folders next to this file say.
//
// A *line* is one generation of a site's chain of events, from its first event on. It is named by the site and by the hash of the first
// ring of keys that signs it, so that nobody else can continue it under that name.

/** `<controller id>.<first 32 hexadecimal digits of the hash of its first ring>`. */
export type LineId = string;

/** The public key of one node of a site: Ed25519, 32 raw bytes in base64. */
export interface RingKey {
  readonly node: string;
  readonly key: string;
}

/** Whose signatures count for a line. */
export interface Ring {
  /** The site's controller id: equal in all generations. */
  readonly controller: string;
  /** 1 for the first; a recovery or a restore begins the next. */
  readonly generation: number;
  /** `sourceControllerId` of the events that this generation writes. */
  readonly author: string;
  /** Sorted by node, each node once. */
  readonly keys: readonly RingKey[];
}

/** An event's canonical text, or the hash of one whose text does not leave its site. */
export type PageItem = string | { readonly hash: string };

/** Consecutive events of a line, and a signed checkpoint of exactly the size after the last of them. */
export interface Page {
  readonly line: LineId;
  /** The sequence before the first item. */
  readonly after: number;
  readonly items: readonly PageItem[];
  /** A signed note (C2SP tlog-checkpoint). */
  readonly checkpoint: string;
}

/** What a signed note states: the tree of the first `size` events of a line. */
export interface Checkpoint {
  readonly line: LineId;
  readonly size: number;
  /** Of the Merkle tree, 64 hexadecimal digits. */
  readonly root: string;
  /** Which of the events after `after` are withheld: a hash over their sequences. `after` = `size`: of a head, which covers no items. */
  readonly withheld: { readonly after: number; readonly hash: string };
}

/** How far a line is known, and how to go on from there. */
export interface LineState {
  readonly line: LineId;
  /** In force for what follows. */
  readonly ring: Ring;
  /**
   * The line has stated its author: by its site's own `controller:registered`, in a later generation by `controller:recovered`. From then on
   * every event is of the ring's author. Before that there may be events of earlier authors: of a site that was recovered before it first had
   * a ring, or that wrote more before it knew that its disk had gone back.
   */
  readonly isStated: boolean;
  /** Of the last event that is known: the tree's size. 0: none. */
  readonly size: number;
  /** The `eventHash` of that event; null where there is none. */
  readonly hash: string | null;
  readonly timestamp: number;
  /** Of the Merkle tree (MerkleFrontier.encode); empty where there is none. */
  readonly frontier: Uint8Array;
  /** The note of exactly this size; null where there is none. */
  readonly checkpoint: string | null;
}
