// What must hold in every run of coordinators, checked after every event.
//
// 1 a term has one winner · 2 two leaders of a generation never trust at once, in true time · 3 a ledger never falls · 4 no answer before its ledger is
// durable, and no promise longer than the fixed time or taken back · 5 rosters follow each other by one voter, each stored by a majority before the
// next voter changes, and stored only under the grant of whoever sent it · 6 a gate opens after its own roster was stored, and a voter is removed only
// while a majority of the rest answers · 7 what is shown was stored by a majority, and a change by all that were listed; what was refused is never
// shown · 8 a node that has heard of a higher generation neither leads nor grants below it · 9 a release leaves after the work has ended · 10 a
// cluster is founded once · 11 whoever left is registered no more · 12 nobody leads whom nobody wants to · 13 no voter forgets, and no identity is
// reported as shared: the plan has neither · 14 nobody leads who is about to leave · 15 terms are not won
// and lost at the speed of the network.

import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import {
  comparePositions,
  generationOf,
  isVoter,
  type Ledger,
  majorityOf,
  type Position,
  positionOf,
  type RegistryChange,
  type RegistryEntry,
  type Roster,
  type RosterVoter,
  type VoterAnswer,
  type VoterRequest,
} from "../../core/lease/index.ts";
import { LEASE_BOOT_WAIT_MS, ROUND_ANSWERED_MS } from "../../core/lease/limits.ts";
import type { CoordinatorNews } from "../../controller/coordinators/index.ts";
import { reached, type World } from "../kernel/index.ts";
import { COORDINATOR_RATE_MIN } from "./knobs.ts";
import { TC_CAMPAIGN_MS, TC_WINS_MAX, TC_WINS_WITHIN_MS } from "./limits.ts";
import type { TcNode } from "./node.ts";
import type { Probe } from "./probes.ts";
import { registeredAt, wrongInService } from "./shown.ts";

interface KnownRoster {
  readonly roster: Roster;
  readonly storedBy: Set<PeerKey>;
  /** Of a change of the registry: all of them must have stored it before it is shown. */
  listed: readonly PeerKey[];
}

/** An answer that is about to leave; `durable`: what the disk has at this moment. */
export interface Vote {
  readonly request: VoterRequest;
  readonly answer: VoterAnswer;
  readonly arrivedMs: number;
  readonly durable: Ledger | null;
}

export class TcOracle {
  readonly probes: Partial<Record<Probe, number>> = {};
  readonly winners = new Map<string, PeerKey>();
  /** By identity, what its disk would keep. */
  readonly durables = new Map<PeerKey, Ledger>();
  readonly rosters = new Map<string, KnownRoster>();
  /** Backends whose change was refused for good. */
  readonly refusedBackends = new Set<string>();
  readonly #world: World;
  readonly #nodes: () => readonly TcNode[];
  readonly #isSeed: (name: string) => boolean;
  readonly #committed = new Map<string, Position>();
  /** By node and life: the highest generation of which it has heard. */
  readonly #heard = new Map<string, { readonly generation: number; readonly atMs: number }>();
  /** Until when a voter's clock has promised, and to whom. */
  readonly #promises = new Map<string, { readonly holder: PeerKey; readonly untilMs: number }>();
  /** By leader and term, when the last answered request to each voter left, in true time. */
  readonly #answered = new Map<string, Map<PeerKey, number>>();
  readonly #seenRosters = new Map<TcNode, Roster>();
  /** When the last terms were won. */
  readonly #wonMs: number[] = [];
  readonly #made = new Set<string>();
  readonly #seenCommitted = new Map<TcNode, Roster>();
  readonly #suspended = new Set<TcNode>();
  /** Since when nobody wants it to lead. */
  readonly #unwantedMs = new Map<TcNode, number>();
  /** On their way. */
  readonly #changes = new Set<RegistryChange>();

  constructor(world: World, nodes: () => readonly TcNode[], isSeed: (name: string) => boolean) {
    this.#world = world;
    this.#nodes = nodes;
    this.#isSeed = isSeed;
  }

