// The cluster, as one node sees it and as an operator steers it (ports/cluster.ts): it joins consensus, the peers, the
// health core and the membership, and runs the loops that feed them: beacons, the invited, and one tick a second.
//
//   idle ─start▶ running ─stop▶ stopped        each safe to call twice
//
// - Whatever is shown comes from memory at the moment of the call.
// - Readiness never depends on leading (trap 47): a node is ready once it has had all that its leader had committed when it
//   first spoke to it, and stays ready until it fails or is removed.

import type { CoordinatorsSeen } from "../../core/health/coordinators.ts";
import type { TransactionsSeen } from "../../core/health/transactions.ts";
import type { MeshSeen } from "../../core/health/mesh.ts";
import { type ErrorCode, TenureError } from "../../core/kit/errors.ts";
import {
  Health,
  type Beacon,
  type HealthOutput,
  type Moment,
  type Observation,
  type SigningHeld,
} from "../../core/health/index.ts";
import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { isJoint, isMember, type RaftEvent, type RaftStatus } from "../../core/raft/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type {
  Cluster,
  ClusterView,
  DiskView,
  LineView,
  MemberChange,
  MemberChangeView,
  SnapshotView,
  TransferView,
} from "../../ports/cluster.ts";
import type { Lead, Members, Proposals } from "../../ports/consensus.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import type { HealthStats } from "../../ports/server-stats.ts";
import { BeaconLoop, beaconPoints } from "./beacon.ts";
import { codeFields, logConfiguration, logOutput } from "./cluster-log.ts";
import { ClockWatch } from "./clock-watch.ts";
import type { ClusterMachine } from "./cluster-machine.ts";
import {
  isConfirmedLeader,
  isOnlyVoter,
  leaderView,
  memberViews,
  type OwnAddress,
  type Surroundings,
  membersSeen,
  REMOVED,
  whyNotReady,
} from "./cluster-view.ts";
import { CLUSTER_TICK_MS } from "./limits.ts";
import { drainNode, Drains, Willingness } from "./node-drain.ts";
import { Membership } from "./membership.ts";
import { notLeader, transferTarget } from "./membership-rules.ts";
import type { SoleHistoryOptions } from "./sole-history.ts";

export interface ClusterOptions {
  readonly clusterId: string;
  readonly version: string;
  readonly consensus: Proposals & Lead & Members;
  /** Whether this node leads, for its services: where it may have a worker, only when it is cleared of it. */
  readonly leadership: Pick<Leadership, "epoch" | "subscribe">;
  /** Where nodes may have workers there is more to it than consensus knows. */
  readonly transfer: Lead["transfer"];
  readonly peers: Peers;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly machine: ClusterMachine;
  readonly own: OwnAddress;
  readonly electionTimeoutMaxMs: number;
  readonly disk: { state(): DiskView["state"]; freeBytes(): number | null };
  readonly snapshots: {
    /** What is known of the newest durable one, from memory. */
    newest(): SnapshotView | null;
    save(): Promise<SnapshotView>;
    read(): Promise<{ readonly view: SnapshotView; readonly bytes: Uint8Array } | null>;
  };
  /** How often the event loop was held up since the start. */
  readonly stalls?: (() => number) | undefined;
  /** How much of its quota the history takes. */
  readonly historyQuota?: (() => Observation["historyQuota"]) | undefined;
  /** What the last replay of the mesh's merged state has found; null: nothing. */
  readonly replayProblem?: (() => string | null) | undefined;
  readonly signingHeld?: (() => SigningHeld | null) | undefined;
  /** What this node sees of other sites, for its alerts. */
  readonly mesh?: (() => MeshSeen | null) | undefined;
  /** The same of the transaction coordinators. */
  readonly coordinators?: (() => CoordinatorsSeen | null) | undefined;
  /** What this node has applied of transactions over islands. */
  readonly transactions?: (() => TransactionsSeen | null) | undefined;
  /** What this node lacks of it. */
  readonly history?: (() => Observation["history"]) | undefined;
  /** What a member lacks of it, this one too; null: it does not say. */
  readonly lacks?: SoleHistoryOptions["lacks"];
  /** The same of receipts of other sites' events. */
  readonly receipts?: (() => Observation["receipts"]) | undefined;
  readonly lacksReceipts?: SoleHistoryOptions["lacksReceipts"];
  /** That this node shows now. */
  readonly certificates?: (() => Observation["certificates"]) | undefined;
  /** The node ids that a founder invites. */
  readonly expect?: readonly string[] | undefined;
  /** An operator wants this node out, or in again. */
  readonly onDrain?: ((isWanted: boolean) => void) | undefined;
}

