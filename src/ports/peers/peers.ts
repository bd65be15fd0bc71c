// Who the other nodes are and whether they can be reached, next to the messages of consensus (wire.ts): addresses, and small
// status reports ("beacons") that every node sends to all, about once a second.

import type { PeerKey } from "../../core/kit/ids.ts";

export interface Peers {
  /** Everybody that the configuration names or a handshake introduced, by node id; not this node. */
  list(): readonly PeerLink[];
  /** To everybody who is connected; best effort, at most BEACON_BYTES_MAX. */
  broadcast(beacon: Uint8Array): void;
  /** At most one listener. `from` is authenticated. */
  onBeacon(listener: (from: PeerKey, beacon: Uint8Array) => void): void;
  /** Node ids of whose disk two processes hold a copy, as seen recently. */
  cloned?(): readonly string[];
}

export interface PeerLink {
  readonly nodeId: string;
  /** Its present disk, once a handshake has told. */
  readonly peer: PeerKey | null;
  /** Where it listens for peers, "host:port". */
  readonly address: string;
  /** Where its API is, as it says itself; null until a handshake has told. */
  readonly apiUrl: string | null;
  /** What its release and ours agreed on in the last handshake; null until there was one. */
  readonly protocol?: number | null | undefined;
  /** Our own connection to it stands. */
  readonly isConnected: boolean;
  /** Why the last attempt to connect failed, or was refused; null where it stands. */
  readonly trouble: string | null;
  /** Where it answers, and it or this node does not accept the other's proof of who it is: why. Null: it is not that. */
  readonly refusal?: string | null | undefined;
}