  /** After every event. */
  check(): void {
    for (const change of this.#changes) {
      if (change.state === "undone") reached(this.probes, "registry-undone");
      if (change.state === "undone" || change.state === "shown") this.#changes.delete(change);
    }
    const trusting: TcNode[] = [];
    for (const node of this.#nodes()) {
      if (node.trusts !== null) trusting.push(node);
      this.#checkElector(node);
      if (node.coordinator.leadership === null) continue;
      this.#checkRosters(node);
      if (node.coordinator.leads === null) {
        if (node.working !== null && node.coordinator.leadership.over === null) this.#suspended.add(node);
        continue;
      }
      if (this.#suspended.delete(node)) reached(this.probes, "gate-closed-and-opened-again");
      this.#checkGate(node);
    }
    for (const a of trusting) for (const b of trusting) if (a.name < b.name && isSameCluster(a, b)) this.#overlap(a, b);
  }

  #overlap(a: TcNode, b: TcNode): void {
    const [first, second] = [a.trusts, b.trusts];
    if (first === null || second === null || generationOf(first) !== generationOf(second)) return;
    this.#report(a, `it trusts in term ${first} while ${b.name} trusts in term ${second}`);
  }

  /** The gate that work asks is never open without the leadership that it is for. */
  #checkElector(node: TcNode): void {
    const { gate } = node.coordination.elector;
    if (!gate.isLeader) return;
    const epoch = gate.requireLeader();
    const { leadership } = node.coordinator;
    if (leadership?.term === epoch && leadership.over === null) return;
    this.#report(node, `its elector's gate is open in term ${epoch}, and it does not lead there`);
  }

  #checkGate(node: TcNode): void {
    const { leadership } = node.coordinator;
    if (leadership === null) return;
    const { committed, term } = leadership;
    if (node.coordinator.status.isLeaving)
      this.#report(node, `its gate is open in term ${term}, and it is about to leave`);
    const isStored = committed !== null && committed.term === term && this.#isStored(clusterOf(node), committed);
    if (!isStored) this.#report(node, `its gate is open in term ${term}, and no majority has stored its roster`);
    if (generationOf(term) < (this.#heard.get(node.name)?.generation ?? 0))
      this.#report(node, `its gate is open in term ${term} although it has heard of a higher generation`);
  }

  /** The leader's roster, the moment that it is made. */
  #checkRosters(node: TcNode): void {
    const leader = node.coordinator.leadership!;
    const before = this.#seenRosters.get(node);
    const { roster, committed, term } = leader;
    if (roster !== before) {
      this.#seenRosters.set(node, roster);
      this.#made.add(keyOf(clusterOf(node), roster));
      if (before?.term === term) this.#follows(node, before, roster);
    }
    // One that was paused hears late what its voters stored in its time; it acts on nothing of that unless it trusts.
    if (committed === null || committed === this.#seenCommitted.get(node) || node.coordinator.leads === null) return;
    this.#seenCommitted.set(node, committed);
    const generation = `${clusterOf(node)}/${generationOf(term)}`;
    const highest = this.#committed.get(generation);
    if (highest !== undefined && comparePositions(committed, highest) < 0)
      this.#report(node, `it has committed ${placeOf(committed)} after ${placeOf(highest)}`);
    this.#committed.set(generation, positionOf(committed));
  }

  #follows(node: TcNode, before: Roster, roster: Roster): void {
    const removed = before.voters.filter(({ peer }) => !isVoter(roster, peer));
    const added = roster.voters.filter(({ peer }) => !isVoter(before, peer));
    if (removed.length + added.length > 1) this.#report(node, `${placeOf(roster)} changes two voters`);
    if (removed.length + added.length === 0) {
      const isMoved = roster.voters.some(({ endpoint }, at) => endpoint !== before.voters[at]!.endpoint);
      if (isMoved) reached(this.probes, "voter-moved");
      return;
    }
    if (!this.#isStored(clusterOf(node), before))
      this.#report(node, `${placeOf(roster)} follows a roster that no majority has stored`);
    if (added.length > 0) reached(this.probes, "voter-joined");
    if (removed.length === 0) return;
    const times = this.#answered.get(`${node.self}/${roster.term}`);
    const sinceMs = this.#world.nowMs - ROUND_ANSWERED_MS / COORDINATOR_RATE_MIN - 1;
    const answering = roster.voters.filter(({ peer }) => peer === node.self || (times?.get(peer) ?? -1) >= sinceMs);
    if (answering.length < majorityOf(roster.voters.length))
      this.#report(node, `${placeOf(roster)} removes ${removed[0]!.peer} while no majority of the rest answers`);
    this.#removed(removed[0]!);
  }

  #removed({ peer }: RosterVoter): void {
    const now = this.#nodes().find(({ name }) => name === nodeIdOf(peer));
    if (now === undefined) reached(this.probes, "voter-retired");
    else reached(this.probes, now.self === peer ? "voter-left" : "voter-replaced");
  }

  #isStored(clusterId: string, { voters, ...position }: Roster): boolean {
    const known = this.rosters.get(keyOf(clusterId, position));
    return known !== undefined && countOf(voters, (peer) => known.storedBy.has(peer)) >= majorityOf(voters.length);
  }

  // What nodes show

  /** What its service says, to the API and to the alerts. */
  shows(node: TcNode, moves: number): void {
    const wrong = wrongInService(node, moves);
    if (wrong !== null) this.#report(node, wrong);
  }

  /** `entry`: what it had registered for itself. */
  hasLeft(node: TcNode, entry: RegistryEntry): void {
    const generation = generationOf(node.coordinator.ledger.roster?.term ?? 0);
    const at = registeredAt(entry, generation, this.#nodes());
    if (at !== null) this.#report(node, `it has left, and is still registered at ${at}`);
  }

  wanted(node: TcNode, isWanted: boolean): void {
    if (isWanted) this.#unwantedMs.delete(node);
    else this.#unwantedMs.set(node, this.#world.nowMs);
  }

  // What nodes do

  booted(node: TcNode): void {
    this.#heard.delete(node.name);
    this.#promises.delete(node.name);
    this.#suspended.delete(node);
    // It may have been written in full, and the process have died before it heard so. It is never an older one.
    const { ledger } = node.coordinator;
    if (ledger.clusterId !== null) this.durable(node, ledger);
  }

  durable(node: TcNode, ledger: Ledger): void {
    const before = this.durables.get(node.self);
    this.durables.set(node.self, ledger);
    const { roster, grant, shown } = ledger;
    if (before !== undefined) this.#checkLedger(node, before, ledger);
    if (roster !== null) this.#stored(node, roster);
    if (before === undefined || grant === null || roster === null || before.roster === null) return;
    const isSameGrant = grant.term === before.grant?.term && grant.leader === before.grant.leader;
    if (isSameGrant && comparePositions(roster, before.roster) !== 0 && roster.term !== grant.term)
      this.#report(node, `it stores ${placeOf(roster)} under a grant of term ${grant.term}`);
    if (shown !== null && shown !== before.shown) this.#checkShown(node, ledger);
  }

  #checkLedger(node: TcNode, before: Ledger, after: Ledger): void {
    if (after.term < before.term) this.#report(node, `its term falls from ${before.term} to ${after.term}`);
    if (before.roster !== null && (after.roster === null || comparePositions(after.roster, before.roster) < 0))
      this.#report(node, `its roster falls from ${placeOf(before.roster)}`);
    if (before.shown !== null && (after.shown === null || comparePositions(after.shown, before.shown) < 0))
      this.#report(node, `what it shows falls from ${placeOf(before.shown)}`);
    if (before.grant !== null && after.grant?.term === before.grant.term && after.grant.leader !== before.grant.leader)
      this.#report(node, `it grants term ${after.grant.term} twice`);
  }

  #stored(node: TcNode, roster: Roster): void {
    const place = placeOf(roster);
    const clusterId = this.durables.get(node.self)!.clusterId!;
    const key = keyOf(clusterId, roster);
    const known = this.rosters.get(key) ?? { roster, storedBy: new Set(), listed: [] };
    this.rosters.set(key, known);
    if (roster.term > 0 && !this.#made.has(key)) this.#report(node, `it stores ${place}, which no leader has made`);
    if (JSON.stringify(known.roster) !== JSON.stringify(roster)) this.#report(node, `there are two rosters ${place}`);
    const isStranger = !isVoter(roster, node.self) && roster.term === this.durables.get(node.self)?.grant?.term;
    if (isStranger && !this.#isStored(clusterId, roster))
      this.#report(node, `it has stored ${place}, in which it does not vote, before a majority of its voters`);
    known.storedBy.add(node.self);
  }

  #checkShown(node: TcNode, { shown, clusterId }: Ledger): void {
    const known = this.rosters.get(keyOf(clusterId!, shown!));
    if (known === undefined || JSON.stringify(known.roster.registry) !== JSON.stringify(shown!.registry))
      return this.#report(node, `it shows what ${placeOf(shown!)} does not have`);
    if (!this.#isStored(clusterId!, known.roster))
      this.#report(node, `it shows ${placeOf(shown!)}, which no majority of its voters has stored`);
    const missing = known.listed.find((peer) => !this.#hasStored(peer, shown!));
    if (missing !== undefined)
      this.#report(node, `it shows ${placeOf(shown!)}, which ${missing} was to store and has not`);
    const refused = shown!.registry.find(({ backendHash }) => this.refusedBackends.has(backendHash));
    if (refused !== undefined) this.#report(node, `it shows ${refused.backendHash}, whose change was refused`);
  }

  #hasStored(peer: PeerKey, position: Position): boolean {
    const roster = this.durables.get(peer)?.roster ?? null;
    return roster !== null && comparePositions(roster, position) >= 0;
  }

  news(node: TcNode, news: CoordinatorNews): void {
    this.#world.scheduler.trace(node.name, news.kind);
    this.#world.scheduler.narrate(node.name, () => JSON.stringify(news));
    switch (news.kind) {
      case "founded":
        return this.#founded(node);
      case "elected":
        return this.#elected(node, news.term);
      case "over":
        if (news.because === "expired") reached(this.probes, "leader-expired");
        if (news.because === "released") reached(this.probes, "leader-released");
        if (news.because === "higher-term") reached(this.probes, "leader-yielded-to-a-higher-term");
        return;
      case "registry": {
        const { position, listed } = news.change;
        this.#changes.add(news.change);
        const roster = node.coordinator.leadership?.roster;
        const key = keyOf(clusterOf(node), position);
        const known = this.rosters.get(key);
        if (known !== undefined) known.listed = listed;
        else if (roster !== undefined) this.rosters.set(key, { roster, storedBy: new Set(), listed });
        return;
      }
      case "mismatch":
      case "waits":
        return;
    }
  }

  #founded(node: TcNode): void {
    const other = this.#others(node).find(({ self }) => (this.durables.get(self)?.clusterId ?? null) !== null);
    if (other !== undefined) this.#report(node, `it founds a cluster although ${other.name} is in one`);
  }

  /** The other seeds, with what is on their disks: also those that do not run. */
  #others({ name }: TcNode): { readonly name: string; readonly self: PeerKey }[] {
    const others = [...this.present].filter(([other]) => other !== name && this.#isSeed(other));
    return others.map(([other, self]) => ({ name: other, self }));
  }

  /** By name, the voter that its disk makes it. */
  readonly present = new Map<string, PeerKey>();

  /** A leader sends a roster of its own term. */
  sendingRoster(node: TcNode, roster: Roster): void {
    if (node.coordinator.leadership?.term === roster.term) this.#made.add(keyOf(clusterOf(node), roster));
  }

  hasWon(node: TcNode, term: number): boolean {
    return this.winners.get(`${clusterOf(node)}/${term}`) === node.self;
  }

  #elected(node: TcNode, term: number): void {
    const key = `${clusterOf(node)}/${term}`;
    const unwantedMs = this.#world.nowMs - (this.#unwantedMs.get(node) ?? Infinity);
    if (unwantedMs > TC_CAMPAIGN_MS) this.#report(node, `it wins term ${term}, and nobody wants it to lead`);
    const winner = this.winners.get(key);
    if (winner !== undefined) this.#report(node, `it wins term ${term}, which ${winner} has won`);
    this.winners.set(key, node.self);
    this.#wonMs.push(this.#world.nowMs);
    if (this.#wonMs.length > TC_WINS_MAX && this.#world.nowMs - this.#wonMs.shift()! < TC_WINS_WITHIN_MS)
      this.#report(node, `it wins term ${term}, and more than ${TC_WINS_MAX} were won within ${TC_WINS_WITHIN_MS} ms`);
  }

  heard(node: TcNode, generation: number): void {
    const known = this.#heard.get(node.name)?.generation ?? 0;
    if (generation > known) this.#heard.set(node.name, { generation, atMs: node.boot.clock.monotonicMs() });
  }

  /** On this node's disk: in a generation of its own. */
  recovered(self: PeerKey, ledger: Ledger): void {
    this.durables.set(self, ledger);
    const roster = ledger.roster!;
    this.#made.add(keyOf(ledger.clusterId!, roster));
    this.rosters.set(keyOf(ledger.clusterId!, roster), { roster, storedBy: new Set([self]), listed: [] });
  }

  /** An answer arrived at whoever asked. */
  answered(leader: TcNode, voter: PeerKey, term: number, sentMs: number): void {
    const key = `${leader.self}/${term}`;
    const times = this.#answered.get(key) ?? new Map<PeerKey, number>();
    this.#answered.set(key, times);
    times.set(voter, Math.max(times.get(voter) ?? 0, sentMs));
  }

  /** `durable`: what the disk of the candidate, or leader, has at this moment. */
  acquiring(node: TcNode, term: number, durable: Ledger | null): void {
    if (durable === null || durable.term < term) this.#report(node, `it asks for term ${term} without its own grant`);
  }

  releasing(node: TcNode, term: number, durable: Ledger | null): void {
    if (durable === null || durable.term < term) this.#report(node, `it releases term ${term} without its own grant`);
    if (node.coordinator.leads === term) this.#report(node, `it releases term ${term} while its gate is open`);
    if (node.working === term) this.#report(node, `it releases term ${term} while its work runs`);
  }

  answering(node: TcNode, { request, answer, arrivedMs, durable }: Vote): void {
    const { outcome } = answer;
    if (outcome.kind === "refused") return this.#refused(node, outcome.reason);
    if (request.kind !== "release" && request.roster === null)
      this.#report(node, `it takes ${request.kind} of term ${request.term}, which has no roster`);
    const grant = durable?.grant ?? null;
    const isLater = grant !== null && grant.term > request.term;
    const isKept = grant !== null && grant.term === request.term && grant.leader === request.holder;
    if (!isLater && (!isKept || (request.kind === "release" && !grant.released)))
      this.#report(node, `it answers ${request.kind} of term ${request.term} before that is durable`);
    const { roster } = answer;
    const kept = durable?.roster ?? null;
    if (roster !== null && (kept === null || comparePositions(kept, roster) < 0))
      this.#report(node, `it answers that it has stored ${placeOf(roster)} before that is durable`);
    if (request.kind === "release") return void this.#promises.delete(node.name);
    const heard = this.#heard.get(node.name);
    if (heard !== undefined && heard.atMs < arrivedMs && generationOf(request.term) < heard.generation)
      this.#report(node, `it grants term ${request.term} although it has heard of a higher generation`);
    this.#promised(node, request.holder, outcome.lastsMs, arrivedMs);
  }

  /** It was decided between the request's arrival and this moment. */
  #promised(node: TcNode, holder: PeerKey, lastsMs: number, arrivedMs: number): void {
    if (lastsMs > LEASE_BOOT_WAIT_MS) this.#report(node, `it promises ${lastsMs} ms`);
    const untilMsMax = node.boot.clock.monotonicMs() + lastsMs;
    const before = this.#promises.get(node.name);
    if (before?.holder === holder && untilMsMax < before.untilMs - 1)
      this.#report(node, `it promised ${holder} more than ${lastsMs} ms before`);
    this.#promises.set(node.name, { holder, untilMs: arrivedMs + lastsMs });
  }

  #refused(node: TcNode, reason: string): void {
    // In this life it has promised nothing yet.
    if (reason === "lease-active" && !this.#promises.has(node.name)) reached(this.probes, "boot-wait-refused");
    const probes: Readonly<Record<string, Probe>> = {
      "lease-active": "lease-active-refused",
      "roster-stale": "older-roster-refused",
      "term-stale": "older-term-refused",
      "generation-over": "generation-refused",
      "identity-mismatch": "identity-refused",
    };
    const probe = probes[reason];
    if (probe !== undefined) reached(this.probes, probe);
  }

  #report(node: TcNode, sentence: string): void {
    this.#world.report(node.name, sentence);
  }
}

function placeOf({ term, version }: Position): string {
  return `roster ${term}.${version}`;
}

function clusterOf({ coordinator }: TcNode): string {
  return coordinator.ledger.clusterId ?? "none";
}

function keyOf(clusterId: string, { term, version }: Position): string {
  return `${clusterId}/${term}.${version}`;
}

function isSameCluster(a: TcNode, b: TcNode): boolean {
  return clusterOf(a) === clusterOf(b);
}

function countOf(voters: readonly RosterVoter[], is: (peer: PeerKey) => boolean): number {
  return voters.filter(({ peer }) => is(peer)).length;
}
