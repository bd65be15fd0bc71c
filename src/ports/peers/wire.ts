import type { PeerKey } from "../../core/kit/ids.ts";

/** Messages between the peers of one cluster. Delivery is best effort: lost, late, repeated and reordered are all normal. */
export interface Wire {
  start(handlers: WireHandlers): void;
  /** Never blocks and never throws; what can't be queued is dropped. */
  send(to: PeerKey, bytes: Uint8Array): void;
  /** One message of two parts, the second of which is large and is not copied. Without it they are joined and sent. */
  sendLarge?(to: PeerKey, bytes: Uint8Array, rest: Uint8Array): void;
  /** A large message to that peer is under way: another would be dropped. */
  isBusy?(to: PeerKey): boolean;
  /** Called once. Nothing is sent after it; what is still delivered is ignored. */
  stop(): void;
}

export interface WireHandlers {
  /**
   * `from` is the peer that the handshake authenticated on this connection. The receiver keeps `bytes`, entries and
   * snapshots are views of it: the wire must not use that memory again.
   */
  message(from: PeerKey, bytes: Uint8Array): void;
  /** A handshake with this peer succeeded: it is of our cluster, and this is its present disk. */
  peerSeen(peer: PeerKey): void;
  /**
   * The connection was reset AND a re-dial was refused (design D6): nobody listens there any more. Nothing that
   * was sent over that connection is delivered after this, as a stream ends after its data.
   */
  peerGone(peer: PeerKey): void;
  /** This disk was removed from the cluster: its handshakes are refused. */
  isRemoved?(peer: PeerKey): boolean;
  /** The node of this id refused our handshake because this very disk was removed. */
  removedBy?(nodeId: string): void;
}