export class ClusterService implements Cluster {
  /** Whether this node wants to lead, and what speaks against it. */
  readonly willingness: Willingness;
  readonly #options: ClusterOptions;
  readonly #drains: Drains;
  readonly #consensus: ClusterOptions["consensus"];
  readonly #clock: Clock;
  readonly #around: Surroundings;
  readonly #health: Health;
  readonly #clocks: ClockWatch;
  readonly #membership: Membership;
  readonly #beacons: BeaconLoop;
  #state: "idle" | "running" | "stopped" = "idle";
  #stops: readonly (() => void)[] = [];
  /** The last epoch that this node led in, as was heard. */
  #ledEpoch: number | null = null;
  #timer: Timer | null = null;
  #isDraining = false;
  #failure: string | null = null;
  #hasCaughtUp = false;
  #freshAsOfMs = 0;
  #transfersEnded = 0;
  /** Whether the end of its membership is in the log: once each time. */
  #isRemovalTold = false;

  constructor(options: ClusterOptions) {
    const { consensus, peers, clock, random, machine, own } = options;
    this.#options = options;
    this.willingness = new Willingness(consensus);
    this.#drains = new Drains((isDrained) => this.willingness.set("drained", isDrained), options.onDrain);
    this.#consensus = consensus;
    this.#clock = clock;
    this.#around = { consensus, peers, own };
    this.#health = new Health({
      self: consensus.peer,
      startedAt: this.#moment(),
      chainHashAt: (index) => machine.hashAt(index),
      isMember: (peer) => {
        const { configuration, committedConfiguration } = consensus.status();
        return isMember(configuration, peer) || isMember(committedConfiguration, peer);
      },
      ownTerm: () => consensus.status().term,
    });
    this.#clocks = new ClockWatch({ consensus, clock, willingness: this.willingness });
    this.#membership = new Membership(options);
    this.#beacons = new BeaconLoop({
      peers,
      clock,
      random: random.fork("beacons"),
      digest: machine.digest,
      say: () => this.#beacon(),
      heard: (from, beacon) => this.#heard(from, beacon),
    });
  }

  /** In the turn in which consensus began: elections that are won before are in no history and in no count. */
  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "running";
    this.#stops = [
      this.#consensus.subscribe((event) => this.#event(event)),
      this.#options.leadership.subscribe(() => this.#led()),
    ];
    // Whoever starts it later misses what happened before; who leads it need not miss.
    const { role, term, leader } = this.#consensus.status();
    if (leader !== null) this.#event({ kind: "role", role, term, leader });
    this.#membership.start();
    this.#beacons.start();
    this.#tick();
  }

  stop(): void {
    this.#state = "stopped";
    for (const stop of this.#stops) stop();
    this.#timer?.cancel();
    this.#timer = null;
    this.#beacons.stop();
    this.#membership.stop();
  }

  /** From now on this node, while it leads, says that it is on its way out. */
  setDraining(isDraining: boolean): void {
    this.#isDraining = isDraining;
  }

  /** The disk or the engine has failed: this node is of no use until it is started again. */
  setFailed(reason: string): void {
    this.#failure = reason;
  }

  // ---- what it shows -------------------------------------------------------------------------------

  view(): ClusterView {
    const { clusterId, version, machine, disk, snapshots } = this.#options;
    const status = this.#status();
    const nowMs = this.#clock.monotonicMs();
    const notReadyReason = this.#notReadyReason(status);
    return {
      clusterId,
      nodeId: nodeIdOf(status.peer),
      incarnation: incarnationOf(status.peer),
      version,
      backend: "raft",
      role: this.#role(status, nowMs),
      term: status.term,
      leader: leaderView(this.#around, status),
      commit: status.commit,
      applied: status.applied,
      firstIndex: status.firstIndex,
      lastIndex: status.lastIndex,
      stalenessMs: this.#stalenessMs(status, nowMs),
      isJoint: isJoint(status.configuration),
      members: memberViews(this.#around, status, nowMs),
      elections: this.#health.elections,
      alerts: this.#health.alerts,
      snapshot: snapshots.newest(),
      disk: { state: disk.state(), freeBytes: disk.freeBytes() },
      ancestors: machine.ancestors,
      isPaused: machine.isPaused,
      isDraining: this.#drains.isDrained,
      isReady: notReadyReason === null,
      notReadyReason,
    };
  }

  line(): LineView {
    const { ancestors, isPaused } = this.#options.machine;
    if (ancestors.length === 0 && !this.#hasCaughtUp) this.#status();
    return { ancestors: ancestors.length > 0 || this.#hasCaughtUp ? ancestors : null, isPaused };
  }

  currentRole(): ClusterView["role"] {
    return this.#role(this.#status(), this.#clock.monotonicMs());
  }

  stats(): HealthStats {
    return this.#health.stats(this.#clock.monotonicMs());
  }

  #role(status: RaftStatus, nowMs: number): ClusterView["role"] {
    // Design D17: who does not lead has nothing to hand over, and is a standby like any other.
    if (this.#isDraining && status.role === "leader") return "DRAINING";
    return isConfirmedLeader(status, nowMs, this.#options.electionTimeoutMaxMs) ? "LEADER" : "STANDBY";
  }

  #stalenessMs(status: RaftStatus, nowMs: number): number | null {
    if (isConfirmedLeader(status, nowMs, this.#options.electionTimeoutMaxMs)) {
      // Another may lead since: as far as anybody knows it was still this node when its last confirmed round left.
      return isOnlyVoter(status) ? 0 : Math.max(0, nowMs - status.quorumContactMs);
    }
    return this.#freshAsOfMs === 0 ? null : Math.max(0, nowMs - this.#freshAsOfMs);
  }

  #notReadyReason(status: RaftStatus): string | null {
    return this.#failure ?? whyNotReady(status, this.#hasCaughtUp, this.#health.alerts);
  }

  /** As its services see it: established is who leads. Whatever is worth remembering is remembered whenever one is taken. */
  #status(): RaftStatus {
    const status = this.#consensus.status();
    const established = status.established && this.#options.leadership.epoch() === status.term;
    this.#freshAsOfMs = Math.max(this.#freshAsOfMs, status.freshAsOfMs);
    if (this.#freshAsOfMs > 0 || established) this.#hasCaughtUp = true;
    return established === status.established ? status : { ...status, established };
  }

  /** The time of day, where a majority of the voters' clocks agrees on it; null: none does. */
  believedMs(): number | null {
    return this.#clocks.believedMs();
  }

  // ---- how it is steered ---------------------------------------------------------------------------

  async catchUp(timeoutMs: number): Promise<boolean> {
    return (await this.#consensus.readIndex(timeoutMs)) !== null;
  }

  async transfer(target: string | null, force: boolean): Promise<TransferView> {
    const status = this.#leading();
    const peer = this.#targetOf(status, target);
    if (status.transfer !== null) {
      throw new TenureError("TRANSFER_IN_PROGRESS", "leadership is being handed over already; wait for its end");
    }
    const ended = this.#transfersEnded;
    const { success, isUnknown, message, newLeaderId } = await this.#options.transfer(peer, force);
    if (isUnknown) throw new TenureError("OUTCOME_UNKNOWN", `${message}. Look who leads before asking again.`);
    if (!success) {
      // Every transfer that began has told its end; one that the core refused has not.
      if (this.#transfersEnded === ended) this.#logRefused("transfer", "ERR_LEADER_TRANSFER_FAILED", message);
      throw new TenureError("ERR_LEADER_TRANSFER_FAILED", message);
    }
    const [oldLeaderId, newId] = [nodeIdOf(status.peer), newLeaderId === null ? null : nodeIdOf(newLeaderId)];
    return { success, message, oldLeaderId, newLeaderId: newId };
  }

  async drain(isDraining: boolean, force: boolean): Promise<void> {
    const { consensus, leadership, clock } = this.#options;
    const drains = this.#drains;
    const transfer = (): Promise<TransferView> => this.transfer(null, false);
    if (isDraining) await drainNode({ drains, consensus, leadership, clock, transfer }, force);
    else drains.undo();
  }

  #targetOf(status: RaftStatus, target: string | null): PeerKey | null {
    try {
      return transferTarget(status, target);
    } catch (error) {
      if (TenureError.is(error)) this.#logRefused("transfer", error.code, error.message);
      throw error;
    }
  }

  #logRefused(event: string, code: ErrorCode, message: string): void {
    this.#options.logger.warn({ event, success: false, ...codeFields(code) }, message);
  }

  async changeMember(change: MemberChange): Promise<MemberChangeView> {
    const message = await this.#membership.change(change);
    const members = memberViews(this.#around, this.#consensus.status(), this.#clock.monotonicMs());
    return { op: change.op, nodeId: change.nodeId, message, members };
  }

  resume(): Promise<void> {
    return this.#membership.resume();
  }

  saveSnapshot(): Promise<SnapshotView> {
    return this.#options.snapshots.save();
  }

  readSnapshot(): Promise<{ readonly view: SnapshotView; readonly bytes: Uint8Array } | null> {
    return this.#options.snapshots.read();
  }

  #leading(): RaftStatus {
    const status = this.#status();
    if (status.established) return status;
    throw notLeader(status);
  }

  // ---- the loop ------------------------------------------------------------------------------------

  #event(event: RaftEvent): void {
    if (event.kind === "transfer") this.#transfersEnded++;
    if (event.kind === "configuration") logConfiguration(this.#options.logger, event.configuration, event.index);
    // A leader that may not act yet is none for those who watch.
    if (event.kind !== "established") this.#act(this.#health.event(this.#moment(), event));
  }

  #led(): void {
    const epoch = this.#options.leadership.epoch();
    const isNew = epoch !== null && epoch !== this.#ledEpoch;
    this.#ledEpoch = epoch;
    if (isNew) this.#act(this.#health.event(this.#moment(), { kind: "established", term: epoch, index: 0 }));
  }

  #tick(): void {
    if (this.#state !== "running") return;
    const { disk, stalls, historyQuota, history, receipts, replayProblem, signingHeld, mesh, peers } = this.#options;
    const { certificates, machine, coordinators, transactions } = this.#options;
    const seen = {
      ...membersSeen(peers, this.#status()),
      disk: disk.state(),
      historyQuota: historyQuota?.() ?? "ok",
      history: history?.(),
      receipts: receipts?.(),
      replayProblem: replayProblem?.() ?? null,
      signingHeld: signingHeld?.() ?? null,
      mesh: mesh?.() ?? null,
      coordinators: coordinators?.() ?? null,
      transactions: transactions?.() ?? null,
      stalls: stalls?.() ?? 0,
      clock: this.#clocks.tick(),
      certificates: certificates?.(),
      isPaused: machine.isPaused,
    };
    this.#act(this.#health.tick(this.#moment(), seen));
    this.#tellRemoval();
    this.#timer = this.#clock.setTimer(this.#clock.monotonicMs() + CLUSTER_TICK_MS, () => this.#tick());
  }

  /** Nobody speaks to it any more, so nothing else would say why. */
  #tellRemoval(): void {
    const isRemoved = this.#notReadyReason(this.#status()) === REMOVED;
    if (isRemoved && !this.#isRemovalTold) this.#options.logger.warn({ event: "removed" }, `this node ${REMOVED}`);
    this.#isRemovalTold = isRemoved;
  }

  #heard(from: PeerKey, beacon: Beacon): void {
    this.#clocks.heard(from, beacon.wallMs);
    this.#act(this.#health.beacon(this.#moment(), from, beacon));
  }

  #act(outputs: readonly HealthOutput[]): void {
    for (const output of outputs) {
      logOutput(this.#options.logger, output);
      if (output.kind === "step-down") this.#consensus.stepDown();
    }
  }

  #beacon(): Beacon {
    const { machine } = this.#options;
    const { role, term, leader, established, applied } = this.#status();
    return {
      role,
      term,
      leader,
      established,
      handedTerm: this.#health.handedTerm,
      applied,
      chain: beaconPoints(machine.head, (index) => machine.hashAt(index)),
      wallMs: this.#clock.wallMs(),
    };
  }

  #moment(): Moment {
    return { nowMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
  }
}
