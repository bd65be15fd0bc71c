// Who may speak to us, and what no honest peer says. A message that is refused here changes nothing and is
// counted. A handshake proves who somebody is, not that it belongs (trap 72): who raises our term, leads us, gets our vote
// or counts for us is checked for every message (docs/decisions/0024-membership-of-every-message.md).
//
// A peer may lead, and so do everything else, if it is
//   - a member of our committed configuration, or of one that follows it in our log;
//   - vouched for: one that may lead us named it as a member of a later configuration than our committed one. We may have
//     been away while the members changed. That word counts for VOUCH_MS. A disk that we know as removed is named only by a
//     configuration that is committed: such a one follows ours, while an uncommitted one may come from a log that lacks the
//     removal. Indexes of logs that part say nothing about each other, so nobody's word displaces another's;
//   - trusted by our operator by node id: for when nobody is left who could vouch. That counts also for a disk that we know
//     as removed, unless another disk of that node is a member;
//   - introduced and listed by our operator, until our own log has named us as a member: a fresh node has to start somewhere,
//     and the first entries of the log that it gets may name founders that are long gone.
// The leader of our term is heard within that term, also when it is removed meanwhile (trap 12); it raises no term then.
// Anybody who was introduced may ask who the members are.
//
// Invariants: at most INTRODUCED_MAX introduced peers are kept, the last ones seen, and of no more the words. Two disks of one node id may be
// among them: a voter whose connection lives must not fall silent because another disk shook hands in its name. Others
// raise our term by at most TERM_RISE_AT_START, and TERM_RISE_PER_S_MAX for each second since our start.

import type { PeerKey } from "../kit/ids.ts";
import { nodeIdOf } from "../kit/ids.ts";
import { INTRODUCED_MAX, TERM_JUMP_MAX, TERM_RISE_AT_START, TERM_RISE_PER_S_MAX, VOUCH_MS } from "../kit/limits.ts";
import type { RaftOptions } from "./options.ts";
import { members } from "./membership/quorum.ts";
import type { ServerState } from "./state.ts";
import type { Message, MsgMembers, RefusalReason } from "./types.ts";

interface Vouched {
  readonly index: number;
  readonly isCommitted: boolean;
  readonly members: readonly PeerKey[];
  readonly untilMs: number;
}

export class Admission {
  readonly refusals: Record<RefusalReason, number> = {
    "not-for-us": 0,
    "unknown-peer": 0,
    "wild-term": 0,
    "not-a-member": 0,
    removed: 0,
    impossible: 0,
  };
  readonly #state: Readonly<ServerState>;
  readonly #sponsors: readonly string[] | undefined;
  readonly #trusted: readonly string[];
  readonly #introduced = new Set<PeerKey>();
  readonly #lastSeen = new Map<string, PeerKey>();
  /** By voucher: the last word of each about its committed configuration, and about one that is not. */
  readonly #vouched = new Map<string, Vouched>();
  #riseLeft = TERM_RISE_AT_START;
  #riseAtMs: number;

  constructor(state: Readonly<ServerState>, options: Pick<RaftOptions, "sponsors" | "trusted">) {
    this.#state = state;
    this.#sponsors = options.sponsors;
    this.#trusted = options.trusted ?? [];
    this.#riseAtMs = state.nowMs;
  }

