// A transaction coordinator among others: it votes, announces itself, campaigns, leads, and answers the others. The same loop in production and in
// the simulator. What it leads for is `work`; who may act is asked of `leads`, before each effect.
//
//   clusterless ── founds, or is admitted ──▶ following ── wins ──▶ leading ── over ──▶ following
//
// Invariants: a node leads at most one term at a time, and its work has ended before the next campaign; nothing that follows from a
// decision of the voter leaves before the ledger is durable (ledger-desk.ts).

import {
  type CoordinatorStatus,
  foundingOf,
  isVoter,
  type KnownLeader,
  normalisedEndpoint,
  placeOf,
  type QuorumLeader,
  type SeedWord,
  type VoterAnswer,
  type VoterRequest,
} from "../../core/lease/index.ts";
import { within } from "../../loops/time.ts";
import type { AnswerTo, CoordinatorRequest, LeaveResult } from "../../ports/coordinators.ts";
import { type Campaign, campaign } from "./campaign.ts";
import { CoordinatorContext, type CoordinatorOptions } from "./context.ts";
import { Leading } from "./leading.ts";
import { FOUNDING_EVERY_MS, RELEASED_AWAY_MS, STOP_MS, VAIN_DOUBLINGS_MAX, WANTED_AGAIN_MS } from "./limits.ts";
import { Membership } from "./membership.ts";
import { Registration } from "./registration.ts";
import { RegistryWrites } from "./registry-writes.ts";

interface ObservedLeader extends KnownLeader {
  /** Of the monotonic clock. */
  readonly untilMs: number;
}

export class Coordinator {
  readonly #context: CoordinatorContext;
  readonly #membership: Membership;
  readonly #registry: RegistryWrites;
  /** Null: this node does not register itself. */
  readonly #registration: Registration | null;
  #waitsFor: readonly string[] = [];
  #leading: Leading | null = null;
  /** Until the work of the last leadership has ended. */
  #ended: Promise<void> = Promise.resolve();
  /** After a release of its own, or a campaign that came to nothing. */
  #notBeforeMs = -Infinity;
  /** Campaigns that came to nothing, since somebody led; at most VAIN_DOUBLINGS_MAX. */
  #vain = 0;
  /** Its place among the candidates, after a lease that ended. */
  #turnMs = -Infinity;

