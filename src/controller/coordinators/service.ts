// The transaction coordinator of one node, as its API, its alerts and its log see it.

import type { CoordinatorsSeen } from "../../core/health/coordinators.ts";
import { assertNever } from "../../core/kit/assert.ts";
import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import {
  comparePositions,
  majorityOf,
  type OverBecause,
  positionOf,
  type RosterVoter,
  type Shown,
} from "../../core/lease/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  AnswerTo,
  CoordinatorCalls,
  CoordinatorRequest,
  Coordinators,
  CoordinatorView,
  LeaveResult,
  MembersView,
  RegistryView,
  VoterState,
  VoterView,
} from "../../ports/coordinators.ts";
import type { Logger } from "../../ports/logger.ts";
import type { CoordinatorServerStats } from "../../ports/server-stats.ts";
import type { CoordinatorNews, CoordinatorWork } from "./context.ts";
import { Coordinator } from "./coordinator.ts";
import type { CoordinatorFiles } from "./files.ts";
import { LEAVE_AT_STOP_MS, VOTER_SILENT_AFTER_MS } from "./limits.ts";

export interface CoordinatorServiceOptions {
  readonly files: CoordinatorFiles;
  /** `api.advertise`, normalised. */
  readonly endpoint: string;
  readonly seeds: readonly string[];
  readonly backendHash: string;
  readonly calls: CoordinatorCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What a leader is for. */
  readonly work: CoordinatorWork;
  /** As the loop's own option: false, and this node votes without campaigning. */
  readonly isWanted?: (() => boolean) | undefined;
  newClusterId(): string;
  /** The process must end: what is durable is not known. */
  fatal(error: unknown): void;
  /** Besides the log. */
  news?(news: CoordinatorNews): void;
}

export class CoordinatorService implements Coordinators {
  readonly self: PeerKey;
  readonly endpoint: string;
  /** For those who lead with it (node/assembly/coordinators.ts). */
  readonly coordinator: Coordinator;
  readonly #options: CoordinatorServiceOptions;
  readonly #clock: Clock;
  #shown: Shown | null;
  #shownSinceMs: number;
  #stopping: Promise<void> | null = null;
  #electionsWon = 0;
  readonly #over: Record<OverBecause, number> = { expired: 0, "higher-term": 0, released: 0 };
  /** By LeaseRefusal: as many entries as there are of these. */
  readonly #refused: Record<string, number> = {};