  /** The wire has authenticated this peer. A disk that was removed does not take its node's place again by itself. */
  introduce(peer: PeerKey): void {
    if (this.isBarred(peer)) return;
    this.#introduced.delete(peer);
    this.#introduced.add(peer);
    this.#lastSeen.set(nodeIdOf(peer), peer);
    if (this.#introduced.size <= INTRODUCED_MAX) return;
    const oldest = this.#introduced.values().next().value!;
    this.#introduced.delete(oldest);
    if (this.#lastSeen.get(nodeIdOf(oldest)) === oldest) this.#lastSeen.delete(nodeIdOf(oldest));
  }

  /** The disk last seen under a node id, unless it was removed since. */
  diskOf(nodeId: string): PeerKey | undefined {
    const disk = this.#lastSeen.get(nodeId);
    return disk === undefined || this.#state.wasRemoved(disk) ? undefined : disk;
  }

  refusalOf(message: Message): RefusalReason | null {
    const { peer, term, leader, log } = this.#state;
    if (message.to !== peer) return "not-for-us";
    if (message.from === peer) return "impossible";
    const isOfOurs = this.#mayLead(message.from) || (message.from === leader && message.term <= term);
    if (!isOfOurs && !this.#introduced.has(message.from)) return this.#strange(message.from, "unknown-peer");
    if (message.type === "MsgAskMembers") return null;
    if (!isOfOurs) return this.#strange(message.from, "not-a-member");
    if (message.type === "MsgMembers") return null;
    if (message.term > term + this.#riseAllowed) return "wild-term";
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

  /** A message raised our term by so much. */
  termRaised(by: number): void {
    this.#riseLeft = this.#riseAllowed - by;
    this.#riseAtMs = this.#state.nowMs;
  }

  /** It was removed as far as our log says, and nobody says otherwise. */
  isBarred(peer: PeerKey): boolean {
    return this.#state.wasRemoved(peer) && !this.#mayLead(peer);
  }

  /** Somebody who may lead us says who the members are. */
  vouch({ from, index, committed: isCommitted, members: named }: MsgMembers): void {
    const { nowMs, committedConfigurationIndex } = this.#state;
    // An older configuration than ours proves nothing: it may name members that were removed since.
    if (index <= committedConfigurationIndex) return;
    const key = `${from} ${isCommitted}`;
    this.#vouched.delete(key);
    this.#vouched.set(key, { index, isCommitted, members: named, untilMs: nowMs + VOUCH_MS });
    if (this.#vouched.size > 2 * INTRODUCED_MAX) this.#vouched.delete(this.#vouched.keys().next().value!);
  }

  /** Whom to ask who the members are. */
  askable(): PeerKey[] {
    const { configuration, committedConfiguration, peer: self } = this.#state;
    const named = [...this.#vouched.values()].flatMap((word) => (this.#counts(word) ? word.members : []));
    const known = [...members(configuration), ...members(committedConfiguration), ...named];
    const all = new Set([...known, ...[...this.#introduced].filter((peer) => this.#mayLead(peer))]);
    all.delete(self);
    return [...all].sort();
  }

  get #riseAllowed(): number {
    const refill = ((this.#state.nowMs - this.#riseAtMs) / 1_000) * TERM_RISE_PER_S_MAX;
    return Math.floor(Math.min(TERM_JUMP_MAX, this.#riseLeft + refill));
  }

  #strange(peer: PeerKey, reason: "unknown-peer" | "not-a-member"): RefusalReason {
    return this.#state.wasRemoved(peer) ? "removed" : reason;
  }

  #mayLead(peer: PeerKey): boolean {
    const state = this.#state;
    if (state.hasMember(peer)) return true;
    const wasRemoved = state.wasRemoved(peer);
    if (this.#isVouchedFor(peer, wasRemoved)) return true;
    if (this.#trusted.includes(nodeIdOf(peer)) && !(wasRemoved && this.#hasOtherDisk(peer))) return true;
    if (wasRemoved || this.#hasJoined || !this.#introduced.has(peer)) return false;
    if (this.#sponsors === undefined) return members(state.configuration).length === 0;
    return this.#sponsors.includes(nodeIdOf(peer));
  }

  /** Our own log names us, or did. */
  get #hasJoined(): boolean {
    const { peer: self } = this.#state;
    return this.#state.hasMember(self) || this.#state.wasRemoved(self);
  }

  #hasOtherDisk(peer: PeerKey): boolean {
    const { configuration } = this.#state;
    return members(configuration).some((other) => other !== peer && nodeIdOf(other) === nodeIdOf(peer));
  }

  #isVouchedFor(peer: PeerKey, wasRemoved: boolean): boolean {
    for (const word of this.#vouched.values()) {
      if (word.members.includes(peer) && (word.isCommitted || !wasRemoved) && this.#counts(word)) return true;
    }
    return false;
  }

  /** Our own log overtakes what others said of later configurations. */
  #counts({ index, untilMs }: Vouched): boolean {
    return this.#state.nowMs < untilMs && index > this.#state.committedConfigurationIndex;
  }
}
