// Values as programs see them, at a leader's term, at the servers' clients and in tests.

import type { Json } from "../core/kit/json.ts";

export interface StoredValue {
  readonly name: string;
  readonly value: Json;
  /** Names this content for ever: it only grows, over deletions and restores too. */
  readonly version: number;
  /** Wall time of the servers' leader. */
  readonly updatedAtMs: number;
  /** Of the leader that wrote it, where the write named them. */
  readonly scope?: string | undefined;
  readonly epoch?: number | undefined;
  /** The id of the transaction over islands that has locked it: prepared, and not decided yet. Of what was read, not of what is watched. */
  readonly pendingTxn?: string | undefined;
}

/** Of a watch. */
export type ValueItem =
  | (StoredValue & { readonly kind: "put" })
  /** Nulls: it was found missing in a new list, and when it was deleted is not kept any more. */
  | {
      readonly kind: "deleted";
      readonly name: string;
      readonly version: number | null;
      readonly updatedAtMs: number | null;
    }
  /** Everything up to this version has been given. */
  | { readonly kind: "current"; readonly version: number };

/** As a stream says it. */
export type StoredChange = Exclude<ValueItem, { readonly kind: "current" }> & { readonly version: number };
