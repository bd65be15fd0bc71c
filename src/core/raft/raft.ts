// Raft, as one synchronous step: an input and the time go in, a Ready comes out. It reads no clock, draws
// no randomness of its own, and does no I/O. The file follows the paper: terms (§5.1), elections (§5.2,
// §5.4.1), replication (§5.3), commitment (§5.4.2), membership (§6), snapshots (§7), clients (§8); then
// leadership transfer, and last what leaves.
//
//            timeout, leader gone            majority would vote          majority voted
//   follower ───────────────────▶ pre-candidate ─────────▶ candidate ─────────▶ leader
//      ▲                               │                       │                   │
//      └── heard a leader, lost, ──────┴───────────────────────┴── higher term, ───┘
//          timed out                                               no quorum, disk hangs, removed
//
// This file decides and alone changes term, vote, role and commit index. What it decides with:
//   state       what every server has (figure 2), the log and its configurations; its outbox: what may leave when
//   admission   who may speak to us, and how far a term may jump
//   strangers   what is done about leaders that we do not know
//   patience    how long we wait for a leader
//   leadership  what only a leader has; there from the moment a term is won until leadership ends
//   transfer    leadership that this node gives away
//
// Invariants, asserted here or checked by the simulator at every step:
// - term and commit never fall; a vote is given once in a term, and is durable before it is told;
// - no message leaves before what it depends on is durable: see outbox.ts;
// - a configuration takes effect when its entry is appended, and goes with it when that is replaced. The
//   next change waits until the one before is committed, so the quorums of any two configurations under which
//   servers act at the same time meet (docs/decisions/0003-configuration-on-append.md).

import { assert, assertNever } from "../kit/assert.ts";
import type { PeerKey } from "../kit/ids.ts";
import { FAST_PRE_VOTE_INTERVAL_MS, INTEGER_MAX } from "../kit/limits.ts";
import { Admission } from "./admission.ts";
import { decodeConfChange } from "./codec.ts";
import type { ElectionConfig } from "./config.ts";
import { Campaign, type CampaignReason } from "./election.ts";
import { leaveJoint, proposeConfChange, replaceLostDisks, requestReplacement } from "./leader/membership.ts";
import { LeaderTransfer } from "./leader/transfer.ts";
import { Leader } from "./leader/leader.ts";
import { Freshness } from "./freshness.ts";
import type { RaftLog } from "./log.ts";
import type { RaftOptions, RaftStatus } from "./options.ts";
import { Patience } from "./patience.ts";
import type { Progress } from "./leader/progress.ts";
import { isVoter, members, voterKeys } from "./membership/quorum.ts";
import { ServerState } from "./state.ts";
import { statusOf } from "./status.ts";
import { ACCEPTED, refused, type Refusal } from "./step-result.ts";
import { Strangers } from "./strangers.ts";
import { traceReceive } from "./trace.ts";
import { TransferTarget } from "./transfer-target.ts";
import type { ConfChange, Entry, Input, Message, MsgApp, MsgAppResp, MsgAskMembers, MsgHeartbeat } from "./types.ts";
import type { MsgHeartbeatResp, MsgMembers, MsgReadIndex, MsgSnap, MsgTimeoutNow, MsgVote } from "./types.ts";
import type { MsgVoteResp, Ready, RefusalReason, Role, SnapshotMeta, StepResult } from "./types.ts";

/** What belongs to a term; questions about the members do not. */
type TermMessage = Exclude<Message, MsgAskMembers | MsgMembers>;

export class Raft {
  readonly peer: PeerKey;
  readonly #config: ElectionConfig;
  readonly #state: ServerState;
  readonly #log: RaftLog;
  readonly #admission: Admission;
  readonly #swapsNeedClearance: boolean;
  readonly #strangers: Strangers;
  readonly #patience: Patience;
  readonly #transfer: LeaderTransfer;
  readonly #transferTarget: TransferTarget;
  readonly #freshness = new Freshness();
  /** This disk was a member, its removal is committed, and nobody vouches for it: it is refused at the door. */
  readonly wasRemoved = (peer: PeerKey): boolean => this.#admission.isBarred(peer);
  readonly keepable = (index: number, entries: number): number => this.#state.keepable(index, entries);
  #campaign: Campaign | null = null;
  #leadership: Leader | null = null;
  #reportedTerm: number;

