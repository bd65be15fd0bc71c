// One value: its content, its version, and who wrote it. States never change; an event makes a new one, or none.
//
// A version is made of the place of its record in the log, as an epoch is (core/scopes): it only grows, over deletions and restores too, so no
// version names two contents.

import { assertNever } from "../kit/assert.ts";

export interface ValueFence {
  readonly scope: string;
  readonly epoch: number;
}

export interface ValueState {
  readonly name: string;
  /** Canonical JSON, in UTF-8. */
  readonly data: Uint8Array;
  readonly version: number;
  /** Wall time of the leader that wrote it. */
  readonly atMs: number;
  /** With which it was written; null: without one. */
  readonly fence: ValueFence | null;
}

export interface ValuePutEvent {
  readonly kind: "value-put";
  readonly name: string;
  readonly data: Uint8Array;
  readonly fence: ValueFence | null;
  readonly atMs: number;
}

export interface ValueDeletedEvent {
  readonly kind: "value-deleted";
  readonly name: string;
  readonly fence: ValueFence | null;
  readonly atMs: number;
}

/** What happened to a value, as the log keeps it. It does not name its version, which is made of its place there. */
export type ValueEvent = ValuePutEvent | ValueDeletedEvent;

/** Null: there is none from there on. */
export function evolveValue(event: ValueEvent, version: number): ValueState | null {
  switch (event.kind) {
    case "value-put": {
      const { name, data, atMs, fence } = event;
      return { name, data, version, atMs, fence };
    }
    case "value-deleted":
      return null;
    default:
      return assertNever(event, "value event");
  }
}

/** What the bound of all values counts: how many there are, and their bytes. */
export function weighValue(state: ValueState | null): readonly [count: number, bytes: number] {
  return state === null ? [0, 0] : [1, valueBytes(state)];
}

/** A name of two-byte units is counted as the log has it at the most. */
export function valueBytes({ name, data }: Pick<ValueState, "name" | "data">): number {
  return name.length + data.length;
}
