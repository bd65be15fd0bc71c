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
  /** Every place for a scope is held. */
  | { readonly kind: "full" };

const NOTHING: ScopeDecision = { kind: "nothing", hold: null };

/** `position`: the place that the event's record will have in the log. */
export function decide(state: ScopesReader, command: ScopeCommand, { position }: { position: number }): ScopeDecision {
  const before = state.get(command.scope);
  const hold = before?.hold ?? null;
  const { scope, atMs } = command;
  switch (command.kind) {
    case "acquire":
      if (hold !== null) return { kind: "held", hold };
      if (!state.hasRoom) return { kind: "full" };
      return {
        kind: "event",
        event: { ...command, kind: "granted" },
        epoch: epochAt(state.epochBase, position),
      };
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
