// One leadership: rounds of renewals, the changes that are due, the work while the gate is open; and at its end first the work, then `giveBack`.
// A release that left earlier would let another one lead while this one still acts.

import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import {
  isVoter,
  majorityOf,
  normalisedEndpoint,
  type Outgoing,
  type QuorumLeader,
  type RosterVoter,
} from "../../core/lease/index.ts";
import { LEASE_RENEW_MS } from "../../core/lease/limits.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { CoordinatorContext } from "./context.ts";
import { REMOVED_ROUNDS } from "./limits.ts";

interface Preflight {
  /** With this node. */
  readonly peers: readonly PeerKey[];
  /** Endpoints of those that did not answer, or not as members. */
  readonly missing: readonly string[];
  /** By endpoint: of which island these say that they are. Not all do. */
  readonly backends: ReadonlyMap<string, string>;
}

export class Leading {
  readonly leader: QuorumLeader;
  /** By the monotonic clock. */
  readonly electedMs: number;
  readonly #context: CoordinatorContext;
  /** Listed members that are no voters, by identity, as they answered last. */
  readonly #met = new Map<string, RosterVoter>();
  /** Voters that this leader has removed, and for how many rounds more each hears of it: who leaves waits for that. */
  readonly #removed = new Map<PeerKey, { readonly voter: RosterVoter; rounds: number }>();
  /** Where each voter has answered last. */
  readonly #reached = new Map<PeerKey, string>();
  readonly #released = Promise.withResolvers<boolean>();
  #hasBegun = false;
  /** Of the leader's news, what the last round sent. */
  #sentNews = -1;
  #nextRoundMs = -Infinity;

  constructor(context: CoordinatorContext, leader: QuorumLeader) {
    this.#context = context;
    this.leader = leader;
    this.electedMs = context.now().monotonicMs;
  }

