// The links of this site to other sites, as the API serves and shows them. Only the leader has links: elsewhere everything but `views`
// throws NOT_LEADER.

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

export type DeliveryAnswer =
  | { readonly kind: "delivered"; readonly body: Delivered }
  /** Nothing of it was taken; it fits after so long. */
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/** What became of a single event, which has no signature of its own. */
export type HintAnswer = "known" | "pending" | "invalid" | "line-unknown";

export interface LinkView {
  /** Of the site at the other end; null: it has not said who it is. */
  readonly controller: string | null;
  readonly direction: "dialled" | "served";
  /** Null: it dialled. */
  readonly url: string | null;
  readonly connected: boolean;
  readonly roundTripMs: number | null;
  /** Events of all lines that are here and not there, as far as its heads say; and the other way around. */
  readonly lagEvents: number;
  readonly missingEvents: number;
  /** Its wall clock minus ours, when it was heard last. */
  readonly skewMs: number | null;
  /** How long ago that was. */
  readonly heardMsAgo: number | null;
  /** Why it is not connected. */
  readonly problem: string | null;
  /** What it delivered that was not in order, by reason. */
  readonly blamed: Readonly<Record<string, number>>;
}

export interface MeshLinks {
  /** PERMISSION_DENIED: such a site is not registered here. */
  open(controller: string, heads: readonly string[]): ServedStream;
  deliver(delivery: ReceivedDelivery, bytes: number): Promise<DeliveryAnswer>;
  hint(event: Readonly<Record<string, unknown>>): HintAnswer;
  views(): readonly LinkView[];
}
