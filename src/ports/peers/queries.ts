// Questions between the nodes of one cluster, next to the messages of consensus (wire.ts): small questions, answers up to
// 256 KiB, on the connections that stand anyway. Best effort: whoever asks must be content with no answer.

import type { PeerKey } from "../../core/kit/ids.ts";

export interface PeerQueries {
  /** Those who can be asked now: connected, and of a release that answers. */
  askable(): readonly PeerKey[];
  /**
   * At most QUERY_BYTES_MAX. Null: it has nothing to say, can't be asked, is asked too much already, or did not answer in
   * time. Never rejects.
   */
  ask(peer: PeerKey, query: Uint8Array): Promise<Uint8Array | null>;
  /** At most one. What it resolves to is sent, at most ANSWER_BYTES_MAX; null: nothing. `from` is authenticated. */
  onQuery(answer: Answering): void;
  /** At most one listener. Somebody can be asked who could not be a moment ago. */
  onAskable(listener: (peer: PeerKey) => void): void;
}

export type Answering = (from: PeerKey, query: Uint8Array) => Promise<Uint8Array | null>;
