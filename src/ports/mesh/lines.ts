// The lines of a mesh as a node serves them: its own site's, and those of other sites that it has. Any node serves what is applied
// there. Errors: NOT_FOUND of a line that it does not have, LOG_COMPACTED of what retention has cut off, BACKEND_UNAVAILABLE of what
// it can't read or sign now.

import type { LineId, Page, Ring } from "../../core/mesh/model.ts";
import type { Possession, PossessionProof } from "../../core/mesh/registry/index.ts";
import type { Request } from "../jobs.ts";
import type { ConsistencyProof, InclusionProof } from "../events.ts";

/** Whoever has the events of some lines. */
export interface LineSource {
  lines(): readonly LineId[];
  has(line: LineId): boolean;
  /** A signed note of all that is here of the line, which covers no items. */
  checkpoint(line: LineId): Promise<string>;
  /**
   * What follows `after`, in a page with a note of exactly its size; null: nothing does. A relay's page may begin before `after`: it
   * keeps pages as they were cut.
   */
  page(line: LineId, after: number): Promise<Page | null>;
  /** The page after `after` and those that follow it, as many as are sent together; none: nothing follows. */
  pages(line: LineId, after: number): Promise<readonly Page[]>;
  consistency(line: LineId, from: number, to: number): Promise<ConsistencyProof>;
  inclusion(line: LineId, sequence: number, size: number): Promise<InclusionProof>;
  /** How much of it is here. Asked for every line, each second: it must not go through all of them. */
  size(line: LineId): number;
}

export interface MeshLines extends LineSource {
  /** Null: this site writes no line (yet); `status` says why. */
  own(): OwnLineView | null;
  /** Those that are registered here, by id; without this site. */
  sites(): readonly SiteView[];
  status(): OwnLineStatus;
  gate(): GateView;
  /** The place in the own line where this site has left its mesh; null: it takes part. */
  leftAt(): number | null;
  /** Lines that are proven to have forked; of one site, or of all. */
  forks(site: string | null): Promise<readonly ForkView[]>;
  /** An operator says that nothing is to be compared any more; or that the next line begins. NOT_LEADER, BAD_REQUEST. */
  resume(request: Request, isNewLine: boolean): Promise<GateView>;
  /** That this site has its keys, for one receiver. Never rejects. */
  prove(possession: Possession): Promise<PossessionProof>;
  /** Of this node. */
  readonly publicKey: string;
}

export interface OwnLineView {
  readonly controller: string;
  readonly name: string;
  readonly urls: readonly string[];
  /** Of the last generation. */
  readonly line: LineId;
  readonly generation: number;
  readonly size: number;
  /** The first event that is kept. */
  readonly first: number;
  /** In force. */
  readonly ring: Ring;
  readonly ringHash: string;
  /** Of all generations that are remembered, in order. */
  readonly lines: readonly OwnGenerationView[];
}

export interface ForkView {
  readonly line: LineId;
  /** Of this site's own event that has the evidence. */
  readonly sequence: number;
  /** Null: that event is not kept any more. */
  readonly evidence: { readonly [field: string]: unknown } | null;
}

/** Whether this node gives out its own line: see core/mesh/gate. */
export interface GateView {
  readonly state: "open" | "comparing" | "behind";
  /** When this process started; wall milliseconds. */
  readonly sinceMs: number;
  /** Peers that are not compared yet. */
  readonly missing: readonly string[];
  /** Null: it is open. */
  readonly why: string | null;
}

export interface OwnGenerationView {
  readonly line: LineId;
  readonly generation: number;
  /** The sequence before its first event. */
  readonly after: number;
  readonly size: number;
  /** With which the line began: its hash is in the line's name. */
  readonly firstRing: Ring;
  readonly firstRingHash: string;
  readonly ringChanges: number;
}

export interface SiteView {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly status: string;
  /** The newest one that is known; null: it registered without a ring. */
  readonly line: LineId | null;
  /** In force, as far as the line is here; else the one that is pinned. */
  readonly ring: Ring | null;
  /** How much of the line is here. */
  readonly size: number;
  /** The time of the last event of that, by its site's clock; null: there is none. */
  readonly lastEventAtMs: number | null;
}

export type OwnLineStatus =
  /** This node signs. */
  | { readonly kind: "signing" }
  /** There is no ring yet, or the next one is not written yet. */
  | { readonly kind: "waiting"; readonly why: string }
  /** It could, and does not yet: the own line is compared with what the peers have of it. */
  | { readonly kind: "gated"; readonly why: string }
  /** There is a ring, and this node can't sign under it. */
  | { readonly kind: "not-signing"; readonly why: string };