  /** The gate. */
  get isOpen(): boolean {
    this.yieldIfDue();
    return this.leader.isOpen(this.#context.now());
  }

  /** After the end: whether a majority of the voters has confirmed the release, so that another can lead at once. */
  get released(): Promise<boolean> {
    return this.#released.promise;
  }

  /** The gate closes now where a higher generation exists. */
  yieldIfDue(): void {
    this.leader.yieldTo(this.#context.desk.generation);
  }

  /** Until it is over, and everything that it did has ended. */
  async live(): Promise<void> {
    const { leader } = this;
    const { options, bell, desk } = this.#context;
    for (;;) {
      const now = this.#context.now();
      leader.passTime(now);
      this.yieldIfDue();
      // Also of a campaign that began before that: nobody removes itself from the voters, so who leaves must not lead.
      if (!this.#context.isWanted || desk.isLeaving) leader.release();
      if (leader.over !== null || this.#context.isStopped) break;
      if (this.isOpen) this.#open();
      this.#changeVoters(now);
      leader.moveVoters(now, (peer) => this.#endpointOf(peer));
      if (now.monotonicMs >= this.#nextRoundMs) {
        this.#nextRoundMs = now.monotonicMs + LEASE_RENEW_MS;
        this.#meet();
        this.#round();
      } else if (leader.news !== this.#sentNews) this.#round();
      await bell.wait(this.#nextRoundMs);
    }
    // Also of a node that stops: the gate is closed before its work ends, and before anybody hears of a release.
    leader.release();
    options.news({ kind: "over", term: leader.term, because: leader.over ?? "released" });
    if (this.#hasBegun) await options.work.ends(leader.term);
  }

  /** After the end. */
  giveBack(): void {
    void this.#releaseAll().then(this.#released.resolve);
  }

  /** After the end: this node leads on, in a higher term, with the grants of the same voters. */
  goesOn(): void {
    this.#released.resolve(false);
  }

  /** Whoever is listed, by identity, with where it can be reached. */
  get #listed(): ReadonlyMap<string, string> {
    const { members, options } = this.#context;
    return new Map(members.active(options.clock.wallMs()).map(({ identity, endpoint }) => [identity, endpoint]));
  }

  /** Where a voter is: it has announced itself there, and has answered there. */
  #endpointOf(peer: PeerKey): string | undefined {
    const { options } = this.#context;
    if (peer === options.self) return options.endpoint;
    const reached = this.#reached.get(peer);
    return reached === this.#listed.get(nodeIdOf(peer)) ? reached : undefined;
  }

  /** All that are listed answer with who they are, or some are missing. */
  async preflight(): Promise<Preflight> {
    const { selfId, options, desk } = this.#context;
    const others = [...this.#listed].filter(([identity]) => identity !== selfId);
    const statuses = await Promise.all(others.map(([, endpoint]) => this.#context.statusOf(endpoint)));
    const { clusterId } = desk.ledger;
    const peers: PeerKey[] = [options.self];
    const missing: string[] = [];
    const backends = new Map<string, string>();
    if (options.backendHash !== undefined) backends.set(normalisedEndpoint(options.endpoint), options.backendHash);
    for (const [at, [identity, endpoint]] of others.entries()) {
      const status = statuses[at] ?? null;
      const isMember = status !== null && nodeIdOf(status.self) === identity && status.clusterId === clusterId;
      if (isMember) peers.push(status.self);
      else missing.push(endpoint);
      if (isMember && status.backendHash !== undefined) backends.set(endpoint, status.backendHash);
    }
    return { peers, missing, backends };
  }

  /** Where members are listed, of these. */
  endpointsOf(peers: readonly PeerKey[]): readonly string[] {
    const listed = this.#listed;
    return peers.flatMap((peer) => listed.get(nodeIdOf(peer)) ?? []);
  }

  /** A voter has something to say: it need not wait for the next round. */
  hurry(): void {
    this.#nextRoundMs = -Infinity;
    this.#context.changed();
  }

  #open(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#context.options.work.begins(this.leader.term);
  }

  #changeVoters(now: Instant): void {
    const { leader } = this;
    const before = leader.roster.voters;
    if (!leader.changeVoters(now, [...this.#met.values()], new Set(this.#listed.keys()))) return;
    for (const voter of before)
      if (!isVoter(leader.roster, voter.peer)) this.#removed.set(voter.peer, { voter, rounds: REMOVED_ROUNDS });
  }

  #round(): void {
    this.#sentNews = this.leader.news;
    const removed = [...this.#removed.values()].map(({ voter }) => voter);
    const round = this.leader.round([...this.#met.values(), ...removed]);
    const { committed } = this.leader;
    // Until a majority has stored it, nobody outside hears of it, however many rounds there are (each new grant is followed by one).
    for (const [peer, one] of this.#removed)
      if (committed !== null && !isVoter(committed, peer) && --one.rounds === 0) this.#removed.delete(peer);
    const asked = new Set(round.map(({ to }) => to.peer));
    for (const peer of this.#reached.keys()) if (!asked.has(peer)) this.#reached.delete(peer);
    for (const sent of round) void this.#send(sent);
  }

  async #send(sent: Outgoing): Promise<void> {
    const sentAt = this.#context.now();
    const endpoint = this.#context.addressOf(sent.to);
    const answer = await this.#context.vote(sent.to, sent.request);
    if (answer === null) return;
    if (answer.voter === sent.to.peer) this.#reached.set(answer.voter, endpoint);
    // What time has ended is over before an answer, which may have waited for long, can say anything else.
    this.leader.passTime(this.#context.now());
    this.leader.took(sent, sentAt, answer);
    this.#context.changed();
  }

  /** Members that are no voters are asked who they are: new ones, those that left, and voters that came back with another disk. */
  #meet(): void {
    const { selfId } = this.#context;
    const listed = this.#listed;
    for (const identity of this.#met.keys()) if (!listed.has(identity)) this.#met.delete(identity);
    for (const [identity, endpoint] of listed) {
      if (identity === selfId || this.#isSettled(identity)) this.#met.delete(identity);
      else void this.#ask(identity, endpoint);
    }
  }

  /** It votes with the disk that it has now. */
  #isSettled(identity: string): boolean {
    const voter = this.leader.roster.voters.find(({ peer }) => nodeIdOf(peer) === identity);
    return voter !== undefined && !this.leader.isReplaced(voter.peer);
  }

  async #ask(identity: string, endpoint: string): Promise<void> {
    const status = await this.#context.statusOf(endpoint);
    if (status === null || nodeIdOf(status.self) !== identity) return;
    const { clusterId } = this.#context.desk.ledger;
    if (status.clusterId === null || status.clusterId === clusterId) {
      this.#met.set(identity, { peer: status.self, endpoint });
      return;
    }
    this.#context.met(status.self, status.clusterId);
  }

  async #releaseAll(): Promise<boolean> {
    const { leader } = this;
    const { clusterId } = this.#context.desk.ledger;
    if (clusterId === null) return false;
    const { voters } = leader.committed ?? leader.roster;
    const all = [...voters, ...leader.roster.voters, ...this.#met.values()];
    const { self: holder, term } = leader;
    const answers = await Promise.all(
      [...new Map(all.map((one) => [one.peer, one])).values()].map((voter) =>
        this.#context.vote(voter, { kind: "release", clusterId, holder, voter: voter.peer, term }),
      ),
    );
    const confirmed = answers.flatMap((answer) => (answer?.outcome.kind === "accepted" ? [answer.voter] : []));
    return voters.filter(({ peer }) => confirmed.includes(peer)).length >= majorityOf(voters.length);
  }
}