  constructor(options: CoordinatorOptions) {
    this.#context = new CoordinatorContext(options);
    this.#registry = new RegistryWrites(this.#context, () => this.#leading);
    const { backendHash } = options;
    this.#registration =
      backendHash === undefined ? null : new Registration(this.#context, this.#registry, backendHash);
    this.#membership = new Membership(this.#context, {
      resign: () => this.resign(),
      withdraw: async () => (await this.#registration?.withdraw()) ?? { kind: "done", registry: [] },
      returned: () => this.#registration?.returned(),
    });
    this.#context.desk.onChange((isReleased) => {
      if (isReleased) this.#released();
      this.#leading?.yieldIfDue();
      this.#context.changed();
    });
  }

  start(): void {
    const { options } = this.#context;
    this.#live().catch((error: unknown) => options.fatal(error));
    this.#membership.live().catch((error: unknown) => options.fatal(error));
    this.#registration?.live().catch((error: unknown) => options.fatal(error));
  }

  /** Ends the loops. Resolves when the work of a term has ended and nothing is written to the ledger any more; a disk that hangs is not awaited. */
  async stop(): Promise<void> {
    this.#context.stop();
    const ended = Promise.all([this.#ended, this.#context.desk.close()]);
    await within(this.#context.options.clock, STOP_MS, ended, undefined);
  }

  /** After each change of anything that is shown here; the listener must not throw. Returns how it ends. */
  onChange(listener: () => void): () => void {
    return this.#context.onChange(listener);
  }

  /** The term in which this node may act now; null: it may not. */
  get leads(): number | null {
    const leading = this.#leading;
    return leading?.isOpen === true ? leading.leader.term : null;
  }

  /** This node's own leadership, from its election to the end of its work. */
  get leadership(): Leading["leader"] | null {
    return this.#leading?.leader ?? null;
  }

  /** Of `leadership`, by the monotonic clock. */
  get electedMs(): number | null {
    return this.#leading?.electedMs ?? null;
  }

  /**
   * Who leads, as this node's own voter knows, and until when at most. A candidate that has its grant is none: the first roster of a
   * leader has the leader's term.
   */
  get observed(): ObservedLeader | null {
    const { leader, promisedUntilMs, ledger } = this.#context.desk;
    if (leader === null || promisedUntilMs === null || ledger.roster?.term !== leader.term) return null;
    return { ...leader, untilMs: promisedUntilMs };
  }

  /** `isWanted` has changed. */
  wake(): void {
    this.#context.changed();
  }

  get ledger(): CoordinatorContext["desk"]["ledger"] {
    return this.#context.desk.ledger;
  }

  get members(): CoordinatorContext["members"] {
    return this.#context.members;
  }

  /** As this node's voter answers those who ask. */
  get status(): CoordinatorStatus {
    return this.#context.desk.status;
  }

  /** When the lease in force at this voter ends, by the monotonic clock; null: there is none. */
  get promisedUntilMs(): number | null {
    return this.#context.desk.promisedUntilMs;
  }

  /** Since when no lease is in force at this voter, by the monotonic clock; null: one is. */
  get leaderlessSinceMs(): number | null {
    return this.#context.desk.leaderlessSinceMs;
  }

  get sightings(): CoordinatorContext["sightings"] {
    return this.#context.sightings;
  }

  /** Seeds without whose answer no cluster is founded here; empty: there is one, or another node founds it. */
  get waitsFor(): readonly string[] {
    return this.ledger.clusterId === null ? this.#waitsFor : [];
  }

  get hasLeft(): boolean {
    return this.#membership.hasLeft;
  }

  /** `caller`: the node id of the certificate that the request came with. */
  async answer<R extends CoordinatorRequest>(caller: string, request: R): Promise<AnswerTo<R>> {
    return (await this.#answer(caller, request)) as AnswerTo<R>;
  }

  async #answer(caller: string, request: CoordinatorRequest): Promise<AnswerTo<CoordinatorRequest>> {
    const { desk, members, sightings, options } = this.#context;
    const { clock } = options;
    const wallMs = clock.wallMs();
    switch (request.kind) {
      case "status":
        return desk.status;
      case "announce":
        sightings.announced(caller, normalisedEndpoint(request.endpoint), clock.monotonicMs());
        members.announce(wallMs, caller, request.endpoint);
        return { endpoints: members.endpoints(wallMs) };
      case "leave":
        if (members.leave(caller)) this.#leading?.hurry();
        return { endpoints: members.endpoints(wallMs) };
      case "registry":
        return this.#registry.write(request);
      default:
        return this.#vote(caller, request);
    }
  }

  async #vote(caller: string, request: VoterRequest): Promise<VoterAnswer> {
    const answer = await this.#context.desk.decide(caller, request);
    const { outcome } = answer;
    if (outcome.kind === "refused" && outcome.reason === "cluster-mismatch")
      this.#context.met(request.holder, request.clusterId);
    return answer;
  }

  /** Gives up the leadership; resolves when its work has ended. */
  async resign(): Promise<void> {
    const leading = this.#leading;
    if (leading === null) return;
    leading.leader.release();
    this.#notBeforeMs = this.#nowMs + RELEASED_AWAY_MS;
    this.#context.changed();
    await this.#ended;
  }

  /** As `resign`. True: a majority of the voters has confirmed, so that another can lead at once. */
  async release(): Promise<boolean> {
    const leading = this.#leading;
    if (leading === null) return true;
    await this.resign();
    return leading.released;
  }

  leave(): Promise<LeaveResult> {
    return this.#membership.leave();
  }

  /** Before the process ends. */
  leaveWithin(withinMs: number): Promise<LeaveResult> {
    return this.#membership.leaveWithin(withinMs);
  }

  /** After a leave: announces itself again. */
  rejoin(): Promise<void> {
    return this.#membership.rejoin();
  }

  async #live(): Promise<void> {
    while (!this.#context.isStopped) {
      if (this.ledger.clusterId === null) await this.#found();
      else if (this.#mayCampaign) await this.#campaign();
      else await this.#follow();
    }
  }

  async #follow(): Promise<void> {
    const { desk, options, bell } = this.#context;
    const { leader, promisedUntilMs } = desk;
    if (leader !== null && leader.peer !== options.self && promisedUntilMs !== null)
      this.#turnMs = promisedUntilMs + this.#placeMs;
    if (this.observed !== null) this.#vain = 0;
    await bell.wait(this.#nextLookMs);
  }

  async #found(): Promise<void> {
    const { desk, options, bell } = this.#context;
    const { endpoint, seeds } = options;
    const others = seeds.filter((seed) => seed !== endpoint);
    const words = await Promise.all(
      others.map(async (seed): Promise<readonly SeedWord[]> => {
        const status = await this.#context.statusOf(seed);
        return status === null ? [] : [{ endpoint: seed, isInCluster: status.clusterId !== null }];
      }),
    );
    if (desk.ledger.clusterId !== null) return;
    const founding = foundingOf(endpoint, seeds, words.flat());
    this.#waitFor(founding.kind === "wait" ? founding.for : []);
    if (founding.kind === "found") {
      const clusterId = options.newClusterId();
      if (await desk.found(clusterId, endpoint)) options.news({ kind: "founded", clusterId });
      return;
    }
    await bell.waitFor(FOUNDING_EVERY_MS);
  }

  #waitFor(seeds: readonly string[]): void {
    const isSame = seeds.join() === this.#waitsFor.join();
    this.#waitsFor = seeds;
    if (!isSame) this.#context.options.news({ kind: "waits", for: seeds });
  }

  get #nowMs(): number {
    return this.#context.options.clock.monotonicMs();
  }

  /** It is wanted, listed and a voter, as far as it knows nobody leads, and it is its time. */
  get #mayCampaign(): boolean {
    const { desk, members, options, selfId } = this.#context;
    const { roster } = desk.ledger;
    if (roster === null || !isVoter(roster, options.self) || desk.isOutdated || desk.isLeaving) return false;
    if (!this.#context.isWanted) return false;
    if (desk.leader !== null && desk.leader.peer !== options.self) return false;
    const isListed = members.active(options.clock.wallMs()).some(({ identity }) => identity === selfId);
    return isListed && this.#nowMs >= Math.max(this.#notBeforeMs, this.#turnMs);
  }

  /** When something may be due without anybody ringing. */
  get #nextLookMs(): number {
    const dueMs = Math.max(this.#notBeforeMs, this.#turnMs);
    return dueMs > this.#nowMs ? dueMs : this.#nowMs + FOUNDING_EVERY_MS;
  }

  /** The voters go one after the other, so that the first one wins before the second begins. */
  get #placeMs(): number {
    const { desk, options, pace } = this.#context;
    return placeOf(options.self, desk.ledger) * pace.turnMs;
  }

  async #campaign(): Promise<void> {
    let campaigned = await campaign(this.#context, this.#vain === VAIN_DOUBLINGS_MAX);
    while (campaigned.kind === "won") {
      this.#vain = 0;
      campaigned = await this.#lead(campaigned.leader);
    }
    const { pace, options } = this.#context;
    const doubledMs = pace.turnMs * 2 ** this.#vain;
    this.#vain = Math.min(this.#vain + 1, VAIN_DOUBLINGS_MAX);
    // Who waits asks soon again: a lease may end elsewhere a little later than here, and a release arrive. Candidates must not lose in step.
    const restMs = campaigned.kind === "waits" ? doubledMs : doubledMs * options.random.between(0, 1);
    this.#rest(this.#placeMs + restMs);
  }

  #rest(forMs: number): void {
    this.#notBeforeMs = Math.max(this.#notBeforeMs, this.#nowMs + forMs);
    this.#context.changed();
  }

  /**
   * Until this leadership is over. A voter that has given this term, or a higher one, to a candidate that lost can't follow in this one: while the
   * others still hold the lease for this node, it campaigns again, before anybody else can. Else candidates that are many, or far apart, would end each
   * other's leaderships, one after the other.
   */
  async #lead(leader: QuorumLeader): Promise<Campaign> {
    this.#context.options.news({ kind: "elected", term: leader.term });
    const leading = new Leading(this.#context, leader);
    this.#leading = leading;
    this.#ended = leading.live();
    this.#context.changed();
    await this.#ended;
    this.#leading = null;
    const next: Campaign = (await this.#mayGoOn(leader)) ? await campaign(this.#context) : { kind: "lost" };
    if (next.kind === "won") leading.goesOn();
    else leading.giveBack();
    return next;
  }

  /** Outvoted, and still wanted: its elector hears of the end as well, wants nothing more, and wants again when its work has wound up. */
  async #mayGoOn({ over }: QuorumLeader): Promise<boolean> {
    if (over !== "higher-term") return false;
    await this.#context.until(() => this.#context.isWanted, WANTED_AGAIN_MS);
    return !this.#context.isStopped && this.#mayCampaign;
  }

  #released(): void {
    this.#turnMs = this.#nowMs + this.#placeMs;
  }
}
