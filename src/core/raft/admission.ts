// Who may speak to us, and what no honest peer says. A message that is refused here changes nothing and is
// counted. Speaking is not counting: a peer that the wire has introduced is heard, so that a new disk can be
// told of the cluster, but only members of a configuration vote and hold copies (design D5).
//
// Invariant: at most INTRODUCED_MAX introduced peers are kept, the last ones seen. Two disks of one node id may be
// among them: a voter whose connection lives must not fall silent because another disk shook hands in its name.

import type { PeerKey } from "../kit/ids.ts";
import { nodeIdOf } from "../kit/ids.ts";
import { INTRODUCED_MAX, TERM_JUMP_MAX } from "../kit/limits.ts";
import { isMember } from "./quorum.ts";
import type { ServerState } from "./state.ts";
import type { Message, RefusalReason } from "./types.ts";

export class Admission {
  readonly refusals: Record<RefusalReason, number> = {
    "not-for-us": 0,
    "unknown-peer": 0,
    "wild-term": 0,
    "not-a-member": 0,
    impossible: 0,
  };
  readonly #state: Readonly<ServerState>;
  readonly #introduced = new Set<PeerKey>();
  readonly #lastSeen = new Map<string, PeerKey>();

  constructor(state: Readonly<ServerState>) {
    this.#state = state;
  }

  /** The wire has authenticated this peer. */
  introduce(peer: PeerKey): void {
    this.#introduced.delete(peer);
    this.#introduced.add(peer);
    this.#lastSeen.set(nodeIdOf(peer), peer);
    if (this.#introduced.size <= INTRODUCED_MAX) return;
    const oldest = this.#introduced.values().next().value!;
    this.#introduced.delete(oldest);
    if (this.#lastSeen.get(nodeIdOf(oldest)) === oldest) this.#lastSeen.delete(nodeIdOf(oldest));
  }

  /** The disk last seen under a node id. */
  diskOf(nodeId: string): PeerKey | undefined {
    return this.#lastSeen.get(nodeId);
  }

  refusalOf(message: Message): RefusalReason | null {
    const { peer, term, leader, log } = this.#state;
    if (message.to !== peer) return "not-for-us";
    if (message.from === peer) return "impossible";
    if (!this.#isKnown(message.from)) return "unknown-peer";
    if (message.term > term + TERM_JUMP_MAX) return "wild-term";
    const claimsToLead = message.type === "MsgApp" || message.type === "MsgHeartbeat" || message.type === "MsgSnap";
    // It includes a second leader in our own term when we lead: then we are the leader that is known.
    if (claimsToLead && message.term === term && leader !== null && leader !== message.from) return "impossible";
    if (message.term < term) return null;
    // An honest peer acknowledges only what was sent, and commits for us only what we acknowledged: to a
    // follower that has not entered its term yet, a leader names no index at all.
    if (message.type === "MsgHeartbeat" && message.commit > log.lastIndex) return "impossible";
    if (message.type === "MsgAppResp" && message.term === term && message.index > log.lastIndex) return "impossible";
    return null;
  }

  #isKnown(peer: PeerKey): boolean {
    const state = this.#state;
    // A leader that is being removed is heard until its removal is committed, and its last words after that (trap 12).
    if (peer === state.leader || isMember(state.configuration, peer)) return true;
    return isMember(state.committedConfiguration, peer) || this.#introduced.has(peer);
  }
}
