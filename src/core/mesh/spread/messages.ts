// What a site's spread is notified of, and what it asks for in return. Every input carries the monotonic time at which it happened.
//
// The caller's part of the contract:
// - `heads` and `page` hold only what was checked: sizes of signed checkpoints, pages of lines that this site knows.
// - Each `send` is answered by one `sent` of the same link and line, or by the link's `down`.
// - What the two sides of a link ask of each other (`graft`, `prune`) arrives in the order in which it was asked, or the link goes down.
// - `step` is called with `time` at `nextTimeMs()`, or soon after it.

import type { LineId } from "../model.ts";

/** Names one connection: a new one after each reconnect, or the old one again after `down`. */
export type LinkId = string;

/** What came of a page that another site sent. */
export type PageFate =
  /** It continues the line, and is applied or waits to be. */
  | "new"
  | "duplicate"
  /** It begins after what is known of the line. */
  | "gap"
  /** The deliverer's fault (wrong bytes, root or signature), or the line is not wanted. */
  | "refused";

/** What came of a page that this site sent. */
export type SentOutcome =
  /** The other side has it, or it is written to a stream that delivers it or breaks. */
  | { readonly kind: "taken" | "duplicate"; readonly through: number }
  /** The other side has less than was assumed: exactly this. */
  | { readonly kind: "gap"; readonly have: number }
  /** By the other side, or there was no page to cut. A caller that has to wait (429) reports only when the wait is over. */
  | { readonly kind: "refused" };

/** A line, its size, and how many links from its author the reporting site is (`Spread.hops`). The last is a hint: nobody signs it. */
export type Head = readonly [line: LineId, size: number, hops?: number | undefined];

type Input =
  /** A link is connected. `controller`: who is at its other end. */
  | { readonly kind: "up"; readonly link: LinkId; readonly controller: string }
  | { readonly kind: "down"; readonly link: LinkId }
  /** What the other side has: all lines after `up`, then at least those that changed, each second. */
  | { readonly kind: "heads"; readonly link: LinkId; readonly heads: Iterable<Head> }
  /** So much of a line is applied here, whoever wrote or delivered it. */
  | { readonly kind: "have"; readonly line: LineId; readonly size: number }
  /** Whether other sites are asked for a line. Not the site's own present line, nor one that is frozen or evicted. */
  | { readonly kind: "wanted"; readonly line: LineId; readonly wanted: boolean }
  | {
      readonly kind: "page";
      readonly link: LinkId;
      readonly line: LineId;
      /** The size of the line after the page. */
      readonly through: number;
      readonly outcome: PageFate;
    }
  /** The other side asks for everything after `after`, now and from now on. */
  | { readonly kind: "graft"; readonly link: LinkId; readonly line: LineId; readonly after: number }
  /** The other side asks for no more pages of this line. */
  | { readonly kind: "prune"; readonly link: LinkId; readonly line: LineId }
  | { readonly kind: "sent"; readonly link: LinkId; readonly line: LineId; readonly outcome: SentOutcome }
  | { readonly kind: "time" };

export type SpreadInput = Input & { readonly nowMs: number };

export type SpreadEffect =
  /**
   * Send what follows `after` in one request: one page, or consecutive ones as far as a request goes (a site that has many small pages of
   * another one would need a round trip for each). At most one `send` is under way on a link.
   */
  | { readonly kind: "send"; readonly link: LinkId; readonly line: LineId; readonly after: number }
  | { readonly kind: "graft"; readonly link: LinkId; readonly line: LineId; readonly after: number }
  | { readonly kind: "prune"; readonly link: LinkId; readonly line: LineId };