  constructor(options: RaftOptions) {
    const { trace } = options;
    this.peer = options.peer;
    this.#config = options.election;
    this.#swapsNeedClearance = options.swapsNeedClearance === true;
    this.#state = new ServerState(options, trace && ((...told) => trace(this, ...told)));
    this.#log = this.#state.log;
    this.#admission = new Admission(this.#state, options);
    this.#strangers = new Strangers(this.#state, this.#admission);
    this.#transfer = new LeaderTransfer(this.#state);
    this.#transferTarget = new TransferTarget(this.#state);
    this.#reportedTerm = this.#state.term;
    this.#commitTo(Math.min(options.hardState.commit, this.#log.lastIndex));
    this.#patience = new Patience(this.#state, options.random);
    this.#state.trace?.("InitState", null, null);
    this.#state.trace?.("BecomeFollower", null, null);
  }

  // ---- the step ------------------------------------------------------------------------------------

  step(nowMs: number, input: Input): StepResult {
    this.#state.nowMs = Math.max(this.#state.nowMs, nowMs);
    this.#checkLeadership();
    switch (input.kind) {
      case "message":
        return this.#receive(input.message);
      case "time":
        return this.#timePassed();
      case "propose":
        return this.#propose(input.data);
      case "conf-change":
        return this.#proposeConfChange(input.change);
      case "replace":
        return this.#requestReplacement(input.nodeId);
      case "clear-disks":
        if (this.#leadership !== null) this.#leadership.clearedDisks = input.cleared;
        return ACCEPTED;
      case "read-index":
        return this.#readIndex(input.context);
      case "transfer":
        return this.#startTransfer(input.target, input.force);
      case "campaign":
        return this.#campaignOnRequest();
      case "willing":
        return this.#setWilling(input.willing);
      case "reelect":
        return this.#reelect();
      case "step-down":
        if (this.#leadership !== null) this.#becomeFollower(this.#state.term, null);
        return ACCEPTED;
      case "persisted":
        return this.#persisted(input.sequence);
      case "applied":
        return this.#applied(input.index);
      case "compact":
        return this.#compact(input.index, input.keepEntries);
      case "peer-seen":
        return this.#peerSeen(input.peer);
      case "peer-gone":
        return this.#peerGone(input.peer);
      case "removed":
        return this.#removedBy(input.by);
      case "unreachable":
        this.#leadership?.unreachable(input.peer);
        return ACCEPTED;
      case "snapshot-failed":
        this.#leadership?.snapshotFailed(input.peer);
        return ACCEPTED;
      default:
        return assertNever(input, "Raft.step");
    }
  }

  /**
   * Before anything else is done: without a quorum, or with a disk that hangs (trap 30), nothing may renew the
   * followers' patience (trap 16), and a process that was stopped for long must not act as if it still led (trap 29).
   */
  #checkLeadership(): void {
    if (this.#leadership === null) return;
    const { nowMs, term, leaderStalledAtMs } = this.#state;
    const { quorumLostAtMs, commits } = this.#leadership;
    if (nowMs >= quorumLostAtMs || nowMs >= leaderStalledAtMs || commits.isStalled) this.#becomeFollower(term, null);
  }

  // ---- terms (§5.1) --------------------------------------------------------------------------------

  /** Rules for all servers: who may speak to us, and what a term above or below ours means. */
  #receive(message: Message): StepResult {
    const refusal = this.#admission.refusalOf(message);
    if (refusal !== null) {
      this.refusals[refusal]++;
      if (refusal === "not-a-member" || refusal === "removed") this.#strangers.refused(message);
      return refused("MESSAGE_REFUSED", `${message.type} from ${message.from} at term ${message.term}: ${refusal}`);
    }
    traceReceive(this.#state.trace, message);
    if (message.type === "MsgAskMembers" || message.type === "MsgMembers") this.#strangers.take(message);
    else this.#receiveInTerm(message);
    return ACCEPTED;
  }

  #receiveInTerm(message: TermMessage): void {
    if (message.term > this.#state.term && !this.#meetHigherTerm(message)) return;
    if (message.term < this.#state.term) this.#answerLowerTerm(message);
    else this.#dispatch(message);
  }

  /** Returns whether the message is to be handled further. */
  #meetHigherTerm(message: TermMessage): boolean {
    switch (message.type) {
      case "MsgVote":
      case "MsgPreVote":
        // Stickiness (thesis §4.2.3): while we hear a leader, nobody else is helped to depose it.
        if (!message.transfer && this.#patience.hearsLeader()) return false;
        if (message.type === "MsgVote") this.#becomeFollower(message.term, null);
        return true;
      case "MsgPreVoteResp":
        // A grant carries the term that was asked for and changes nothing (trap 14).
        if (message.reject) this.#becomeFollower(message.term, null);
        return true;
      case "MsgApp":
      case "MsgHeartbeat":
      case "MsgSnap":
        this.#becomeFollower(message.term, message.from);
        return true;
      default:
        this.#becomeFollower(message.term, null);
        return true;
    }
  }

  #answerLowerTerm(message: TermMessage): void {
    switch (message.type) {
      case "MsgApp":
      case "MsgHeartbeat":
      case "MsgSnap":
        // A leader of an older term learns of ours, so that it can't keep us out for ever.
        return this.#acceptApp(message.from, 0, 0);
      case "MsgVote":
        return this.#state.send({ ...this.#state.head("MsgVoteResp", message.from), reject: true });
      case "MsgPreVote":
        return this.#state.send({ ...this.#state.head("MsgPreVoteResp", message.from), reject: true });
      default:
        return;
    }
  }

  #dispatch(message: TermMessage): void {
    switch (message.type) {
      case "MsgVote":
      case "MsgPreVote":
        return this.#handleVote(message);
      case "MsgVoteResp":
      case "MsgPreVoteResp":
        return this.#handleVoteResp(message);
      case "MsgApp":
        return this.#handleApp(message);
      case "MsgHeartbeat":
        return this.#handleHeartbeat(message);
      case "MsgSnap":
        return this.#handleSnap(message);
      case "MsgAppResp":
        return this.#handleAppResp(message);
      case "MsgHeartbeatResp":
        return this.#handleHeartbeatResp(message);
      case "MsgTimeoutNow":
        return this.#handleTimeoutNow(message);
      case "MsgTransferRefused":
        return this.#transfer.refusedBy(message.from, message.attempt);
      case "MsgReadIndex":
        return this.#handleReadIndex(message);
      case "MsgReadIndexResp":
        return this.#state.outbox.answerRead({ context: message.context, index: message.index });
      default:
        return assertNever(message, "Raft.dispatch");
    }
  }

  #becomeFollower(term: number, leader: PeerKey | null): void {
    const newTerm = term > this.#state.term;
    if (newTerm) {
      this.#admission.termRaised(term - this.#state.term);
      this.#state.term = term;
      this.#state.vote = null;
    }
    this.#endCampaign("superseded");
    const wasActive = this.#state.role !== "follower" || leader !== null;
    this.#endLeadership(leader);
    if (newTerm || leader !== null) this.#patience.stopFastAttempts();
    this.#setRole("follower", leader);
    if (wasActive) this.#patience.resetElectionTimer();
    this.#state.trace?.("BecomeFollower", null, null);
  }

