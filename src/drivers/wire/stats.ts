// What the wire counts. Counters only grow; `queuedBytes` and `connected` are as of now.

import type { RefusalCounts } from "./refusals.ts";

export interface WireCounts {
  sentMessages: number;
  sentBytes: number;
  receivedMessages: number;
  receivedBytes: number;
  sentBulks: number;
  receivedBulks: number;
  /** Bulks that broke off, on either side. */
  failedBulks: number;
  askedQueries: number;
  /** Given up: too late, or the connection ended. */
  unansweredQueries: number;
  /** Questions of others that were answered with something. */
  answeredQueries: number;
  /** No connection to that very peer stands. */
  droppedUnconnected: number;
  /** QUEUE_BYTES_MAX waited for that peer already. */
  droppedFull: number;
  /** A bulk to that peer was under way. */
  droppedBulks: number;
  dials: number;
  failedDials: number;
  handshakes: number;
  lostConnections: number;
  /** Made anew because of their age, without a loss. */
  renewedConnections: number;
  /** Given up because nothing was heard on it. */
  silentConnections: number;
  peersGone: number;
}

export interface WireStats extends Readonly<WireCounts> {
  /** What this node refused, by reason. */
  readonly refused: RefusalCounts;
  /** What others refused this node, by reason. */
  readonly refusedByPeers: RefusalCounts;
  readonly connected: number;
  readonly queuedBytes: number;
  /** When this node's certificate expires; null without TLS. */
  readonly certificateNotAfterMs: number | null;
}

export function noWireCounts(): WireCounts {
  return {
    sentMessages: 0,
    sentBytes: 0,
    receivedMessages: 0,
    receivedBytes: 0,
    sentBulks: 0,
    receivedBulks: 0,
    failedBulks: 0,
    askedQueries: 0,
    unansweredQueries: 0,
    answeredQueries: 0,
    droppedUnconnected: 0,
    droppedFull: 0,
    droppedBulks: 0,
    dials: 0,
    failedDials: 0,
    handshakes: 0,
    lostConnections: 0,
    renewedConnections: 0,
    silentConnections: 0,
    peersGone: 0,
  };
}
