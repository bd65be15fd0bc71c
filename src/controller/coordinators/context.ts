// What the parts of a coordinator share: its options, its desk, its list of members, and how others are called.

import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import {
  type CoordinatorStatus,
  type Ledger,
  type MembershipLease,
  MembershipList,
  nextGeneration,
  type OverBecause,
  type RegistryChange,
  type RosterVoter,
  Sightings,
  type VoterAnswer,
  type VoterRequest,
} from "../../core/lease/index.ts";
import type { Instant } from "../../core/trust/window.ts";
import { Bell } from "../../loops/bell.ts";
import { within } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  AnswerTo,
  CoordinatorCalls,
  CoordinatorRequest,
  LedgerFile,
  MembershipFile,
} from "../../ports/coordinators.ts";
import { COORDINATOR_CALL_MS } from "./limits.ts";
import { LedgerDesk } from "./ledger-desk.ts";
import { Pace } from "./pace.ts";

/** What a leader is for. */
export interface CoordinatorWork {
  /** The gate of this term is open. */
  begins(term: number): void;
  /** The gate is closed for good. Nothing of the term's work runs any more when this resolves. */
  ends(term: number): Promise<void>;
}

/** What an operator may want to know. */
export type CoordinatorNews =
  | { readonly kind: "founded"; readonly clusterId: string }
  | { readonly kind: "elected"; readonly term: number }
  | { readonly kind: "over"; readonly term: number; readonly because: OverBecause }
  /** All of `listed` are to store it. */
  | { readonly kind: "registry"; readonly term: number; readonly change: RegistryChange }
  | { readonly kind: "mismatch"; readonly peer: PeerKey; readonly clusterId: string }
  /** Nobody founds a cluster until these have answered; empty: nobody is waited for any more. */
  | { readonly kind: "waits"; readonly for: readonly string[] };

export interface CoordinatorOptions {
  readonly self: PeerKey;
  readonly endpoint: string;
  /** Where others may be found at first. Not a list of members. */
  readonly seeds: readonly string[];
  /** As the file has it. */
  readonly ledger: Ledger;
  readonly file: LedgerFile;
  /** As the file has them, also those that have ended; absent: there is none. */
  readonly leases?: readonly MembershipLease[] | undefined;
  readonly membershipFile?: MembershipFile | undefined;
  /** Of this node's island: it registers itself with that. Absent: it does not. */
  readonly backendHash?: string | undefined;
  readonly calls: CoordinatorCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly work: CoordinatorWork;
  /** False: this node votes, and does not campaign. Whoever changes it calls `wake`. Absent: always. */
  readonly isWanted?: (() => boolean) | undefined;
  newClusterId(): string;
  news(news: CoordinatorNews): void;
  /** The process must end: what is durable is not known. */
  fatal(error: unknown): void;
}

export class CoordinatorContext {
  readonly options: CoordinatorOptions;
  readonly desk: LedgerDesk;
  readonly members = new MembershipList();
  readonly sightings = new Sightings();
  readonly pace = new Pace();
  /** Wakes the loop that follows and leads. */
  readonly bell: Bell;
  #isStopped = false;
  readonly #waiting = new Set<() => void>();
  readonly #listeners = new Set<() => void>();