  #setRole(role: Role, leader: PeerKey | null): void {
    const state = this.#state;
    if (role === state.role && leader === state.leader && state.term === this.#reportedTerm) return;
    this.#reportedTerm = state.term;
    state.role = role;
    state.leader = leader;
    state.outbox.emit({ kind: "role", role, term: state.term, leader });
    if (leader !== null) this.#transfer.leaderKnown(leader);
  }

  // ---- time ----------------------------------------------------------------------------------------

  /** Whatever is due is done once, however late it is (trap 29). */
  #timePassed(): StepResult {
    this.#transfer.timePassed();
    if (this.#leadership !== null) {
      this.#leaderTimePassed(this.#leadership);
      return ACCEPTED;
    }
    this.#patience.reportSuspect();
    if (this.#state.nowMs >= this.#patience.fastDueMs) this.#fastPreVote();
    const lateMs = this.#state.nowMs - this.#patience.electionDeadlineMs;
    if (lateMs >= 0) this.#electionTimedOut(lateMs);
    return ACCEPTED;
  }

  #leaderTimePassed(leader: Leader): void {
    if (this.#state.nowMs < leader.beatDueMs) return;
    leader.beat();
    this.#transfer.watchTarget(leader);
    if (this.#transfer.refusesWrites() === null) replaceLostDisks(leader, this.#admission, this.#swapsNeedClearance);
    this.#transfer.yieldUnwilling(leader);
    this.#transfer.preferPriority(leader);
  }

  #electionTimedOut(lateMs: number): void {
    const { role } = this.#state;
    if (role === "follower" && lateMs >= this.#config.electionTimeoutMinMs) return this.#patience.waitOneBeat();
    this.#strangers.timedOut();
    if (this.#campaign?.asksForTransfer === true) return this.#transferPreVoteOver("timed-out");
    if (this.#config.enableAutoFailover && this.#promotable()) return this.#startPreVote("timeout");
    this.#endCampaign("timed-out");
    // Also who can't campaign stops naming a leader that it does not hear any more.
    this.#setRole("follower", null);
    this.#patience.resetElectionTimer();
  }

  // ---- elections (§5.2, §5.4.1; pre-vote: thesis §9.6) ----------------------------------------------

  #promotable(): boolean {
    // Also a server that its latest configuration leaves out: until that is committed, nobody else may have it,
    // and nobody can be elected without a log as long as ours (thesis §4.2.2).
    const { configuration, committedConfiguration, diskStalled, term } = this.#state;
    // The last term of all has no next one; nobody gets there within a thousand years (TERM_RISE_PER_S_MAX).
    if (diskStalled || this.#strangers.callUsRemoved || term >= INTEGER_MAX) return false;
    return isVoter(configuration, this.peer) || isVoter(committedConfiguration, this.peer);
  }

  #setWilling(willing: boolean): StepResult {
    if (willing === this.#state.willing) return ACCEPTED;
    this.#state.willing = willing;
    if (this.#leadership !== null) this.#transfer.yieldUnwilling(this.#leadership);
    else this.#patience.resetElectionTimer();
    // A leader that waits for somebody willing hears of it before the next beat.
    if (this.#leadership === null && this.#state.leader !== null) this.#answerHeartbeat(this.#state.leader, 0);
    return ACCEPTED;
  }

  /** With the leader's own consent, so nobody's stickiness or promise is in its way. */
  #reelect(): StepResult {
    if (this.#leadership === null) return this.#notLeader();
    this.#becomeFollower(this.#state.term, null);
    if (this.#promotable()) this.#startVote("transfer");
    return ACCEPTED;
  }

  #campaignOnRequest(): StepResult {
    if (this.#leadership !== null) return ACCEPTED;
    if (!this.#promotable()) return refused("NOT_PROMOTABLE", `${this.peer} is not a voter with a working disk`);
    if (this.#patience.keepsPromise) {
      return refused(
        "NOT_PROMOTABLE",
        "a leader's lease may still rest on our silence; retry after an election timeout",
      );
    }
    this.#startPreVote("requested");
    return ACCEPTED;
  }

  /** Design D6. Staggered by rank, so that two followers who see the same death do not split the vote. */
  #peerGone(peer: PeerKey): StepResult {
    if (this.#leadership !== null) {
      this.#leadership.unreachable(peer);
      return ACCEPTED;
    }
    const { leader, configuration } = this.#state;
    if (peer !== leader || this.#config.enableLease || this.#patience.isWaived) return ACCEPTED;
    this.#patience.waive();
    if (!this.#config.enableAutoFailover || !this.#state.willing || !this.#promotable()) return ACCEPTED;
    const others = voterKeys(configuration).filter((voter) => voter !== peer);
    const rank = others.indexOf(this.peer);
    // A share of the interval each: by whole intervals, one's second attempt would meet the next one's first.
    this.#patience.startFastAttempts((rank * FAST_PRE_VOTE_INTERVAL_MS) / others.length);
    if (rank === 0) this.#fastPreVote();
    return ACCEPTED;
  }

  #fastPreVote(): void {
    this.#patience.takeFastAttempt();
    if (this.#promotable()) this.#startPreVote("leader-gone");
  }

  /** Asks whether an election could be won, at the next term, without entering it. */
  #startPreVote(reason: CampaignReason): void {
    const { term, leader, nowMs } = this.#state;
    this.#endCampaign("timed-out");
    // A target of a forced transfer still hears its leader and goes on following it meanwhile.
    this.#setRole("pre-candidate", reason === "transfer" ? leader : null);
    this.#patience.resetElectionTimer(reason !== "transfer");
    this.#campaign = new Campaign(this.peer, term + 1, "pre-vote", reason, nowMs);
    this.#askForVotes("MsgPreVote", term + 1, reason);
    this.#countVote(this.peer, true);
  }

  #startVote(reason: CampaignReason): void {
    assert(this.#state.term < INTEGER_MAX, "only a node that is promotable campaigns");
    this.#endCampaign("won");
    const term = ++this.#state.term;
    this.#state.vote = this.peer;
    this.#setRole("candidate", null);
    this.#patience.stopFastAttempts();
    this.#patience.resetElectionTimer();
    this.#state.trace?.("BecomeCandidate", null, null);
    this.#campaign = new Campaign(this.peer, term, "vote", reason, this.#state.nowMs);
    // Our own vote is counted when it is durable, in #persisted.
    this.#askForVotes("MsgVote", term, reason);
  }

  #askForVotes(type: "MsgVote" | "MsgPreVote", term: number, reason: CampaignReason): void {
    for (const voter of voterKeys(this.#state.configuration)) {
      if (voter === this.peer) continue;
      this.#state.send({
        type,
        from: this.peer,
        to: voter,
        term,
        index: this.#log.lastIndex,
        logTerm: this.#log.lastTerm,
        transfer: reason === "transfer",
        priority: this.#config.nodePriority,
      });
    }
  }

  #handleVote(message: MsgVote): void {
    const { term, vote, leader } = this.#state;
    const isPreVote = message.type === "MsgPreVote";
    if (this.#campaign !== null && this.#campaign.term === message.term) this.#campaign.sawRival(message.from);
    const isFree = vote === message.from || (vote === null && leader === null);
    const free = isPreVote ? message.term > term && !this.#precedes(message) : isFree;
    const promised = !message.transfer && this.#patience.keepsPromise;
    const granted = free && !promised && this.#log.isUpToDate(message.index, message.logTerm);
    if (granted && !isPreVote) {
      this.#state.vote = message.from;
      this.#patience.stopFastAttempts();
      this.#patience.resetElectionTimer();
    }
    // A grant carries the term that was asked for; a rejection carries ours, so that a laggard catches up.
    this.#state.send({
      type: isPreVote ? "MsgPreVoteResp" : "MsgVoteResp",
      from: this.peer,
      to: message.from,
      term: granted ? message.term : term,
      reject: !granted,
    });
    if (isPreVote && !message.transfer && !granted && message.term > term) this.#goAhead();
  }

  /** Another sees now what we saw before, and can't win before us: we need not wait any longer. */
  #goAhead(): void {
    const { nowMs, willing } = this.#state;
    const isAsking = this.#campaign !== null && nowMs - this.#campaign.startedAtMs < FAST_PRE_VOTE_INTERVAL_MS;
    if (!this.#patience.isWaived || isAsking || !willing || !this.#config.enableAutoFailover) return;
    if (this.#promotable()) this.#startPreVote("leader-gone");
  }

  /**
   * Both of us saw the leader go and ask at the same time, with the same log: if each encouraged the other, each would
   * vote for itself. A refused pre-vote promises nothing, so this can cost time but never safety.
   */
  #precedes({ from, term, index, logTerm }: MsgVote): boolean {
    const campaign = this.#campaign;
    if (campaign === null || campaign.stage !== "pre-vote" || campaign.term !== term) return false;
    if (campaign.reason !== "leader-gone" || this.peer > from) return false;
    return index === this.#log.lastIndex && logTerm === this.#log.lastTerm;
  }

  #handleVoteResp(message: MsgVoteResp): void {
    const campaign = this.#campaign;
    if (campaign === null) return;
    const stage = message.type === "MsgPreVoteResp" ? "pre-vote" : "vote";
    if (campaign.stage !== stage) return;
    // A grant is for the term it names; one of an earlier campaign is stale.
    if (!message.reject && message.term !== campaign.term) return;
    this.#countVote(message.from, !message.reject);
  }

  #countVote(voter: PeerKey, granted: boolean): void {
    const campaign = this.#campaign!;
    campaign.count(voter, granted);
    const result = campaign.result(this.#state.configuration);
    if (result === "pending") return;
    if (result === "lost") {
      if (campaign.asksForTransfer) return this.#transferPreVoteOver("lost");
      this.#endCampaign("lost");
      this.#setRole("follower", null);
      return;
    }
    if (campaign.stage === "pre-vote") this.#startVote(campaign.reason);
    else this.#becomeLeader(campaign);
  }

  #endCampaign(result: "won" | "lost" | "timed-out" | "superseded"): void {
    if (this.#campaign === null) return;
    const failed = result === "lost" || result === "timed-out";
    if (failed && this.#campaign.reason === "timeout") this.#patience.campaignFailed();
    this.#state.outbox.emit({ kind: "election", record: this.#campaign.record(result, this.#state.nowMs) });
    this.#campaign = null;
  }

  #becomeLeader(campaign: Campaign): void {
    assert(this.#state.role === "candidate", "only a candidate wins a term");
    this.#endCampaign("won");
    this.#leadership = new Leader(this.#state, campaign.startedAtMs);
    this.#strangers.led();
    this.#setRole("leader", this.peer);
    this.#patience.stopElectionTimer();
    this.#state.trace?.("BecomeLeader", null, null);
    this.#leadership.open();
  }

  #endLeadership(successor: PeerKey | null): void {
    const leader = this.#leadership;
    if (leader === null) return;
    this.#leadership = null;
    if (leader.established) this.#freshness.raise(leader.quorumContactMs);
    leader.close();
    this.#transfer.leadershipEnded(successor);
  }

  #notLeader(): Refusal {
    const { leader } = this.#state;
    return refused("NOT_LEADER", leader === null ? "no leader is known here" : `the leader is ${leader}`);
  }

  // ---- replication, the leader's side (§5.3) --------------------------------------------------------

  #propose(data: readonly Uint8Array[]): StepResult {
    if (this.#leadership === null) return this.#notLeader();
    return this.#transfer.refusesWrites() ?? this.#leadership.propose(data);
  }

  #handleAppResp(message: MsgAppResp): void {
    if (this.#leaderOf(message.from)?.handleAppResp(message) !== true) return;
    this.#advanceCommit();
    if (this.#leadership !== null) this.#transfer.continue(this.#leadership);
  }

  #handleHeartbeatResp(message: MsgHeartbeatResp): void {
    const leader = this.#leaderOf(message.from);
    if (leader === null) return;
    leader.handleHeartbeatResp(message);
    this.#transfer.continue(leader);
    this.#transfer.yieldUnwilling(leader);
  }

  /** Us as the leader of this peer, if we are. */
  #leaderOf(peer: PeerKey): Leader | null {
    if (this.#leadership === null || this.#leadership.progress.has(peer)) return this.#leadership;
    this.refusals["not-a-member"]++;
    return null;
  }

  // ---- replication, the follower's side (§5.3) ------------------------------------------------------

  /** A legitimate leader of our term has spoken. */
  #followLeader(leader: PeerKey): void {
    const { role, term } = this.#state;
    this.#patience.heard(leader);
    this.#strangers.led();
    if (this.#campaign?.asksForTransfer === true) return;
    if (role !== "follower") this.#becomeFollower(term, leader);
    else this.#setRole("follower", leader);
    this.#patience.stopFastAttempts();
    this.#patience.resetElectionTimer();
  }

  #handleApp(message: MsgApp): void {
    this.#followLeader(message.from);
    const { commit } = this.#log;
    if (message.index < commit) return this.#acceptApp(message.from, commit, message.round);
    const verified = this.#log.tryAppend(message.index, message.logTerm, message.entries);
    if (verified === null) return this.#rejectApp(message);
    this.#state.followLog();
    this.#commitTo(Math.min(message.commit, verified));
    this.#acceptApp(message.from, verified, message.round);
  }

