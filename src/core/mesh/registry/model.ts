// What a site knows of the sites of its mesh: itself, from its own `controller:registered`, and the others, from those that it wrote about
// them. All of it is state of the site's own journal, equal on all of its nodes. Who was heard when is not: heartbeats are no events.
//
//              register               TTL over                  register
//   (unknown) ──────────▶ registered ──────────▶ expired ─────────────────▶ registered or approved, as before
//   any ── approve ──▶ approved       any ── evict ──▶ evicted ── approve ──▶ approved
//   any ── its own line says that it has left ──▶ left ── it registers, or its line says that it is back ──▶ as before
//   any ── a proven fork of its last line ──▶ forked ── approve and register with another ring ──▶ approved
//
// Invariants:
// - The first ring of a line is pinned once and never replaced; the line's name is the hash of that ring.
// - Expiry is for display: a site that is expired keeps its approval, its lines and its rings. Only a site that has registered here itself expires.
// - A site that has left takes nothing from anybody (decision 63): whoever has its word has all that it has of one's own line, and waits for it no more.
// - The site's own controller id never changes, and no other site is registered under it.

import type { Json } from "../../kit/json.ts";
import type { LineId, Ring, RingKey } from "../model.ts";
import type { PinnedLine, SitePresence } from "./events.ts";

export interface OwnSite {
  readonly controllerId: string;
  readonly name: string;
  readonly urls: readonly string[];
  /** Of the generation that is being written. */
  readonly line: LineId;
  readonly generation: number;
  /** `sourceControllerId` of the events of this generation. */
  readonly author: string;
  /** The ring in force. */
  readonly keys: readonly RingKey[];
  /** The sequence of the event that put it in force. */
  readonly since: number;
  /** When it wrote its first ring. */
  readonly registeredAtMs: number;
  /** Of all generations, the one that is being written last. */
  readonly lines: readonly PinnedLine[];
}

export interface KnownSite {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly urls: readonly string[];
  readonly version: string | null;
  readonly registeredAtMs: number;
  /** Of all its generations, the newest last; none: it registered without a ring, and sends nothing. */
  readonly lines: readonly PinnedLine[];
  /** What else it says of itself. */
  readonly metadata: { readonly [key: string]: Json };
  readonly isExpired: boolean;
  readonly isApproved: boolean;
  readonly isEvicted: boolean;
  /** The last that its own line says of it, whether it takes part; null: it never left. */
  readonly presence: Presence | null;
  /** The hash of a ring that an operator has approved, and that the site has not registered with yet. */
  readonly approvedRing: string | null;
}

/** Known by the word of another site alone: it has not registered here, and has no time to live here. */
export function isVouched({ metadata }: Pick<KnownSite, "metadata">): boolean {
  return "vouchedBy" in metadata;
}

/** Where a line says that its site has left; `hasLeft`: and it has not come back since. */
export interface Presence extends SitePresence {
  readonly hasLeft: boolean;
  /** The sequence of the own event that says so; absent: written by a release that did not keep it. */
  readonly at?: number | undefined;
}

export type SiteStatus = "registered" | "expired" | "left" | "approved" | "evicted" | "forked";

/** Whose events a site takes: of every site that is registered, or only of those that an operator has approved. */
export const ACCEPTS = ["vouched", "approved"] as const;
export type Accept = (typeof ACCEPTS)[number];

/** What becomes of a page of a line. */
export type LineStanding =
  | { readonly kind: "wanted"; readonly firstRing: Ring }
  /** Nobody has registered it here. */
  | { readonly kind: "unknown" }
  | { readonly kind: "unapproved" }
  | { readonly kind: "evicted" }
  /** `evidence`: the sequence of this site's own event that has it. */
  | { readonly kind: "forked"; readonly evidence: number };
