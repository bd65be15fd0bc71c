// The links of this site to other sites, as the API serves and shows them. Only the leader has links: elsewhere everything but `views`
// throws NOT_LEADER.

import type { LineId } from "../../core/mesh/model.ts";
import type { Request } from "../jobs.ts";
import type { Delivered, Delivery } from "./sites.ts";

/** A delivery whose pages nobody has looked at. */
export interface ReceivedDelivery extends Omit<Delivery, "pages"> {
  readonly pages?: readonly unknown[] | undefined;
}

/** What another site that dialled is sent. */
export interface ServedStream {
  /** The next message, when it is due; null: the stream ends. Called again when the last one is written. */
  next(): Promise<object | null>;
  /** Nobody reads any more. Safe to call twice. */
  close(): void;
}

/** It is more than a site may send. Nothing of it was taken; it fits after so long. */
interface Limited {
  readonly kind: "limited";
  readonly retryAfterMs: number;
}

/** What is to be done with a request of a site before anything of its body is read. `early`: the site was asked to wait, more than once, and does not. */
export type Arrival = { readonly kind: "let-in" } | Limited | { readonly kind: "early" };

export type OpenAnswer = { readonly kind: "open"; readonly stream: ServedStream } | Limited;
export type DeliveryAnswer = { readonly kind: "delivered"; readonly body: Delivered } | Limited;

/** What became of a single event, which has no signature of its own. */
export type HintAnswer = "known" | "pending" | "invalid" | "line-unknown";

export interface LinkView {
  /** Of the site at the other end, also of the last one there; null: it has not said who it is. */
  readonly controller: string | null;
  readonly direction: "dialled" | "served";
  /** Null: it dialled. */
  readonly url: string | null;
  readonly connected: boolean;
  /** How long it has not been, of a parent; null: it is, or the other site dials. */
  readonly downMs: number | null;
  readonly roundTripMs: number | null;
  /** Events of all lines that are here and not there, as far as its heads say; and the other way around. */
  readonly lagEvents: number;
  /** How long ago the oldest of these was there to be sent. */
  readonly lagMs: number;
  readonly missingEvents: number;
  readonly missingMs: number;
  /** Its wall clock minus ours, when it was heard last. */
  readonly skewMs: number | null;
  /** How long ago that was. */
  readonly heardMsAgo: number | null;
  /** Why it is not connected. */
  readonly problem: string | null;
  /** What it delivered that was not in order, by reason. */
  readonly blamed: Readonly<Record<string, number>>;
}

/** A site that had a link here and has none now. */
export interface CutOffView {
  /** Since it was heard last; where this node has not heard it since it leads: since then. */
  readonly ms: number;
  /** Null: not since this node leads. */
  readonly heardMsAgo: number | null;
}

/** What came of an operator's word that this site leaves its mesh, or is back. */
export interface DepartureView {
  readonly controller: string;
  /** The place of that word in the own line; null: this site takes part. */
  readonly leftAt: number | null;
  /** Sites that are known to have it. */
  readonly confirmed: readonly string[];
  /** Peers that are not: they were not connected, or did not answer in time. Others may have passed it on to them. */
  readonly unconfirmed: readonly string[];
}

export interface MeshLinks {
  /** A request of this site has come, on whatever route, and its body of so many bytes was not read. Also where this node does not lead. */
  arrives(controller: string, bytes: number, isDelivery: boolean): Arrival;
  /** What has arrived was no request at all: too long, no JSON, or not as the route wants it. */
  wasted(controller: string, bytes: number): void;
  /** PERMISSION_DENIED: such a site is not registered here, or was evicted. */
  open(controller: string, heads: readonly string[]): OpenAnswer;
  /** PERMISSION_DENIED: the site was evicted. */
  deliver(delivery: ReceivedDelivery): Promise<DeliveryAnswer>;
  /** Nothing is given to such a site, and nothing taken from it. */
  isEvicted(controller: string): boolean;
  hint(event: Readonly<Record<string, unknown>>): HintAnswer;
  views(): readonly LinkView[];
  /** By site: those that had a link here (they have registered here themselves, or are configured parents) and have none now. */
  cutOff(): ReadonlyMap<string, CutOffView>;
  /** What is lacking here of each line, as far as linked sites say: how many events, and since when that is known. Null: this node has no links. */
  lacking(): ReadonlyMap<LineId, { readonly events: number; readonly ms: number }> | null;
  /** Resolves when every link has ended. NOT_LEADER; BAD_REQUEST: there is no line yet. */
  leave(request: Request): Promise<DepartureView>;
  join(request: Request): Promise<DepartureView>;
}