  constructor(options: CoordinatorServiceOptions) {
    const { files, endpoint, seeds, backendHash, calls, clock, random, work, isWanted } = options;
    this.#options = options;
    this.#clock = clock;
    this.self = files.self;
    this.endpoint = endpoint;
    this.#shown = files.ledger.shown;
    this.#shownSinceMs = this.#shown === null ? 0 : clock.wallMs();
    this.coordinator = new Coordinator({
      self: files.self,
      ledger: files.ledger,
      file: files.ledgerFile,
      leases: files.leases,
      membershipFile: files.membershipFile,
      endpoint,
      seeds,
      backendHash,
      calls,
      clock,
      random,
      work,
      isWanted,
      newClusterId: () => options.newClusterId(),
      news: (news) => this.#news(news),
      fatal: (error) => options.fatal(error),
    });
    this.coordinator.onChange(() => this.#changed());
  }

  start(): void {
    const { files, logger } = this.#options;
    const fields = { event: "tc_started", voter: this.self, endpoint: this.endpoint };
    logger.info(fields, `this node is the transaction coordinator ${this.self}`);
    if (files.setAside !== null) {
      const text = `the ledger of the transaction coordinator was set aside (tc-ledger-aside-…): ${files.setAside}. This node is another voter now, which the leader adds by itself`;
      logger.warn({ event: "tc_ledger_set_aside", voter: this.self }, text);
    }
    this.coordinator.start();
  }

  /** Leaves, as far as that goes within its time, and ends. Once, however often it is called. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    if (!this.coordinator.hasLeft) {
      const left = await this.coordinator.leaveWithin(LEAVE_AT_STOP_MS);
      this.#logLeave(left);
    }
    await this.coordinator.stop();
  }

  view(): CoordinatorView {
    const { status, promisedUntilMs, leads, waitsFor, hasLeft } = this.coordinator;
    const { leader } = status;
    const leftMs = promisedUntilMs === null ? null : promisedUntilMs - this.#clock.monotonicMs();
    return {
      ...status,
      backendHash: this.#options.backendHash,
      leaderExpiresAtMs: leader === null || leftMs === null ? null : Math.round(this.#clock.wallMs() + leftMs),
      actsInTerm: leads,
      waitsFor,
      hasLeft,
    };
  }

  members(): MembersView {
    const { members, ledger, leadership } = this.coordinator;
    const wallMs = this.#clock.wallMs();
    const leases = members.active(wallMs);
    // A leader knows the roster that it is about to store; who asks it wants to see who votes by now.
    const roster = leadership?.committed ?? ledger.roster;
    return {
      endpoints: members.endpoints(wallMs),
      leases,
      updatedAtMs: Math.max(0, ...leases.map(({ updatedAtMs }) => updatedAtMs)),
      voters: roster?.voters.map((voter) => this.#voterView(voter)) ?? [],
      quorum: roster === null ? 0 : majorityOf(roster.voters.length),
      roster: roster === null ? null : positionOf(roster),
    };
  }

  registry(): RegistryView {
    return { entries: this.coordinator.ledger.shown?.registry ?? [], updatedAtMs: this.#shownSinceMs };
  }

  async answer<R extends CoordinatorRequest>(caller: string, request: R): Promise<AnswerTo<R>> {
    const answer = await this.coordinator.answer(caller, request);
    if ("outcome" in answer && answer.outcome.kind === "refused") {
      const { reason } = answer.outcome;
      this.#refused[reason] = (this.#refused[reason] ?? 0) + 1;
    }
    return answer;
  }

  async leave(bestEffort?: { readonly withinMs: number }): Promise<LeaveResult> {
    const { coordinator } = this;
    const left = await (bestEffort === undefined ? coordinator.leave() : coordinator.leaveWithin(bestEffort.withinMs));
    this.#logLeave(left);
    return left;
  }

  async rejoin(): Promise<void> {
    const isNews = this.coordinator.hasLeft;
    await this.coordinator.rejoin();
    if (isNews)
      this.#options.logger.info({ event: "tc_rejoined", voter: this.self }, "this node announces itself again");
  }

  /** What the alerts of this node rest on (core/health/coordinators.ts). */
  seen(): CoordinatorsSeen {
    const { coordinator } = this;
    const { leaderlessSinceMs, hasLeft, sightings, waitsFor, leadership } = coordinator;
    const nowMs = this.#clock.monotonicMs();
    const voters = leadership === null || coordinator.leads === null ? [] : leadership.roster.voters;
    return {
      leaderlessMs: leaderlessSinceMs === null || hasLeft ? null : nowMs - leaderlessSinceMs,
      waitsFor,
      silent: voters.flatMap(({ peer, endpoint }) => {
        const silentMs = this.#silentMs(peer);
        return silentMs <= VOTER_SILENT_AFTER_MS ? [] : [{ peer, endpoint, silentMs }];
      }),
      mismatched: sightings.otherClusters(nowMs),
      shared: sightings.shared(nowMs),
      forgetful: [...(leadership?.forgetful ?? [])],
    };
  }

  stats(): CoordinatorServerStats {
    const { status, promisedUntilMs, leads } = this.coordinator;
    const { voters, quorum, leases } = this.members();
    const { mismatched, shared, forgetful } = this.seen();
    const ofState = { leads: 0, answers: 0, silent: 0, leaving: 0, unknown: 0 };
    for (const { state } of voters) ofState[state]++;
    const promised = status.leader === null ? null : promisedUntilMs;
    return {
      leads: leads !== null,
      term: status.term,
      leaseRemainingMs: promised === null ? 0 : Math.max(0, promised - this.#clock.monotonicMs()),
      voters: ofState,
      quorum,
      members: leases.length,
      registry: this.registry().entries.length,
      mismatched: mismatched.length,
      shared: new Set([...shared, ...forgetful.map(nodeIdOf)]).size,
      electionsWon: this.#electionsWon,
      over: { ...this.#over },
      refused: { ...this.#refused },
    };
  }

  #voterView({ peer, endpoint }: RosterVoter): VoterView {
    return { peer, endpoint, state: this.#stateOf(peer) };
  }

  #stateOf(peer: PeerKey): VoterState {
    const { leadership, leads } = this.coordinator;
    if (leadership === null || leads === null) return "unknown";
    if (peer === this.self) return "leads";
    if (leadership.isLeaving(peer)) return "leaving";
    return this.#silentMs(peer) <= VOTER_SILENT_AFTER_MS ? "answers" : "silent";
  }

  /** Of a voter that has never answered this leader: since the leader was elected. */
  #silentMs(peer: PeerKey): number {
    const nowMs = this.#clock.monotonicMs();
    if (peer === this.self) return 0;
    const answeredMs = this.coordinator.leadership?.answeredAt(peer)?.monotonicMs;
    return nowMs - (answeredMs ?? this.coordinator.electedMs ?? nowMs);
  }

  #changed(): void {
    const { shown } = this.coordinator.ledger;
    if (shown === null || (this.#shown !== null && comparePositions(shown, this.#shown) === 0)) return;
    const isSame = JSON.stringify(shown.registry) === JSON.stringify(this.#shown?.registry);
    this.#shown = shown;
    if (!isSame) this.#shownSinceMs = this.#clock.wallMs();
  }

  #logLeave(left: LeaveResult): void {
    const { logger } = this.#options;
    const fields = { event: "tc_left", voter: this.self, outcome: left.kind };
    if (left.kind === "left") logger.info(fields, "this node has left the transaction coordinators");
    else if (left.kind === "sole-voter") logger.info(fields, "this node is the only voter: it leaves by stopping");
    else logger.warn(fields, `this node has not left the transaction coordinators: ${left.message}`);
  }

  #news(news: CoordinatorNews): void {
    const { logger } = this.#options;
    const { self } = this;
    switch (news.kind) {
      case "founded":
        logger.info(
          { event: "tc_founded", voter: self, cluster: news.clusterId },
          "this node has founded a cluster of transaction coordinators",
        );
        break;
      case "elected":
        this.#electionsWon++;
        logger.info(
          { event: "tc_elected", voter: self, term: news.term },
          `this node leads the transaction coordinators in term ${news.term}`,
        );
        break;
      case "over":
        this.#over[news.because]++;
        logger.info(
          { event: "tc_over", voter: self, term: news.term, because: news.because },
          `the leadership of term ${news.term} is over: ${OVER[news.because]}`,
        );
        break;
      case "registry": {
        const { registry } = this.coordinator.leadership?.roster ?? { registry: [] };
        logger.info(
          { event: "tc_registry", voter: self, term: news.term, entries: registry.length },
          "a change of the registry is stored by all members",
        );
        break;
      }
      case "mismatch":
        logger.warn(
          {
            event: "tc_cluster_mismatch",
            node: nodeIdOf(news.peer),
            disk: incarnationOf(news.peer),
            cluster: news.clusterId,
          },
          `${news.peer} is in another cluster of transaction coordinators: the two never merge`,
        );
        break;
      case "waits":
        if (news.for.length > 0)
          logger.warn(
            { event: "tc_waits", voter: self, for: news.for.join(", ") },
            `no cluster of transaction coordinators is founded before ${news.for.join(", ")} has answered`,
          );
        break;
      default:
        assertNever(news, "news of a coordinator");
    }
    this.#options.news?.(news);
  }
}

const OVER: Readonly<Record<OverBecause, string>> = {
  expired: "no majority of the voters has answered in time",
  "higher-term": "another one has a higher term",
  released: "it was given up",
};
