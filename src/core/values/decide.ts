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
  /** It has another version. */
  | { readonly kind: "conflict"; readonly current: ValueState | null }
  | { readonly kind: "full"; readonly what: "values" | "bytes" };

export interface ValuesView {
  readonly values: ValuesReader;
  /** The epoch in which a scope is held; null: nobody holds it. */
  heldEpoch(scope: string): number | null;
}

export function decideValue(view: ValuesView, command: ValueCommand): ValueDecision {
  const { values } = view;
  const { name, ifVersion, fence, atMs } = command;
  if (fence !== null && view.heldEpoch(fence.scope) !== fence.epoch) return { kind: "stale", fence };
  const current = values.get(name) ?? null;
  if (ifVersion !== null && ifVersion !== (current?.version ?? 0)) return { kind: "conflict", current };
  switch (command.kind) {
    case "put": {
      const [count, bytes] = weighValue(current);
      if (values.size - count + 1 > VALUES_MAX) return { kind: "full", what: "values" };
      if (values.bytes - bytes + valueBytes(command) > VALUES_BYTES_MAX) return { kind: "full", what: "bytes" };
      return { kind: "event", event: { kind: "value-put", name, data: command.data, fence, atMs } };
    }
    case "delete":
      if (current === null) return { kind: "nothing" };
      return { kind: "event", event: { kind: "value-deleted", name, fence, atMs } };
    default:
      return assertNever(command, "value command");
  }
}
