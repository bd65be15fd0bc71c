// Who belongs to the cluster, as the leader changes it: for an operator, and by itself for the node ids that the founder
// invited.
//
//   invited ──seen──▶ learner ──healthy and caught up──▶ voter ──▶ settled
//
// - One change at a time: whatever is asked for here waits for its turn. The core refuses a second one anyway, also the
//   changes that it makes by itself (a lost disk is swapped); such a refusal is waited out for a while.
// - On a node that does not lead, everything is refused with NOT_LEADER. What is refused has changed nothing.
// - An invited node id is settled before it is removed: a leader that takes over in between must not add it again.

import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { isJoint, members, type ConfChange, type Configuration, type RaftStatus } from "../../core/raft/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { MemberChange } from "../../ports/cluster.ts";
import type { Lead, Members, Proposals } from "../../ports/consensus.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import { encodeClusterCommand, type ClusterCommand, type ClusterMachine } from "./cluster-machine.ts";
import * as limits from "./limits.ts";
import {
  diskIn,
  isCaughtUp,
  isEarlierChange,
  isLearning,
  lagOf,
  notLeader,
  refuseCutOff,
  refuseInUse,
  refuseRemoval,
  roleIn,
  settle,
  unknownMember,
  unseenText,
  type VoterView,
} from "./membership-rules.ts";
import { SoleHistory, type SoleHistoryOptions } from "./sole-history.ts";

