// Other sites of the mesh, as this site reaches them over the network. The shapes are those of the wire; what they mean is decided in
// controller/mesh, and whether a page or a note is genuine in core/mesh/proof: nothing that comes through this port is trusted.
//
// Every call resolves with the other site's answer, a refusal included, and rejects with a TenureError where there was none: out of
// reach, too slow, not a site, or an address that this site must not call.

import type { LineId, Page } from "../../core/mesh/model.ts";

/** How a site registers with another. */
export interface Introduction {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** From here on the receiver of this wants to be sent pages of the line, unasked. */
export interface Graft {
  readonly line: LineId;
  readonly after: number;
}

/** What the dialled site sends on the stream. */
export type LinkMessage =
  /** First: who it is. */
  | { readonly kind: "hello"; readonly introduction: Introduction }
  /** Then, and each second: signed notes of all lines, later of those that grew; and the sender's wall clock. */
  | { readonly kind: "heads"; readonly heads: readonly string[]; readonly atMs: number }
  | { readonly kind: "page"; readonly page: unknown }
  | { readonly kind: "graft"; readonly graft: Graft }
  /** The sender has this line from elsewhere: it wants no pages of it over this link. */
  | { readonly kind: "prune"; readonly line: LineId }
  /** The node that sent this does not lead any more; `urls` are those of its site. */
  | { readonly kind: "bye"; readonly urls: readonly string[] }
  /** Nothing that this release knows: a newer site may send more kinds. It counts for what a site may send, as the others do. */
  | { readonly kind: "other" };

/** What the dialling site sends in one request. */
export interface Delivery {
  readonly controller: string;
  readonly pages?: readonly Page[] | undefined;
  readonly heads?: readonly string[] | undefined;
  /** The sender's wall clock. */
  readonly at?: number | undefined;
  readonly graft?: readonly Graft[] | undefined;
  readonly prune?: readonly { readonly line: LineId }[] | undefined;
}

/** One for each page, in their order. */
export type PageOutcome =
  | { readonly line: LineId; readonly accepted: number; readonly duplicates: number }
  | {
      readonly line: LineId;
      readonly error: PageError;
      readonly sequence?: number;
      readonly have?: number;
      readonly problem?: string;
    };

/**
 * `EVENT_INVALID`: shape, size, bytes, hashes, root or signature are wrong (`problem`, and `sequence` where it is one event). `CHAIN_GAP`: it begins after what is known here (`have`). `LINE_UNKNOWN`: nobody
 * has registered or vouched for the line. `NOT_LEADER`: this node stopped leading. `not_wanted`: the line is frozen or evicted.
 * `suspected`: signed, and it does not extend what is known here. `RATE_LIMITED`, `BACKEND_UNAVAILABLE`: not now.
 */
export type PageError =
  | "EVENT_INVALID"
  | "CHAIN_GAP"
  | "LINE_UNKNOWN"
  | "NOT_LEADER"
  | "not_wanted"
  | "suspected"
  | "RATE_LIMITED"
  | "BACKEND_UNAVAILABLE";

export interface Delivered {
  readonly pages: readonly PageOutcome[];
  readonly heads: readonly string[];
}

/** RFC 6962, between the trees of the first `from` and the first `to` events of a line; roots and path in hexadecimal digits. */
export interface LineConsistency {
  readonly fromRoot: string;
  readonly root: string;
  readonly path: readonly string[];
}

export interface SiteRefusal {
  readonly kind: "refused";
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Where the answer names a time; null: it does not. */
  readonly retryAfterMs: number | null;
  /** Of NOT_LEADER: where the leader may be. */
  readonly urls: readonly string[];
}

export type SiteAnswer<T> = { readonly kind: "answer"; readonly body: T } | SiteRefusal;

export interface Sites {
  /** The controller id of the site at this address. */
  identify(url: string, signal: AbortSignal): Promise<SiteAnswer<string>>;
  register(url: string, introduction: Introduction, signal: AbortSignal): Promise<SiteAnswer<null>>;
  /** Refused with 404: register again. */
  heartbeat(url: string, id: string, signal: AbortSignal): Promise<SiteAnswer<null>>;
  /**
   * Until the other site ends the stream, it breaks, or the signal aborts. The next message is read when the promise of the last one has
   * resolved: a receiver that is slow slows the sender, and costs the memory of one message.
   */
  stream(
    url: string,
    opening: { readonly controller: string; readonly heads: readonly string[] },
    signal: AbortSignal,
    receive: (message: LinkMessage) => Promise<void>,
  ): Promise<SiteAnswer<null>>;
  deliver(url: string, delivery: Delivery, signal: AbortSignal): Promise<SiteAnswer<Delivered>>;
  consistency(
    url: string,
    asked: { readonly line: LineId; readonly from: number; readonly to: number },
    signal: AbortSignal,
  ): Promise<SiteAnswer<LineConsistency>>;
  close(): void;
}
