// The health of one node as a step: events of its Raft, beacons of the others and the time go in; what has to be logged
// or done comes out, and the numbers and alerts can be read at any time. No clock and no I/O.
//
// Beacons are what others say, and one of them may be wrong (trap 31). So a beacon of a peer that is no member, or of a
// term that no honest cluster has reached, changes nothing; and a claim of leadership asks this node to step down at most
// once: whoever is elected afterwards is not judged by what was said before.
//
// Alerts that rest on a rate or on a duration are judged at the tick only: an election that this node lost counts as failed
// for the moment between its own defeat and the first word of the winner, and nobody should be woken for that.

import { judgeCoordinators } from "./coordinators.ts";
import { judgeMesh } from "./mesh.ts";
import { judgeTransactions } from "./transactions.ts";
import type { AlertView } from "../../ports/cluster.ts";
import type { HealthStats } from "../../ports/server-stats.ts";
import { assertNever } from "../kit/assert.ts";
import { incarnationOf, nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { TERM_JUMP_MAX } from "../kit/limits.ts";
import type { Configuration, ElectionRecord, RaftEvent, TransferResult } from "../raft/types.ts";
import { AlertBoard } from "./alert-board.ts";
import { ElectionHistory } from "./election-history.ts";
import { ElectionStats } from "./election-stats.ts";
import { Failovers } from "./failovers.ts";
import * as limits from "./limits.ts";
import {
  judgeCertificates,
  judgeClock,
  judgeClones,
  judgeHistory,
  judgeRefused,
  judgeSigning,
} from "./machine-alerts.ts";
import type { Beacon, HealthOutput, KeptElection, Moment, Observation } from "./outputs.ts";
import { SplitBrain, type SplitBrainFinding } from "./split-brain.ts";

export interface HealthOptions {
  readonly self: PeerKey;
  readonly startedAt: Moment;
  /** The hash over everything that this node had applied at an index; null where it does not know. */
  readonly chainHashAt: (index: number) => number | null;
  /** Of the configuration in force, or of the committed one. */
  readonly isMember: (peer: PeerKey) => boolean;
  /** The term of this node's Raft now. */
  readonly ownTerm: () => number;
}

export class Health {
  /** Leaders of terms that were over, as beacons told. */
  staleTerms = 0;
  /** Of peers that are no members, or of wild terms. */
  ignoredBeacons = 0;
  readonly #self: PeerKey;
  readonly #isMember: (peer: PeerKey) => boolean;
  readonly #ownTerm: () => number;
  readonly #board = new AlertBoard();
  readonly #history = new ElectionHistory();
  readonly #elections = new ElectionStats();
  readonly #failovers = new Failovers();
  readonly #splitBrain: SplitBrain;
  /** Members that do not answer this leader; empty while it does not lead. */
  readonly #unresponsive = new Set<PeerKey>();
  readonly #staleTold = new Map<PeerKey, number>();
  #splitBrains = 0;
  #transfers = { succeeded: 0, failed: 0 };
  #handedTerm = 0;
  /** The term that this node leads; 0 while it does not. */
  #ledTerm = 0;
  /** The highest term of which this node's own Raft knew the leader. */
  #knownTerm = 0;
  readonly #answeredClaims = new Set<number>();
  #leaderlessSinceMs: number | null;
  #lastLeader: PeerKey | null = null;
  #suspectSinceMs = 0;
  #stalls = 0;
  #stalledUntilMs = -Infinity;
  #clockSkewMs: number | null = null;
  #nowMs: number;

  constructor(options: HealthOptions) {
    this.#self = options.self;
    this.#isMember = options.isMember;
    this.#ownTerm = options.ownTerm;
    this.#splitBrain = new SplitBrain(options.self, options.chainHashAt);
    this.#leaderlessSinceMs = options.startedAt.nowMs;
    this.#nowMs = options.startedAt.nowMs;
  }

  // ---- what can be read ----------------------------------------------------------------------------

  /** The gravest first. */
  get alerts(): readonly AlertView[] {
    return this.#board.alerts;
  }

  /** Newest first; `startedAtMs` is on the wall clock. */
  get elections(): readonly KeptElection[] {
    return this.#history.records;
  }

  /** The last term that this node won because a leader asked it to; 0 for none. */
  get handedTerm(): number {
    return this.#handedTerm;
  }

  stats(nowMs: number = this.#nowMs): HealthStats {
    return {
      electionsStarted: this.#elections.started,
      electionsWon: this.#elections.won,
      electionDurationMs: this.#elections.durationMs.snapshot(),
      electionSuccessRate: this.#elections.successRate(nowMs),
      failovers: this.#failovers.count,
      transfers: { ...this.#transfers },
      splitBrains: this.#splitBrains,
      clockSkewMs: this.#clockSkewMs,
    };
  }

  // ---- events of this node's Raft ------------------------------------------------------------------

  event(at: Moment, event: RaftEvent): readonly HealthOutput[] {
    this.#nowMs = at.nowMs;
    switch (event.kind) {
      case "role":
        return this.#roleChanged(at, event);
      case "established":
        this.#elections.established(at.nowMs);
        return [];
      case "election":
        return this.#election(at, event.record);
      case "transfer":
        return this.#transfer(event.result);
      case "configuration":
        return this.#configuration(at, event.configuration);
      case "leader-suspect":
        return this.#leaderSuspect(at, event);
      case "follower-unresponsive": {
        const nodeId = nodeIdOf(event.peer);
        this.#unresponsive.add(event.peer);
        const message = `${nodeId} does not answer this leader; writes go on while a majority does. See that it runs and can be reached`;
        return this.#board.raise(at, "follower_unresponsive", message, nodeId);
      }
      case "follower-recovered":
        this.#unresponsive.delete(event.peer);
        return this.#clearResponsive(at);
      case "stranger-leads":
        return this.#strangerLeads(at, event);
      case "removed": {
        const message = `${event.by} says that this disk was removed from the cluster: this node does not campaign. If that is right, stop it; to add it again, start it with an empty data directory`;
        return this.#board.raise(at, "node_removed", message, nodeIdOf(this.#self));
      }
      default:
        return assertNever(event, "Health.event");
    }
  }

  #leaderSuspect(at: Moment, { leader, silentMs }: RaftEvent & { readonly kind: "leader-suspect" }): HealthOutput[] {
    // A node that led itself until now has not missed the leader before it.
    if (leader !== this.#lastLeader) return [];
    this.#suspectSinceMs = at.nowMs;
    const nodeId = leader === null ? null : nodeIdOf(leader);
    const message = `the leader ${nodeId ?? ""} has been silent for ${Math.round(silentMs)} ms; if it stays so, another is elected`;
    return [
      ...this.#board.clearUnless(at, "leader_suspect", (other) => other === nodeId),
      ...this.#board.raise(at, "leader_suspect", message, nodeId),
    ];
  }

  #strangerLeads(at: Moment, { peer, term }: RaftEvent & { readonly kind: "stranger-leads" }): HealthOutput[] {
    const nodeId = nodeIdOf(peer);
    const message = `${nodeId} leads, or asks for our vote, in term ${term}, and is no member that this node knows; none of those that it knows vouches for it. If the members changed while this node was away, list the present ones in peer.trust and restart it; if not, ${nodeId} does not belong here`;
    return this.#board.raise(at, "leader_unknown", message, nodeId);
  }

  #roleChanged(at: Moment, event: RaftEvent & { readonly kind: "role" }): HealthOutput[] {
    const { role, term, leader } = event;
    const outputs: HealthOutput[] = [];
    this.#ledTerm = role === "leader" ? term : 0;
    this.#elections.roleChanged(role, term, leader !== null);
    // Who leads no more knows nothing of the others any more.
    if (role !== "leader") {
      this.#unresponsive.clear();
      outputs.push(...this.#clearResponsive(at));
    }
    if (leader === null) {
      this.#leaderlessSinceMs ??= at.nowMs;
      return outputs;
    }
    this.#leaderlessSinceMs = null;
    this.#lastLeader = leader;
    this.#knownTerm = Math.max(this.#knownTerm, term);
    this.#history.leaderHeard();
    for (const over of ["leader_suspect", "leader_unknown", "node_removed"] as const) {
      outputs.push(...this.#board.clearUnless(at, over, () => false));
    }
    outputs.push(...this.#findings(at, this.#splitBrain.leads(term, leader)));
    outputs.push(...this.#failovers.leaderSeen(at.nowMs, term, leader));
    if (leader === this.#self) {
      if (term === this.#handedTerm) this.#failovers.wasAskedFor(term);
      else outputs.push(...this.#failovers.wasNotAskedFor(at.nowMs, term));
    }
    return outputs;
  }

  #election(at: Moment, told: ElectionRecord): HealthOutput[] {
    this.#elections.ended(at.nowMs, told);
    if (told.stage === "vote" && told.result === "won" && told.reason === "transfer") this.#handedTerm = told.term;
    const record = this.#history.add(at, told);
    // A node that is cut off fails several times a second: its 1st, 2nd, 4th, 8th … failure says as much as all of them.
    if (record === null || !isPowerOfTwo(record.repeated)) return [];
    return [{ kind: "election", record, code: codeOf(record) }];
  }

  #transfer(result: TransferResult): HealthOutput[] {
    if (result.success) {
      this.#transfers.succeeded++;
      this.#failovers.handedTo(result.newLeaderId);
    } else {
      this.#transfers.failed++;
    }
    return [{ kind: "transfer", result, code: result.success ? null : "ERR_LEADER_TRANSFER_FAILED" }];
  }

  #configuration(at: Moment, configuration: Configuration): HealthOutput[] {
    const { voters, votersOutgoing, learners } = configuration;
    const members = new Set([...voters, ...votersOutgoing, ...learners]);
    // By disk: a lost one that was swapped for a new one leaves its node id behind, and nobody hears of it again.
    for (const peer of this.#unresponsive) if (!members.has(peer)) this.#unresponsive.delete(peer);
    return this.#clearResponsive(at);
  }

  /** A node's alert is over when none of its disks is missed any more. */
  #clearResponsive(at: Moment): HealthOutput[] {
    const missed = new Set([...this.#unresponsive].map(nodeIdOf));
    return this.#board.clearUnless(at, "follower_unresponsive", (nodeId) => nodeId !== null && missed.has(nodeId));
  }

  // ---- reports of the others -----------------------------------------------------------------------

  beacon(at: Moment, from: PeerKey, beacon: Beacon): readonly HealthOutput[] {
    this.#nowMs = at.nowMs;
    const { role, term, leader, handedTerm } = beacon;
    if (!this.#isMember(from) || term > this.#ownTerm() + TERM_JUMP_MAX) {
      this.ignoredBeacons++;
      return [];
    }
    const outputs: HealthOutput[] = [];
    this.#failovers.wasAskedFor(handedTerm);
    if (role === "leader") {
      outputs.push(...this.#findings(at, this.#splitBrain.leads(term, from)));
      if (handedTerm !== term) outputs.push(...this.#failovers.wasNotAskedFor(at.nowMs, term));
    }
    if (leader !== null) outputs.push(...this.#findings(at, this.#splitBrain.leads(term, leader)));
    for (const point of beacon.chain) outputs.push(...this.#findings(at, this.#splitBrain.claims(from, point)));
    if (role === "leader") outputs.push(...this.#staleLeader(from, beacon));
    return [...outputs, ...this.#ownStaleTerm(term, role === "leader" ? from : leader)];
  }

  #staleLeader(from: PeerKey, { term, wallMs }: Beacon): HealthOutput[] {
    const currentTerm = this.#knownTerm;
    if (term >= currentTerm || (this.#staleTold.get(from) ?? -1) >= term) return [];
    // One entry for each node id: of its former disks nobody hears any more.
    for (const peer of this.#staleTold.keys()) {
      if (nodeIdOf(peer) === nodeIdOf(from) && incarnationOf(peer) !== incarnationOf(from))
        this.#staleTold.delete(peer);
    }
    this.#staleTold.set(from, term);
    this.staleTerms++;
    return [{ kind: "term-stale", peer: from, term, currentTerm, saidAtWallMs: wallMs, code: "ERR_TERM_STALE" }];
  }

  /** `claimant`: who leads that term, as the beacon at hand says. */
  #ownStaleTerm(currentTerm: number, claimant: PeerKey | null): HealthOutput[] {
    const term = this.#ledTerm;
    if (claimant === null || term === 0 || term >= currentTerm || this.#answeredClaims.has(currentTerm)) return [];
    this.#answeredClaims.add(currentTerm);
    if (this.#answeredClaims.size > limits.ANSWERED_CLAIMS_MAX) {
      this.#answeredClaims.delete(this.#answeredClaims.values().next().value!);
    }
    this.staleTerms++;
    return [{ kind: "step-down", term, currentTerm, leader: claimant, code: "ERR_TERM_STALE" }];
  }

  #findings(at: Moment, findings: readonly SplitBrainFinding[]): HealthOutput[] {
    return findings.flatMap((finding) => {
      this.#splitBrains++;
      if (finding.kind === "two-leaders") {
        const [one, other] = finding.leaders;
        const message = `SPLIT BRAIN: ${one} and ${other} both led term ${finding.term}. Stop writes, keep both data directories and compare their logs`;
        return this.#board.raise(at, "multiple_leaders", message);
      }
      const [one, other] = finding.nodes;
      const message = `the states of ${one} and ${other} differ at index ${finding.index}. Find out which one is right (a third node decides), then replace the other's disk`;
      // Of two others nobody here knows which is right.
      const about = one === this.#self ? nodeIdOf(other) : null;
      return this.#board.raise(at, "state_diverged", message, about);
    });
  }

  // ---- time ----------------------------------------------------------------------------------------

  tick(at: Moment, seen: Observation): readonly HealthOutput[] {
    this.#nowMs = at.nowMs;
    this.#clockSkewMs = seen.clock.skewMs;
    return [
      ...this.#findings(at, this.#splitBrain.recheck()),
      ...this.#failovers.timePassed(at.nowMs),
      ...this.#judgeLeader(at, seen),
      ...this.#judgeRates(at),
      ...this.#judgeMachine(at, seen),
      ...judgeClock(this.#board, at, this.#self, seen.clock),
      ...judgeClones(this.#board, at, seen.cloned ?? []),
      ...judgeRefused(this.#board, at, seen.refused ?? []),
      ...judgeCertificates(this.#board, at, this.#self, seen.certificates ?? []),
      ...judgeSigning(this.#board, at, this.#self, seen.signingHeld ?? null),
      ...judgeMesh(this.#board, at, this.#self, seen.mesh ?? null),
      ...judgeCoordinators(this.#board, at, this.#self, seen.coordinators ?? null),
      ...judgeTransactions(this.#board, at, this.#self, seen.transactions ?? null),
      ...judgeHistory(this.#board, at, this.#self, seen),
    ];
  }

  #judgeLeader(at: Moment, { isMember, leader, leaderContactMs }: Observation): HealthOutput[] {
    const isBack = !isMember || (leader !== null && leaderContactMs > this.#suspectSinceMs);
    const silentMs = this.#leaderlessSinceMs === null ? 0 : at.nowMs - this.#leaderlessSinceMs;
    return [
      // It may speak again without ever having been followed less: then no change of role tells us.
      ...(isBack ? this.#board.clearUnless(at, "leader_suspect", () => false) : []),
      ...this.#board.set(
        at,
        "leader_unavailable",
        null,
        isMember && silentMs > limits.LEADER_UNAVAILABLE_AFTER_MS,
        () => {
          return `no leader for ${Math.round(silentMs / 1_000)} s: nothing can be written. A majority of the voters has to run and reach each other`;
        },
      ),
    ];
  }

  #judgeRates(at: Moment): HealthOutput[] {
    const rate = this.#elections.successRate(at.nowMs);
    const failovers = this.#failovers.recent(at.nowMs);
    const self = nodeIdOf(this.#self);
    return [
      ...this.#board.set(at, "election_failed", self, rate !== null && rate < limits.ELECTION_SUCCESS_RATE_MIN, () => {
        return `${Math.round((rate ?? 0) * 100)} % of this node's elections of the last 5 minutes found a leader. See \`tenure cluster elections\` for who did not vote`;
      }),
      ...this.#board.set(at, "failover_rate_high", null, failovers > limits.FAILOVERS_PER_HOUR_MAX, () => {
        return `${failovers} failovers within an hour. Look for a node that restarts, a slow disk, or a network that drops packets`;
      }),
    ];
  }

  #judgeMachine(at: Moment, { disk, historyQuota, replayProblem, stalls, isPaused }: Observation): HealthOutput[] {
    if (stalls > this.#stalls) this.#stalledUntilMs = at.nowMs + limits.STALLED_FOR_MS;
    this.#stalls = stalls;
    const self = nodeIdOf(this.#self);
    return [
      ...this.#board.set(at, "disk_full", self, disk === "full", () => {
        return "the disk is full: this node refuses writes and answers reads. Free space; it goes on by itself";
      }),
      ...this.#board.set(at, "disk_low", self, disk === "low", () => {
        return "less space is left on the disk than disk.min_free_bytes, so this node is unwilling to lead: it hands leadership to a voter with room. Where none has, it leads on, takes no new holds, and renewals go on. Free space; it goes on by itself";
      }),
      ...this.#board.set(at, "history_quota_near", self, historyQuota === "alarm", () => {
        return "the history of events takes more than 80 % of history.quota_bytes; at 95 % no new jobs are taken. Raise it, or let go of old events with history.keep_days";
      }),
      ...this.#board.set(at, "history_quota_used", self, historyQuota === "refuse", () => {
        return "the history of events takes more than 95 % of history.quota_bytes: no new jobs are taken while this node leads. Raise it, or let go of old events with history.keep_days";
      }),
      ...this.#board.set(at, "mesh_replay_differs", self, (replayProblem ?? null) !== null, () => {
        return `the last replay of all sites' events did not give what this node shows of them: ${replayProblem}. Where it differed it was built anew; after a broken archive see \`tenure cluster history\`. The alert goes with the next replay that finds them equal: \`tenure mesh verify\``;
      }),
      ...this.#board.set(at, "cluster_paused", null, isPaused === true, () => {
        return "this cluster was restored paused: it leases no job, fires no schedule and grants no scope until `tenure cluster resume`";
      }),
      ...this.#board.set(at, "loop_stalled", self, at.nowMs < this.#stalledUntilMs, () => {
        const times = stalls === 1 ? "once since its start," : `${stalls} times since its start, the last time`;
        return `this process was held up ${times} within the last minute. It needs more CPU, or was stopped`;
      }),
    ];
  }
}

/** Refused by the others, or unanswered; one that another candidate won has not failed. */
function codeOf({ result }: ElectionRecord): "ERR_VOTE_DENIED" | "ERR_ELECTION_FAILED" | null {
  switch (result) {
    case "won":
    case "superseded":
      return null;
    case "lost":
      return "ERR_VOTE_DENIED";
    case "timed-out":
      return "ERR_ELECTION_FAILED";
    default:
      return assertNever(result, "codeOf");
  }
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}