  constructor(options: CoordinatorOptions) {
    this.options = options;
    this.desk = new LedgerDesk(options, this.pace);
    this.bell = new Bell(options.clock);
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get selfId(): string {
    return nodeIdOf(this.options.self);
  }

  get isWanted(): boolean {
    return this.options.isWanted?.() ?? true;
  }

  stop(): void {
    this.#isStopped = true;
    this.changed();
  }

  now(): Instant {
    const { clock } = this.options;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  /** Something that others may wait for. */
  changed(): void {
    this.bell.ring();
    for (const look of this.#waiting) look();
    for (const listener of this.#listeners) listener();
  }

  /** Called after each change; the listener must not throw. Returns how it ends. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** False: it did not become true within the time. */
  async until(isTrue: () => boolean, withinMs: number): Promise<boolean> {
    if (isTrue()) return true;
    const { clock } = this.options;
    return new Promise((resolve) => {
      const look = (): void => {
        if (!isTrue() && !this.#isStopped) return;
        this.#waiting.delete(look);
        timer.cancel();
        resolve(isTrue());
      };
      const timer = clock.setTimer(clock.monotonicMs() + withinMs, () => {
        this.#waiting.delete(look);
        resolve(isTrue());
      });
      this.#waiting.add(look);
    });
  }

  async call<R extends CoordinatorRequest>(
    endpoint: string,
    request: R,
    withinMs = COORDINATOR_CALL_MS,
  ): Promise<AnswerTo<R> | null> {
    const answered = await this.options.calls.call(endpoint, request, withinMs);
    return answered?.answer ?? null;
  }

  /** Its own voter is asked at its desk, whose disk may hang. Null: no answer, or somebody else's than its certificate says. */
  async vote(to: RosterVoter, request: VoterRequest, withinMs = COORDINATOR_CALL_MS): Promise<VoterAnswer | null> {
    const { self, clock } = this.options;
    const sentMs = clock.monotonicMs();
    if (to.peer === self) return within(clock, withinMs, this.desk.decide(this.selfId, request), null);
    const answered = await this.options.calls.call(this.addressOf(to), request, withinMs);
    if (answered === null || nodeIdOf(answered.answer.voter) !== answered.from) return null;
    this.#answered(answered.answer.voter, sentMs);
    const { roster, clusterId, voter, outcome } = answered.answer;
    if (clusterId !== null && clusterId !== request.clusterId) this.met(voter, clusterId);
    if (clusterId !== this.desk.ledger.clusterId) return answered.answer;
    if (roster !== null) this.desk.noteTerm(roster.term);
    // That voter may not have stored anything of the higher generation yet: who is refused for it knows of it all the same, and campaigns no more.
    if (outcome.kind === "refused" && outcome.reason === "generation-over")
      this.desk.noteTerm(nextGeneration(request.term));
    return answered.answer;
  }

  /** Null: no answer, or somebody else's than its certificate says. */
  async statusOf(endpoint: string, withinMs = COORDINATOR_CALL_MS): Promise<CoordinatorStatus | null> {
    const sentMs = this.options.clock.monotonicMs();
    const answered = await this.options.calls.call(endpoint, { kind: "status" }, withinMs);
    if (answered === null || nodeIdOf(answered.answer.self) !== answered.from) return null;
    this.#answered(answered.answer.self, sentMs);
    const { roster, clusterId } = answered.answer;
    if (roster !== null && clusterId === this.desk.ledger.clusterId) this.desk.noteTerm(roster.term);
    return answered.answer;
  }

  #answered(voter: PeerKey, sentMs: number): void {
    const nowMs = this.options.clock.monotonicMs();
    this.sightings.answered(voter, sentMs, nowMs);
    this.pace.called(nowMs - sentMs);
  }

  /** Of another cluster than this node's. */
  met(peer: PeerKey, clusterId: string): void {
    const isNews = this.sightings.otherCluster(peer, clusterId, this.options.clock.monotonicMs());
    if (isNews) this.options.news({ kind: "mismatch", peer, clusterId });
  }

  /** Where it announced itself last; else where the roster has it. */
  addressOf({ peer, endpoint }: RosterVoter): string {
    const identity = nodeIdOf(peer);
    const lease = this.members.active(this.options.clock.wallMs()).find((one) => one.identity === identity);
    return lease?.endpoint ?? endpoint;
  }

  /** Members and voters, without this node: whoever may have to hear of it. */
  get otherEndpoints(): readonly string[] {
    const listed = this.members.endpoints(this.options.clock.wallMs());
    const voters = this.desk.ledger.roster?.voters.map((voter) => this.addressOf(voter)) ?? [];
    return [...new Set([...listed, ...voters])].filter((endpoint) => endpoint !== this.options.endpoint).sort();
  }
}
