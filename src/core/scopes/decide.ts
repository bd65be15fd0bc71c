// Commands about a scope: what happens, if anything. Pure: the same state and command give the same decision, and the caller
// makes it true by appending the events before anything else is decided.

import { assertNever } from "../kit/assert.ts";
import type { Granted, ScopeEvent } from "./events.ts";
import type { ScopesReader } from "./fold.ts";
import { epochAt, type HoldState } from "./scope-state.ts";

export type ScopeCommand =
  | (Omit<Granted, "kind"> & { readonly kind: "acquire" })
  | {
      readonly kind: "resign";
      readonly scope: string;
      readonly session: string;
      readonly epoch: number;
      readonly atMs: number;
    }
  | { readonly kind: "expire"; readonly scope: string; readonly epoch: number; readonly atMs: number }
  | { readonly kind: "force" | "request-resign"; readonly scope: string; readonly atMs: number };

export type ScopeDecision =
  /** `epoch`: the one that the event grants or is about. */
  | { readonly kind: "event"; readonly event: ScopeEvent; readonly epoch: number }
  /** Somebody holds it; for `acquire` it may be the same session. */
  | { readonly kind: "held"; readonly hold: HoldState }
  /** It is so already: nobody holds it, or it was asked before. */
  | { readonly kind: "nothing"; readonly hold: HoldState | null }
  /** That epoch was never this session's, or is another's. */
  | { readonly kind: "stale" }
  /** Nobody holds it, and a transaction that is prepared locks it: it is granted to nobody before that is decided. */
  | { readonly kind: "locked"; readonly by: string }
  /** Every place for a scope is held, or kept for a transaction. */
  | { readonly kind: "full" };

/** What transactions that are prepared keep from others. */
export interface ScopeLocks {
  lockedBy(key: { readonly scope: string }): string | null;
  readonly reserved: { readonly scopes: number };
}

export interface ScopeContext {
  /** The place that the event's record will have in the log. */
  readonly position: number;
  readonly locks: ScopeLocks;
}

const NOTHING: ScopeDecision = { kind: "nothing", hold: null };

export function decide(state: ScopesReader, command: ScopeCommand, { position, locks }: ScopeContext): ScopeDecision {
  const before = state.get(command.scope);
  const hold = before?.hold ?? null;
  const { scope, atMs } = command;
  switch (command.kind) {
    case "acquire": {
      if (hold !== null) return { kind: "held", hold };
      const by = locks.lockedBy({ scope });
      if (by !== null) return { kind: "locked", by };
      if (state.room <= locks.reserved.scopes) return { kind: "full" };
      return {
        kind: "event",
        event: { ...command, kind: "granted" },
        epoch: epochAt(state.epochBase, position),
      };
    }
    case "resign":
      if (command.epoch > (before?.epoch ?? 0)) return { kind: "stale" };
      if (hold?.epoch !== command.epoch) return NOTHING;
      if (hold.session !== command.session) return { kind: "stale" };
      return { kind: "event", event: { kind: "resigned", scope, epoch: hold.epoch, atMs }, epoch: hold.epoch };
    case "expire":
      if (hold?.epoch !== command.epoch) return NOTHING;
      return { kind: "event", event: { kind: "expired", scope, epoch: hold.epoch, atMs }, epoch: hold.epoch };
    case "force":
      if (hold === null) return NOTHING;
      return { kind: "event", event: { kind: "forced", scope, epoch: hold.epoch, atMs }, epoch: hold.epoch };
    case "request-resign":
      if (hold === null || hold.resignRequested) return { kind: "nothing", hold };
      return { kind: "event", event: { kind: "resign-requested", scope, epoch: hold.epoch, atMs }, epoch: hold.epoch };
    default:
      return assertNever(command, "scope command");
  }
}
