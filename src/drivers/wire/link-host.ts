// What a link asks of the wire that it belongs to.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Dial, DialResult, DialTarget } from "./dial.ts";
import type { Ack, Hello, Purpose, Refuse } from "./handshake/hello.ts";
import type { Link } from "./link.ts";
import type { Refusals } from "./refusals.ts";
import type { WireCounts } from "./stats.ts";

export interface LinkHost {
  readonly random: Random;
  readonly counts: WireCounts;
  readonly refusals: Refusals;
  readonly connectionAgeMs: number;
  hello(purpose: Purpose): Hello;
  dial(target: DialTarget, purpose: Purpose, result: DialResult): Dial;
  refusedBy(nodeId: string, refusal: Refuse): void;
  /** May close this link, where another one leads to that peer already. */
  connected(link: Link, ack: Ack): void;
  lost(link: Link, peer: PeerKey, why: string): void;
  /** We closed it ourselves. */
  unlinked(link: Link, peer: PeerKey): void;
  /** Whether a connection of that peer to us lives. */
  hears(peer: PeerKey): boolean;
  gone(peer: PeerKey): void;
}
