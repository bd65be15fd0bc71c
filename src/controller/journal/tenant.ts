// Whoever has state in a site's journal: the types of its events, and what they make of its state, the same on every node. A
// tenant is one object; the journal has it replicated, written down, restored and undone, and knows nothing else of it.
//
// Every tenant sees every event, in order: time passes for all of them. What is not its own changes nothing else.

import type { ChainEvent, ChainHead, EventKind } from "../../core/events/index.ts";
import type { Pieces } from "../../core/kit/pieces.ts";

interface Evolving {
  /** Its name in snapshots, for ever. */
  readonly name: string;
  /** A type has one tenant. A node stops at a type that nobody has: a newer release wrote it. */
  readonly eventTypes: readonly EventKind[];
  /** Events of this leader that are not committed: for a tenant that decides on its head. Others decide on what is applied. */
  propose?(events: readonly ChainEvent[]): void;
  /** It is committed. `wasProposed`: here, before. */
  apply(event: ChainEvent, wasProposed: boolean): void;
  /** What was proposed after this sequence never came to be. */
  undo?(to: number): void;
}

/** Its state is a text, of a few megabytes at most. */
export interface Tenant extends Evolving {
  /** Of what is applied; null: nothing that is worth a word. */
  snapshot(): string | null;
  /** Null: the state before the first event. */
  restore(state: string | null): void;
}

/** Its state is large, and written down in pieces: one at most. */
export interface LargeTenant extends Evolving {
  /** Of what is applied, fixed in this turn. */
  snapshot(): Pieces;
  restore(state: Uint8Array, head: ChainHead): void;
  /** See StateMachine. */
  prepare(state: Uint8Array, timestamp: number): Generator<void, void, void>;
}
