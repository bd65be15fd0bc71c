// The payloads of the registry's events, as they are in the journal. The entity is a site, under its controller id.

import type { Json } from "../../kit/json.ts";
import type { LineId, Ring, RingKey } from "../model.ts";

export const REGISTRY_EVENTS = [
  "controller:registered",
  "controller:expired",
  "controller:approved",
  "controller:evicted",
  "controller:forked",
  "controller:resumed",
  "controller:gated",
  "controller:left",
  "controller:joined",
] as const;
export type RegistryEventType = (typeof REGISTRY_EVENTS)[number];

/** A line, with the ring that its name is the hash of. */
export interface PinnedLine {
  readonly line: LineId;
  /** Its first one. Later ones are in the line itself. */
  readonly ring: Ring;
}

/** `controller:registered` of the site that writes it: its ring from here on. Only this one has `keys`. */
export interface OwnRegistered {
  readonly name: string;
  readonly urls: readonly string[];
  readonly line: LineId;
  readonly generation: number;
  readonly author: string;
  readonly keys: readonly RingKey[];
}

/** `controller:registered` of another site. */
export interface SiteRegistered {
  readonly url: string;
  readonly name: string;
  readonly urls: readonly string[];
  readonly version: string | null;
  /** With `ring`, the first one of this line; or neither. */
  readonly line?: LineId | undefined;
  readonly ring?: Ring | undefined;
  /** Lines of generations before it that were not known here, oldest first: what continues them can't be taken without them. Absent: none. */
  readonly earlier?: readonly PinnedLine[] | undefined;
  /** Somebody vouches for lines that come before one that is known here: the newest line stays the newest. */
  readonly isOlder?: boolean | undefined;
  /** The site has proven itself with keys that are known here: a ring that an operator had approved is used up. */
  readonly isApprovalOver?: boolean | undefined;
  readonly metadata?: { readonly [key: string]: Json } | undefined;
}

/** `controller:approved`. `ring`: the hash of the ring that the site may register with in place of the one that is pinned. */
export interface SiteApproved {
  readonly by: string;
  readonly ring: string | null;
}

/** `controller:evicted`. `through`: how much of each of its lines had been taken. */
export interface SiteEvicted {
  readonly by: string;
  readonly through: Readonly<Record<LineId, number>>;
}

/** `controller:forked`: two histories under one name, which anybody can verify. */
export interface LineForked {
  readonly line: LineId;
  readonly evidence: { readonly [key: string]: Json };
}

/** A place in the own history: up to `through`, with the tree there (base64). */
export interface OwnPlace {
  readonly through: number;
  /** Of the event `through`; null where that is 0. */
  readonly hash: string | null;
  readonly frontier: string;
}

/** `controller:gated`: the whole site was started, and what follows `through` was written before anybody was compared with. */
export type SiteGated = OwnPlace;

/** `controller:resumed`: this site signs again. */
export interface SiteResumed {
  /** Null: every peer was compared. */
  readonly by: string | null;
  /** A new line begins; null: the line goes on. */
  readonly renewed?: Renewal | null | undefined;
}

/** `controller:left` and `controller:joined` of the site that writes it: an operator took it out of the mesh, or back. */
export interface OwnPresence {
  readonly by: string;
}

/** The same of another site: what its own line says, at `sequence` of it. */
export interface SitePresence {
  readonly line: LineId;
  readonly sequence: number;
}

/** How a site goes on whose disk is behind its peers: as another author, in the next generation, which continues `line` after `through`. */
export interface Renewal extends OwnPlace {
  readonly line: LineId;
  /** Whose events it had written, as the log names the author. */
  readonly before: string;
  readonly author: string;
}