export interface MembershipOptions extends SoleHistoryOptions {
  readonly consensus: Proposals & Lead & Members;
  readonly leadership: Pick<Leadership, "epoch">;
  readonly peers: Peers;
  readonly machine: ClusterMachine;
  /** The node ids that the founder of a cluster invites, once; nobody else does. */
  readonly expect?: readonly string[] | undefined;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #consensus: MembershipOptions["consensus"];
  readonly #clock: Clock;
  readonly #soleHistory: SoleHistory;
  readonly #retries = new Map<string, { readonly atMs: number; readonly pauseMs: number }>();
  readonly #pauses = new Set<{ readonly timer: Timer; readonly end: () => void }>();
  #state: "idle" | "running" | "stopped" = "idle";
  #timer: Timer | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #changes = 0;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#consensus = options.consensus;
    this.#clock = options.clock;
    this.#soleHistory = new SoleHistory(options);
  }

  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "running";
    this.#soleHistory.start();
    this.#lookAgain();
  }

  /** Who waits is told at once. */
  stop(): void {
    this.#state = "stopped";
    this.#soleHistory.stop();
    this.#timer?.cancel();
    this.#timer = null;
    for (const { timer, end } of this.#pauses) {
      timer.cancel();
      end();
    }
    this.#pauses.clear();
  }

  // ---- the operator's ------------------------------------------------------------------------------

  /**
   * What was done, in a sentence. Rejects with a TenureError where it was refused, and where only a part of it was done: a
   * node that was to be a voter and stays a learner is NOT_CAUGHT_UP, and the message says so.
   */
  async change(change: MemberChange): Promise<string> {
    const { op, nodeId } = change;
    const { logger } = this.#options;
    if (this.#changes >= limits.MEMBER_CHANGES_MAX) {
      const why = `${limits.MEMBER_CHANGES_MAX} changes of the membership wait already. Nothing was done; retry when they are through`;
      throw new TenureError("OVERLOADED", why);
    }
    this.#changes++;
    try {
      const message = await this.#change(change);
      logger.info({ event: "member-change", op, about: nodeId }, message);
      return message;
    } catch (error) {
      const code = TenureError.is(error) ? error.code : "unexpected";
      logger.warn({ event: "member-change", op, about: nodeId, error: code }, `not done as asked: ${String(error)}`);
      throw error;
    } finally {
      this.#changes--;
    }
  }

  #change(change: MemberChange): Promise<string> {
    const { op, nodeId } = change;
    switch (op) {
      case "add":
        return this.#add(nodeId, change.promote === true);
      case "promote":
        return this.#inTurn(() => this.#promote(nodeId));
      case "replace":
        return this.#inTurn(() => this.#replace(nodeId, change.force === true));
      case "remove":
        return this.#inTurn(() => this.#remove(nodeId, change.force === true));
      default:
        return assertNever(op, "Membership.change");
    }
  }

  async #add(nodeId: string, promote: boolean): Promise<string> {
    const peer = await this.#inTurn(async () => {
      const { configuration } = this.#leading();
      const fresh = this.#diskSeen(nodeId);
      // Asked again after half of it was done: this very disk goes on.
      if (promote && isLearning(configuration, fresh)) return fresh;
      refuseInUse(configuration, nodeId);
      if (fresh === null) throw new TenureError("MEMBER_UNKNOWN", unseenText(configuration, nodeId));
      await this.#submit(() => ({ operations: [{ op: "add-learner", peer: fresh }] }));
      return fresh;
    });
    const added = `${nodeId} was added as a learner`;
    if (!promote) return `${added}; promote it when it has caught up`;
    const stands = await this.#caughtUp(peer);
    if (stands !== null) throw new TenureError("NOT_CAUGHT_UP", `${added}, but is no voter yet: ${stands}`);
    try {
      // One that was invited too may have been promoted meanwhile.
      await this.#inTurn(async () => {
        if (!this.#leading().configuration.voters.includes(peer)) await this.#promote(nodeId);
      });
      return `${nodeId} was added, has caught up and is a voter now`;
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      if (error.code === "OUTCOME_UNKNOWN") {
        throw new TenureError("OUTCOME_UNKNOWN", `${added}; whether it is a voter is not known: ${error.message}`);
      }
      throw new TenureError("NOT_CAUGHT_UP", `${added}, but is no voter yet: ${error.message}`, { cause: error });
    }
  }

  /** Null when it has; otherwise where it stands. */
  async #caughtUp(peer: PeerKey): Promise<string | null> {
    const untilMs = this.#clock.monotonicMs() + limits.CATCH_UP_MS_MAX;
    for (;;) {
      const status = this.#consensus.status();
      if (status.role !== "leader") return "leadership has moved; promote it at the new leader";
      const follower = this.#consensus.followerOf(peer);
      if (isCaughtUp(follower, status)) return null;
      if (this.#state === "stopped") return "this node is stopping; promote it at the next leader";
      if (this.#clock.monotonicMs() >= untilMs) {
        const lag = lagOf(follower, status);
        return `it lacks ${lag} entries after ${limits.CATCH_UP_MS_MAX / 1_000} s; promote it when it has caught up`;
      }
      await this.#pause(limits.CATCH_UP_POLL_MS);
    }
  }

  async #promote(nodeId: string): Promise<string> {
    const status = this.#leading();
    const { configuration } = status;
    const role = roleIn(configuration, nodeId);
    const learner = diskIn(configuration.learners, nodeId);
    if (role === null) throw unknownMember(nodeId);
    if (learner === null) throw new TenureError("CONF_CHANGE_INVALID", `${nodeId} is a ${role}, not a learner`);
    if (diskIn(configuration.voters, nodeId) !== null) {
      const why = `${learner} is a new disk of the voter ${nodeId}; ask for \`replace\`, which swaps them`;
      throw new TenureError("CONF_CHANGE_INVALID", why);
    }
    const follower = this.#consensus.followerOf(learner);
    if (!isCaughtUp(follower, status)) {
      const why =
        follower?.unhealthy === true
          ? `${nodeId} does not answer; as a voter it would only count against the majority`
          : `${nodeId} lacks ${lagOf(follower, status)} entries; promote it when it has caught up`;
      throw new TenureError("NOT_CAUGHT_UP", why);
    }
    await this.#submit(() => ({ operations: [{ op: "add-voter", peer: learner }] }));
    return `${nodeId} is a voter now`;
  }

  async #replace(nodeId: string, force: boolean): Promise<string> {
    const status = this.#leading();
    const { voters } = status.configuration;
    if (roleIn(status.configuration, nodeId) === null) throw unknownMember(nodeId);
    const coming = this.#diskSeen(nodeId);
    const swapped = voters.map((peer) => (nodeIdOf(peer) === nodeId ? (coming ?? peer) : peer));
    refuseCutOff(status.peer, voters, swapped, this.#voters(status));
    const old = members(status.configuration).filter((peer) => nodeIdOf(peer) === nodeId && peer !== coming);
    if (!force && coming !== null && old.length > 0) await this.#soleHistory.refuse(status.configuration, old);
    const result = this.#consensus.replace(nodeId);
    if (!result.ok) throw new TenureError(result.code, result.message);
    return `the new disk ${coming ?? `of ${nodeId}`} is brought up to date and then takes the place of the old one`;
  }

  async #remove(nodeId: string, force: boolean): Promise<string> {
    const disks = ({ configuration }: RaftStatus): PeerKey[] =>
      members(configuration).filter((peer) => nodeIdOf(peer) === nodeId);
    const judged = (): ConfChange => {
      const status = this.#leading();
      const leaving = disks(status);
      if (leaving.length === 0) throw unknownMember(nodeId);
      refuseRemoval(status, leaving, this.#voters(status));
      return { operations: leaving.map((peer) => ({ op: "remove", peer })) };
    };
    judged();
    const status = this.#leading();
    if (!force) await this.#soleHistory.refuse(status.configuration, disks(status));
    if (this.#options.machine.invited.includes(nodeId)) await this.#command({ kind: "settled", nodeId });
    await this.#submit(judged, (configuration) => roleIn(configuration, nodeId) === null);
    const isSelf = nodeId === nodeIdOf(this.#consensus.peer);
    return isSelf ? `${nodeId} was removed and hands leadership over` : `${nodeId} was removed`;
  }

  // ---- the invited ---------------------------------------------------------------------------------

  #lookAgain(): void {
    if (this.#state !== "running") return;
    const pauseMs = this.#isWaitedFor ? limits.JOINERS_CHECK_MS : limits.JOINERS_IDLE_CHECK_MS;
    this.#timer = this.#clock.setTimer(this.#clock.monotonicMs() + pauseMs, () => {
      void this.#look().then(() => this.#lookAgain());
    });
  }

  /** One step for one of them. */
  async #look(): Promise<void> {
    const { machine, expect = [] } = this.#options;
    if (!this.#isWaitedFor || !this.#mayChange()) return;
    await this.#inTurn(async () => {
      if (!this.#mayChange()) return;
      const isFounder = this.#isFounder;
      for (const nodeId of isFounder ? [nodeIdOf(this.#consensus.peer)] : machine.invited) {
        if ((this.#retries.get(nodeId)?.atMs ?? -Infinity) > this.#clock.monotonicMs()) continue;
        const step = isFounder ? () => this.#invite(expect) : this.#nextStep(nodeId);
        if (step !== null) return this.#attempt(nodeId, step);
      }
      return undefined;
    });
  }

  get #isFounder(): boolean {
    const { machine, expect = [] } = this.#options;
    return !machine.wasInvited && expect.length > 0;
  }

  get #isWaitedFor(): boolean {
    return this.#isFounder || this.#options.machine.invited.length > 0;
  }

  #mayChange(): boolean {
    const { term, transfer, configuration } = this.#consensus.status();
    return this.#options.leadership.epoch() === term && transfer === null && !isJoint(configuration);
  }

  #nextStep(nodeId: string): (() => Promise<unknown>) | null {
    const status = this.#consensus.status();
    const { voters, learners } = status.configuration;
    if (diskIn(voters, nodeId) !== null) return () => this.#command({ kind: "settled", nodeId });
    const learner = diskIn(learners, nodeId);
    const fresh = this.#diskSeen(nodeId);
    if (learner !== null) {
      if (!isCaughtUp(this.#consensus.followerOf(learner), status)) return null;
      return () => this.#submit(() => ({ operations: [{ op: "add-voter", peer: learner }] }));
    }
    return fresh === null ? null : () => this.#submit(() => ({ operations: [{ op: "add-learner", peer: fresh }] }));
  }

  async #invite(expect: readonly string[]): Promise<void> {
    const nodeIds = expect.filter((nodeId) => nodeId !== nodeIdOf(this.#consensus.peer)).slice(0, limits.INVITED_MAX);
    await this.#command({ kind: "invite", nodeIds });
    this.#options.logger.info({ event: "invited", nodes: nodeIds.join(",") }, "nodes are invited to join the cluster");
  }

  /** What is refused is tried again, later each time. */
  async #attempt(nodeId: string, step: () => Promise<unknown>): Promise<void> {
    try {
      await step();
      this.#retries.delete(nodeId);
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      const pauseMs = Math.min(
        2 * (this.#retries.get(nodeId)?.pauseMs ?? limits.JOIN_RETRY_MS_MIN / 2),
        limits.JOIN_RETRY_MS_MAX,
      );
      this.#retries.set(nodeId, { atMs: this.#clock.monotonicMs() + pauseMs, pauseMs });
      const fields = { event: "join-delayed", about: nodeId, error: error.code, retryMs: pauseMs };
      this.#options.logger.warn(fields, error.message);
    }
  }

  /** In its turn: whoever asks twice is answered twice, and it is written once. */
  async resume(): Promise<void> {
    this.#leading();
    await this.#inTurn(async () => {
      if (this.#options.machine.isPaused) await this.#command({ kind: "resumed" });
    });
  }

  // ---- how a change is made ------------------------------------------------------------------------

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  #leading(): RaftStatus {
    const status = this.#consensus.status();
    if (this.#options.leadership.epoch() === status.term) return status;
    throw notLeader(status);
  }

  /**
   * Waits while an earlier change is under way. `judged` decides before each try: what was healthy may be silent by now.
   * `isDone`: a leader that is removed steps down with the commit, before its own disk may have the entry, and is then
   * told that it can't know; but the committed membership says it.
   */
  async #submit(judged: () => ConfChange, isDone: (committed: Configuration) => boolean = () => false): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + limits.PENDING_PATIENCE_MS;
    for (;;) {
      const outcome = await this.#consensus.changeMembership(judged());
      if (outcome.outcome === "unknown" && isDone(this.#consensus.status().committedConfiguration)) return;
      const isPending = outcome.outcome === "refused" && isEarlierChange(outcome, this.#consensus.status());
      if (!isPending || this.#clock.monotonicMs() >= untilMs || this.#state === "stopped") {
        return settle(outcome, this.#consensus.status());
      }
      await this.#pause(limits.PENDING_POLL_MS);
    }
  }

  async #command(command: ClusterCommand): Promise<void> {
    settle(await this.#consensus.propose([encodeClusterCommand(command)]), this.#consensus.status());
  }

  #voters(status: RaftStatus): VoterView {
    const consensus = this.#consensus;
    return {
      isHealthy: (peer) => consensus.followerOf(peer)?.unhealthy === false,
      isInStep: (peer) => isCaughtUp(consensus.followerOf(peer), status),
      membersKnownTo: (peer) => consensus.membersKnownTo(peer),
    };
  }

  #diskSeen(nodeId: string): PeerKey | null {
    return this.#options.peers.list().find((link) => link.nodeId === nodeId)?.peer ?? null;
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(this.#clock.monotonicMs() + forMs, () => {
        this.#pauses.delete(pause);
        resolve();
      });
      const pause = { timer, end: resolve };
      this.#pauses.add(pause);
    });
  }
}