  #acceptApp(to: PeerKey, index: number, round: number): void {
    const head = this.#state.head("MsgAppResp", to);
    this.#freshness.answered(this.#state.term, round, this.#state.nowMs);
    this.#state.send({ ...head, index, reject: false, rejectHint: 0, logTerm: 0, round });
  }

  /** With a hint where the logs may agree, so that a conflict is passed over one term at a time. */
  #rejectApp({ from, index, logTerm: term, round }: MsgApp): void {
    this.#freshness.answered(this.#state.term, round, this.#state.nowMs);
    const rejectHint = this.#log.findConflictByTerm(index, term);
    const logTerm = this.#log.termAt(rejectHint) ?? 0;
    this.#state.send({ ...this.#state.head("MsgAppResp", from), index, reject: true, rejectHint, logTerm, round });
  }

  #handleHeartbeat({ from, commit, announced, echo, round }: MsgHeartbeat): void {
    this.#followLeader(from);
    this.#commitTo(commit);
    this.#freshness.announced(this.#state.term, announced, echo);
    this.#freshness.applied(this.#log.applied);
    this.#answerHeartbeat(from, round);
  }

  #answerHeartbeat(to: PeerKey, round: number): void {
    const { nowMs, term, willing, diskStalled: stalled } = this.#state;
    this.#freshness.answered(term, round, nowMs);
    const { nodePriority: priority } = this.#config;
    this.#state.send({ ...this.#state.head("MsgHeartbeatResp", to), round, priority, willing, stalled });
  }

  // ---- commitment (§5.3, §5.4.2) --------------------------------------------------------------------

  /** Only an entry of the leader's own term is committed by counting copies (figure 8, trap 1). */
  #advanceCommit(): void {
    const leader = this.#leadership;
    if (leader === null) return;
    const index = leader.copiedIndex();
    if (index <= this.#log.commit || this.#log.termAt(index) !== this.#state.term) return;
    const wasOpen = leader.committedInTerm;
    this.#commitTo(index);
    // What was committed may be our own removal.
    if (this.#leadership !== leader) return;
    if (!wasOpen && leader.committedInTerm) leader.termCommitted();
    leaveJoint(leader);
    this.#advanceCommit();
  }

  #commitTo(index: number): void {
    if (index <= this.#log.commit) return;
    const changes = this.#log.commitTo(index);
    this.#state.trace?.("Commit", null, null);
    for (const entry of changes) this.#configurationCommitted(entry);
  }

  #applied(index: number): StepResult {
    this.#log.appliedTo(index);
    this.#freshness.applied(index);
    this.#leadership?.applied();
    return ACCEPTED;
  }

  // ---- membership (§6; thesis §4) -------------------------------------------------------------------

  #proposeConfChange(change: ConfChange): StepResult {
    if (this.#leadership === null) return this.#notLeader();
    return this.#transfer.refusesWrites() ?? proposeConfChange(this.#leadership, change);
  }

  #configurationCommitted(entry: Entry): void {
    const state = this.#state;
    const configuration = state.configurationAt(entry.index);
    state.outbox.emit({ kind: "configuration", configuration, index: entry.index });
    state.trace?.("ApplyConfChange", null, decodeConfChange(entry.data));
    const leader = this.#leadership;
    if (leader === null) return;
    leader.configurationCommitted();
    this.#transfer.configurationCommitted(configuration);
    if (isVoter(state.configuration, this.peer)) return;
    // We led on, uncounted, until our own removal was committed (trap 12).
    leader.appointHeir();
    this.#becomeFollower(state.term, null);
  }

  #peerSeen(peer: PeerKey): StepResult {
    if (peer === this.peer) return ACCEPTED;
    this.#patience.takeHeart();
    this.#admission.introduce(peer);
    this.#leadership?.progress.get(peer)?.resume();
    return ACCEPTED;
  }

  /** Whoever refuses us says so each time we dial: it is reported once. */
  #removedBy(by: string): StepResult {
    if (this.#leadership !== null || !this.#strangers.removedBy(by)) return ACCEPTED;
    this.#endCampaign("superseded");
    this.#setRole("follower", null);
    this.#state.outbox.emit({ kind: "removed", by });
    return ACCEPTED;
  }

  #requestReplacement(nodeId: string): StepResult {
    if (this.#leadership === null) return this.#notLeader();
    return requestReplacement(this.#leadership, this.#admission, nodeId);
  }

  // ---- snapshots and compaction (§7) ----------------------------------------------------------------

  /** What a snapshot of the applied state at `index` must say about the log. */
  readonly snapshotMetaAt = (index: number): SnapshotMeta => this.#state.snapshotMetaAt(index);

  #compact(index: number, keepEntries: number): StepResult {
    // A snapshot from the leader may have overtaken our own while it was being written.
    const { snapshot } = this.#state;
    if (snapshot !== null && index <= snapshot.index) return ACCEPTED;
    const { compactionHoldEntriesMax } = this.#state.limits;
    const needed = Math.min(index - (this.#leadership?.neededFrom ?? Infinity), compactionHoldEntriesMax);
    this.#state.compact(index, Math.max(keepEntries, needed));
    return ACCEPTED;
  }

  #handleSnap({ from, snapshot, round }: MsgSnap): void {
    this.#followLeader(from);
    const { index, term, configuration } = snapshot;
    if (index <= this.#log.commit) return this.#acceptApp(from, this.#log.commit, round);
    if (this.#log.matches(index, term)) {
      // We hold everything it covers: keep our log, with what follows, and only learn of the commit (trap 27).
      this.#commitTo(index);
      return this.#acceptApp(from, this.#log.commit, round);
    }
    this.#state.restore(snapshot);
    this.#state.outbox.emit({ kind: "configuration", configuration, index });
    this.#acceptApp(from, index, round);
  }

  // ---- clients: linearizable reads (§8; thesis §6.4) ------------------------------------------------

  #readIndex(context: number): StepResult {
    if (this.#leadership !== null) return this.#leadership.registerRead(null, context);
    const { leader } = this.#state;
    if (leader === null) return refused("ERR_NO_LEADER", "no leader is known here; retry in a moment");
    this.#state.send({ ...this.#state.head("MsgReadIndex", leader), context });
    return ACCEPTED;
  }

  #handleReadIndex({ from, context }: MsgReadIndex): void {
    const registered = this.#leadership?.registerRead(from, context).ok === true;
    if (!registered) this.#state.answerRead(from, context, 0);
  }

  // ---- leadership transfer (thesis §3.10, design D7) ------------------------------------------------

  #startTransfer(target: PeerKey | null, force: boolean): StepResult {
    if (this.#leadership === null) return this.#notLeader();
    return this.#transfer.start(this.#leadership, target, force);
  }

  /** The leader asks us to campaign at once. */
  #handleTimeoutNow(message: MsgTimeoutNow): void {
    const { role, leader } = this.#state;
    if (message.from !== leader || (role !== "follower" && this.#campaign?.asksForTransfer !== true)) return;
    this.#transferTarget.told(message.attempt, role !== "follower");
    if (role !== "follower") return;
    if (!this.#promotable()) this.#transferTarget.refuse(leader);
    else if (message.force) this.#startPreVote("transfer");
    else this.#startVote("transfer");
  }

  /** Design D7: a forced transfer that the others refuse has changed nothing, and the leader hears so at once. */
  #transferPreVoteOver(result: "lost" | "timed-out"): void {
    const { leader } = this.#state;
    if (leader !== null) this.#transferTarget.refuse(leader);
    this.#endCampaign(result);
    this.#setRole("follower", leader);
    this.#patience.resetElectionTimer();
  }

  // ---- what leaves, and what became durable ---------------------------------------------------------

  takeReady(): Ready {
    this.#leadership?.sendWhatIsDue();
    const { term, vote, nowMs, limits, outbox, trace } = this.#state;
    const persist = outbox.takePersist(this.#log, term, vote, nowMs);
    const ready: Ready = {
      messages: outbox.takeMessages(),
      persist,
      committed: this.#log.takeCommitted(limits.applyBytesMax),
      readStates: outbox.takeReadStates(),
      events: outbox.takeEvents(),
      deadlineMs: this.#deadlineMs(),
    };
    trace?.("Ready", null, null);
    return ready;
  }

  #deadlineMs(): number {
    const leader = this.#leadership;
    if (leader === null) return Math.min(this.#patience.deadlineMs, this.#transfer.deadlineMs);
    const { beatDueMs, noticeDueMs, quorumLostAtMs } = leader;
    return Math.min(beatDueMs, noticeDueMs, quorumLostAtMs, this.#state.leaderStalledAtMs, this.#transfer.deadlineMs);
  }

  #persisted(sequence: number): StepResult {
    const { outbox, role, term } = this.#state;
    outbox.persisted(sequence);
    this.#log.writesDone(sequence);
    if (role === "candidate" && outbox.isDurable(term, this.peer)) this.#countVote(this.peer, true);
    // The leader counts its own copy only after its own sync, also when it is alone (trap 25).
    if (this.#leadership?.ownWriteDone() === true) this.#advanceCommit();
    return ACCEPTED;
  }

  // ---- looking in ----------------------------------------------------------------------------------

  /** What was refused without changing anything, counted by reason. */
  get refusals(): Record<RefusalReason, number> {
    return this.#admission.refusals;
  }

  status(): RaftStatus {
    return statusOf(this.peer, this.#state, this.#leadership, this.#transfer, this.#patience, this.#freshness);
  }

  /** For checkers and tests: the log as this node holds it. */
  readonly termAt = (index: number): number | undefined => this.#log.termAt(index);
  readonly entryAt = (index: number): Entry | undefined => this.#log.entryAt(index);
  readonly progressOf = (peer: PeerKey): Progress | undefined => this.#leadership?.progress.get(peer);
  /** What a member that holds our log as far as we know names as members, or the oldest of ours where it holds less. */
  readonly membersKnownTo = (peer: PeerKey): readonly PeerKey[] =>
    members(this.#state.configurationFrom(this.progressOf(peer)?.match ?? 0));
}
