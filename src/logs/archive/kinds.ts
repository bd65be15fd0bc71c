// What an archive is of: the names of its files, and how what it holds is linked. Everything else is the same for all.

import type { Chain } from "../../core/archive/index.ts";
import { receiptChain } from "../../core/mesh/receipts/index.ts";
import type { Digest } from "../../ports/digest.ts";
import { eventChain } from "./event-chain.ts";
import { ArchiveNames } from "./file-names.ts";

export interface ArchiveKind {
  readonly names: ArchiveNames;
  readonly chain: (digest: Digest) => Chain;
}

/** A site's own events. */
export const EVENTS: ArchiveKind = { names: new ArchiveNames("events"), chain: eventChain };
/** Receipts: pages of other sites' events, as they have entered this site's log. */
export const RECEIPTS: ArchiveKind = { names: new ArchiveNames("receipts"), chain: receiptChain };
