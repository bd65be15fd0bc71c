// What a node does about those whom it refuses as no members although they lead, or ask for votes, in a term of ours or
// above: it may have been away while the members changed. It asks the members that it knows (decision 24), and where
// nobody vouches and nobody else leads for a while, it reports that an operator has to decide: also of a candidate, which
// may need our very vote to lead. Disks that it takes for removed do not get past the handshake: a node without a leader that
// knows of such disks asks unprompted.
// Invariant: one question to each member in a heartbeat interval at most, whatever is refused.

import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { REMOVED_WORD_MS, STRANGER_REPORT_AFTER_MS, STRANGER_REPORT_INTERVAL_MS } from "../kit/limits.ts";
import type { Admission } from "./admission.ts";
import { members } from "./membership/quorum.ts";
import type { ServerState } from "./state.ts";
import type { Message, MessageType, MsgAskMembers, MsgMembers } from "./types.ts";

const OF_LEADERS: ReadonlySet<MessageType> = new Set(["MsgApp", "MsgHeartbeat", "MsgSnap"]);
const OF_CANDIDATES: ReadonlySet<MessageType> = new Set(["MsgVote", "MsgPreVote"]);

export class Strangers {
  readonly #state: Readonly<ServerState>;
  readonly #admission: Admission;
  #askAgainAtMs = -Infinity;
  #leaderlessSinceMs: number | null = null;
  #reportAgainAtMs = -Infinity;
  #removedUntilMs = -Infinity;

  constructor(state: Readonly<ServerState>, admission: Admission) {
    this.#state = state;
    this.#admission = admission;
  }

  /** It was refused as no member, or as removed. */
  refused({ type, from, term }: Message): void {
    if (term < this.#state.term || (!OF_LEADERS.has(type) && !OF_CANDIDATES.has(type))) return;
    this.#ask();
    this.#report(from, term);
  }

  /** No leader was heard for an election timeout. */
  timedOut(): void {
    if ((this.#state.committedConfiguration.removed ?? []).length > 0) this.#ask();
  }

  /** A leader of ours has spoken, or we lead. */
  led(): void {
    this.#leaderlessSinceMs = null;
    // We are served, so we belong again.
    this.#removedUntilMs = -Infinity;
  }

  take(message: MsgAskMembers | MsgMembers): void {
    if (message.type === "MsgMembers") this.#admission.vouch(message);
    else this.#answer(message.from);
  }

  #answer(to: PeerKey): void {
    const { configuration, configurationIndex, committedConfiguration, committedConfigurationIndex } = this.#state;
    this.#say(to, members(committedConfiguration), committedConfigurationIndex, true);
    if (configurationIndex !== committedConfigurationIndex)
      this.#say(to, members(configuration), configurationIndex, false);
  }

  #say(to: PeerKey, all: readonly PeerKey[], index: number, committed: boolean): void {
    if (all.length > 0) this.#state.send({ ...this.#state.head("MsgMembers", to), index, committed, members: all });
  }

  /**
   * The node of this id refuses this very disk as removed. One that we take for a member is believed, for a while. When it is
   * not repeated we campaign again: a pre-vote that is in vain does no harm. Returns whether that is news.
   */
  removedBy(nodeId: string): boolean {
    const { configuration, peer: self, nowMs } = this.#state;
    if (!members(configuration).some((peer) => peer !== self && nodeIdOf(peer) === nodeId)) return false;
    const isNews = !this.callUsRemoved;
    this.#removedUntilMs = nowMs + REMOVED_WORD_MS;
    return isNews;
  }

  get callUsRemoved(): boolean {
    return this.#state.nowMs < this.#removedUntilMs;
  }

  #ask(): void {
    const { nowMs, config } = this.#state;
    if (nowMs < this.#askAgainAtMs) return;
    this.#askAgainAtMs = nowMs + config.heartbeatIntervalMs;
    for (const peer of this.#admission.askable()) this.#state.send(this.#state.head("MsgAskMembers", peer));
  }

  #report(peer: PeerKey, term: number): void {
    const { nowMs, leader, outbox } = this.#state;
    if (leader !== null) return;
    this.#leaderlessSinceMs ??= nowMs;
    if (nowMs - this.#leaderlessSinceMs < STRANGER_REPORT_AFTER_MS || nowMs < this.#reportAgainAtMs) return;
    this.#reportAgainAtMs = nowMs + STRANGER_REPORT_INTERVAL_MS;
    outbox.emit({ kind: "stranger-leads", peer, term });
  }
}
