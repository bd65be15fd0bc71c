// Commands about a value: what happens, if anything. Pure: the same state and command give the same decision, and the caller makes it true by
// appending the event before anything else is decided. So the epoch of a scope is checked in the record that writes: nothing can come between.

import { assertNever } from "../kit/assert.ts";
import { VALUES_BYTES_MAX, VALUES_MAX } from "../kit/limits.ts";
import type { ValuesReader } from "./fold.ts";
import { type ValueEvent, type ValueFence, valueBytes, type ValueState, weighValue } from "./value-state.ts";

interface OfValue {
  readonly name: string;
  /** Only where it has this version now; 0: only where there is none. Null: whatever is there. */
  readonly ifVersion: number | null;
  /** Only while this epoch of this scope is held. */
  readonly fence: ValueFence | null;
  readonly atMs: number;
}

export type ValueCommand =
  | (OfValue & { readonly kind: "put"; readonly data: Uint8Array })
  | (OfValue & { readonly kind: "delete" });

export type ValueDecision =
  | { readonly kind: "event"; readonly event: ValueEvent }
  /** There is nothing to delete. */
  | { readonly kind: "nothing" }
  /** That epoch is over, or never was. */
  | { readonly kind: "stale"; readonly fence: ValueFence }
  /** A transaction that is prepared locks it; once that is decided the same command may do. */
  | { readonly kind: "locked"; readonly by: string }
  /** It has another version. */
  | { readonly kind: "conflict"; readonly current: ValueState | null }
  | { readonly kind: "full"; readonly what: "values" | "bytes" };

export interface ValuesView {
  readonly values: ValuesReader;
  /** The epoch in which a scope is held; null: nobody holds it. */
  heldEpoch(scope: string): number | null;
  /** The transaction that locks this value; null: none. */
  lockedBy(key: { readonly value: string }): string | null;
  /** Room that prepared transactions keep, so that their commits can't fail. */
  readonly reserved: { readonly values: number; readonly bytes: number };
}

/** Where there are no transactions. */
export const NO_LOCKS: Pick<ValuesView, "lockedBy" | "reserved"> = {
  lockedBy: () => null,
  reserved: { values: 0, bytes: 0 },
};

export function decideValue(view: ValuesView, command: ValueCommand): ValueDecision {
  const { values, reserved } = view;
  const { name, ifVersion, fence, atMs } = command;
  if (fence !== null && view.heldEpoch(fence.scope) !== fence.epoch) return { kind: "stale", fence };
  const by = view.lockedBy({ value: name });
  if (by !== null) return { kind: "locked", by };
  const current = values.get(name) ?? null;
  if (ifVersion !== null && ifVersion !== (current?.version ?? 0)) return { kind: "conflict", current };
  switch (command.kind) {
    case "put": {
      const [count, bytes] = weighValue(current);
      const [kept, keptBytes] = [values.size - count + reserved.values, values.bytes - bytes + reserved.bytes];
      if (kept + 1 > VALUES_MAX) return { kind: "full", what: "values" };
      if (keptBytes + valueBytes(command) > VALUES_BYTES_MAX) return { kind: "full", what: "bytes" };
      return { kind: "event", event: { kind: "value-put", name, data: command.data, fence, atMs } };
    }
    case "delete":
      if (current === null) return { kind: "nothing" };
      return { kind: "event", event: { kind: "value-deleted", name, fence, atMs } };
    default:
      return assertNever(command, "value command");
  }
}
