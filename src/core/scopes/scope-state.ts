// One scope: who holds it, under which epoch, and what happened to it lately.
//
//   free ──granted──▶ held ──resigned, expired, forced──▶ free
//                      └─resign-requested─▶ held, and the holder hears it at its next renewal
//
// Values never change; an event makes a new one. Invariants: the epoch only grows; an event that does not fit (it ends
// another epoch than the one held, or grants what is held) makes no new value.

import { assert, assertNever } from "../kit/assert.ts";
import { INTEGER_MAX, SCOPE_HISTORY_MAX } from "../kit/limits.ts";
import type { ScopeTransition, ScopeView } from "../../ports/scopes.ts";
import type { Changed, Granted, Metadata, ScopeEvent } from "./events.ts";

/** Records of one generation; a generation is a life of the cluster's data, raised when it is restored or recovered. */
export const EPOCHS_PER_GENERATION = 2 ** 32;

export interface HoldState {
  readonly epoch: number;
  readonly session: string;
  readonly identity: string;
  readonly metadata: Metadata;
  readonly ttlMs: number;
  readonly acquiredAtMs: number;
  readonly resignRequested: boolean;
}

export interface ScopeState {
  readonly scope: string;
  /** The last that was granted. */
  readonly epoch: number;
  readonly hold: HoldState | null;
  /** Newest first. */
  readonly history: readonly ScopeTransition[];
}

/** A restored cluster writes the same positions again, from a higher base: no epoch is ever handed out twice. */
export function epochAt(epochBase: number, position: number): number {
  const epoch = epochBase + position;
  assert(epoch <= INTEGER_MAX, "an epoch is at most 2^53-1", () => `${epochBase}, ${position}`);
  return epoch;
}

/** Null where the event does not fit. `epoch`: of a grant at this place in the log. */
export function evolveScope(state: ScopeState | undefined, event: ScopeEvent, epoch: number): ScopeState | null {
  switch (event.kind) {
    case "granted":
      return grant(state, event, epoch);
    case "resigned":
    case "expired":
    case "forced":
      return end(state, event, event.kind);
    case "resign-requested":
      if (state?.hold?.epoch !== event.epoch) return null;
      return { ...state, hold: { ...state.hold, resignRequested: true } };
    default:
      return assertNever(event, "scope event");
  }
}

function grant(state: ScopeState | undefined, event: Granted, epoch: number): ScopeState | null {
  if (state !== undefined && (state.hold !== null || state.epoch >= epoch)) return null;
  const { scope, session, identity, metadata, ttlMs, atMs } = event;
  const hold: HoldState = { epoch, session, identity, metadata, ttlMs, acquiredAtMs: atMs, resignRequested: false };
  const transition: ScopeTransition = { atMs, epoch, identity, reason: "acquired", heldMs: null };
  return { scope, epoch, hold, history: remember(state, transition) };
}

function end(
  state: ScopeState | undefined,
  { epoch, atMs }: Changed,
  reason: "resigned" | "expired" | "forced",
): ScopeState | null {
  if (state?.hold?.epoch !== epoch) return null;
  const { identity, acquiredAtMs } = state.hold;
  // Two leaders' wall clocks may differ.
  const heldMs = Math.max(0, atMs - acquiredAtMs);
  return { ...state, hold: null, history: remember(state, { atMs, epoch, identity, reason, heldMs }) };
}

function remember(state: ScopeState | undefined, transition: ScopeTransition): readonly ScopeTransition[] {
  return [transition, ...(state?.history ?? []).slice(0, SCOPE_HISTORY_MAX - 1)];
}

export function viewOf({ scope, epoch, hold }: ScopeState): ScopeView {
  if (hold === null) return { scope, epoch, holder: null };
  const { identity, metadata, ttlMs, acquiredAtMs, resignRequested } = hold;
  return { scope, epoch, holder: { epoch, identity, metadata, ttlMs, acquiredAtMs, resignRequested } };
}
