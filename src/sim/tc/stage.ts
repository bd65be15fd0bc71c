// Coordinators of production on the nodes of a simulated world, those who change the registry, and the oracle.

import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import {
  comparePositions,
  generationOf,
  isVoter,
  type Ledger,
  majorityOf,
  recovered,
  type Roster,
  type VoterAnswer,
  type VoterRequest,
} from "../../core/lease/index.ts";
import type { CoordinatorNews } from "../../controller/coordinators/index.ts";
import type { AnswerTo, CoordinatorRequest } from "../../ports/coordinators.ts";
import { type Boot, reached, World } from "../kernel/index.ts";
import type { TcKnobs } from "./knobs.ts";
import { TC_RESCUE_EVERY_MS } from "./limits.ts";
import { type Answering, isStatus, isVote, type NodeWatch, TcNode } from "./node.ts";
import { TcOracle } from "./oracle.ts";
import { LEDGER_FILE, ledgerBytes, ledgerOf } from "./platter.ts";
import type { TcRunOptions } from "./run.ts";
import { Writers } from "./writers.ts";

interface StageOptions extends Pick<TcRunOptions, "narrate" | "reversed"> {
  readonly seed: string;
  readonly knobs: TcKnobs;
}

export class Stage {
  readonly world: World;
  readonly oracle: TcOracle;
  readonly knobs: TcKnobs;
  readonly names: readonly string[];
  readonly writers: Writers;
  /** Who left, and is not to be found in any list. */
  readonly left = new Set<string>();
  /** Requests that were sent, by kind: silence is measured with it. */
  readonly sent = new Map<string, number>();
  /** By node: the next renewals ask for this time. */
  readonly oddTtlMs = new Map<string, number>();
  /** Once, when this node begins to write its ledger. */
  readonly onWrite = new Map<string, () => void>();
  /** Once, when this node begins a round of renewals. */
  readonly onRenewal = new Map<string, () => void>();
  readonly #nodes = new Map<string, TcNode>();
  /** When the request left that a voter of a leader is answering: by leader and voter, the first that is unanswered. */
  readonly #sentMs = new Map<string, number>();
  readonly #leaving = new Set<string>();
  #isCalm = false;

  constructor({ seed, knobs, narrate, reversed }: StageOptions) {
    this.knobs = knobs;
    this.names = Array.from({ length: knobs.nodes }, (_, at) => `n${at + 1}`);
    this.world = new World({
      seed,
      nodes: reversed === true ? this.names.toReversed() : this.names,
      link: knobs.link,
      disk: { readMs: [0.02, 0.1], writeMs: [0.005, 0.02], syncMs: [0.2, knobs.syncMsMax] },
      start: (boot) => this.#start(boot),
      restartAfterExitMs: 2_000,
      trace: narrate,
    });
    for (const [at, name] of this.names.entries()) this.world.node(name).process.setClockRate(knobs.clockRates[at]!);
    this.oracle = new TcOracle(
      this.world,
      () => this.nodes,
      (name) => this.isSeed(name),
    );
    this.writers = new Writers(this);
  }

  /** Those that live, also paused ones. */
  get nodes(): readonly TcNode[] {
    return [...this.#nodes.values()].filter(({ boot }) => boot.isAlive());
  }

  node(name: string): TcNode | undefined {
    const node = this.#nodes.get(name);
    return node?.boot.isAlive() === true ? node : undefined;
  }

  get isCalm(): boolean {
    return this.#isCalm;
  }

  /** Whoever leads, or tries to. */
  get leader(): TcNode | undefined {
    const leading = this.nodes.filter(({ coordinator }) => coordinator.leadership !== null);
    return leading.sort((a, b) => b.coordinator.leadership!.term - a.coordinator.leadership!.term)[0];
  }

  isSeed(name: string): boolean {
    return this.names.indexOf(name) < this.knobs.seeds;
  }

  calmDown(): void {
    this.#isCalm = true;
    this.oddTtlMs.clear();
    this.onWrite.clear();
    this.onRenewal.clear();
    this.world.calm();
    for (const link of this.world.network.links()) link.model = { ...link.model, lossRate: 0 };
    for (const [at, name] of this.names.entries())
      this.world.node(name).process.setClockRate(this.knobs.clockRates[at]!);
    for (const name of this.left) this.world.call(name, () => void this.node(name)?.coordinator.rejoin());
    this.left.clear();
    this.#rescueAfter(100);
  }

  /** Again and again: what is left of a first cluster may meet the second one only later. */
  #rescueAfter(ms: number): void {
    const { scheduler, nowMs } = this.world;
    scheduler.schedule(nowMs + ms, scheduler.owner("operator"), () => {
      this.rescue();
      this.#rescueAfter(TC_RESCUE_EVERY_MS);
    });
  }

  // What an operator does

  leave(name: string): boolean {
    const node = this.node(name);
    if (node === undefined || this.left.has(name) || this.#leaving.has(name)) return false;
    if (node.coordinator.ledger.clusterId === null) return false;
    this.left.add(name);
    this.#leaving.add(name);
    return this.world.call(name, () => {
      const life = node.boot.life;
      void node.coordinator.leave().then((outcome) => {
        this.#tell(node, `leave: ${outcome}`);
        this.#leaving.delete(name);
        if (outcome !== "left") this.left.delete(name);
        else if (this.#isCalm && this.node(name)?.boot.life === life) void node.coordinator.rejoin();
        if (outcome === "left" && this.#isCalm) this.left.delete(name);
      });
    });
  }

  rejoin(name: string): void {
    const node = this.node(name);
    if (node === undefined || !this.left.delete(name)) return;
    reached(this.oracle.probes, "left-and-came-back");
    this.world.call(name, () => void node.coordinator.rejoin());
  }

  resign(): boolean {
    const { leader } = this;
    return leader !== undefined && this.world.call(leader.name, () => void leader.coordinator.resign());
  }

  /** `recover --force`, on this node's disk, while it does not run. False: it is in no cluster. */
  recover(name: string): boolean {
    const ledger = this.durable(name);
    const self = this.oracle.present.get(name);
    if (ledger === null || ledger.clusterId === null || ledger.roster === null || self === undefined) return false;
    this.world.crash(name);
    const kept = this.durable(name);
    if (kept === null) return false;
    const { disk } = this.world.node(name);
    const next = recovered(kept, { peer: self, endpoint: name });
    disk.restore(new Map([...disk.image(), [LEDGER_FILE, ledgerBytes(incarnationOf(self), next)]]));
    this.oracle.recovered(self, next);
    // What others had acknowledged and this node had not stored is lost: that is the operator's risk.
    this.writers.forget();
    reached(this.oracle.probes, "recovered-into-a-generation");
    this.world.startAfter(name, 1);
    return true;
  }

  /** Where no quorum can ever come back, one node is recovered: the one that knows the newest roster. */
  rescue(): void {
    const known = this.names.flatMap((name) => {
      const roster = this.durable(name)?.roster ?? null;
      return roster === null ? [] : [{ name, roster }];
    });
    known.sort((a, b) => comparePositions(b.roster, a.roster));
    const [newest] = known;
    if (newest === undefined) return;
    // Of each cluster the newest roster decides: whoever has it refuses older ones.
    const clusters = Map.groupBy(known, ({ name }) => this.durable(name)!.clusterId);
    const living = [...clusters.values()]
      .flatMap(([first]) => first!)
      .filter(({ roster }) => this.hasQuorum(roster, new Set()));
    if (living.length === 0) {
      this.world.scheduler.narrate("operator", () => `recovers ${newest.name}`);
      this.recover(newest.name);
    }
    // A founder that lost its disk has founded again: what is left of its first cluster is given up (`tenure tc discard`).
    const { clusterId } = this.durable((living[0] ?? newest).name)!;
    for (const { name } of known.filter((one) => this.durable(one.name)?.clusterId !== clusterId)) this.#discard(name);
  }

  #discard(name: string): void {
    this.world.crash(name);
    this.world.node(name).disk.wipe();
    this.oracle.present.delete(name);
    this.world.startAfter(name, 1);
  }

  /** Whether a majority of its voters still has its disk, without those of `gone`. */
  hasQuorum(roster: Roster, gone: ReadonlySet<string>): boolean {
    const there = roster.voters.filter(
      ({ peer }) => !gone.has(nodeIdOf(peer)) && this.oracle.present.get(nodeIdOf(peer)) === peer,
    );
    return there.length >= majorityOf(roster.voters.length);
  }

  /** A disk may go as long as every roster that somebody has keeps its quorum. */
  mayWipe(name: string): boolean {
    const gone = new Set([name]);
    const ofDisks = this.names.map((one) => this.durable(one)?.roster ?? null);
    const ofLeaders = this.nodes.map(({ coordinator }) => coordinator.leadership?.roster ?? null);
    return [...ofDisks, ...ofLeaders].every((roster) => roster === null || this.hasQuorum(roster, gone));
  }

  /** What a crash at this moment would keep of its ledger. */
  durable(name: string): Ledger | null {
    const bytes = this.world.node(name).disk.directory.durable.get(LEDGER_FILE)?.durableContent();
    return bytes === undefined ? null : (ledgerOf(bytes) ?? null);
  }

  /** In what the nodes do not agree, or null. */
  disagreement(): string | null {
    const leading = this.nodes.filter(({ coordinator }) => coordinator.leads !== null);
    if (leading.length !== 1) return `${leading.length} nodes lead`;
    const leader = leading[0]!.coordinator;
    const { committed, roster } = leader.leadership!;
    if (committed !== roster) return "a roster is on its way";
    if (this.#leaving.size > 0) return `${[...this.#leaving].join()} is about to leave`;
    const voters = roster.voters.map(({ peer }) => peer).join();
    const all = this.names.map((name) => this.node(name)?.self ?? `${name} does not run`);
    if (voters !== all.toSorted().join()) return `the voters are ${voters}, the nodes ${all.join()}`;
    for (const { name, coordinator, boot } of this.nodes) {
      const { ledger, members } = coordinator;
      if (ledger.roster === null || comparePositions(ledger.roster, roster) !== 0) return `${name} has another roster`;
      if (ledger.shown === null || comparePositions(ledger.shown, roster) !== 0) return `${name} shows another roster`;
      if (!isVoter(ledger.roster, this.node(name)!.self)) return `${name} is no voter`;
      const listed = members.endpoints(boot.clock.wallMs()).join();
      if (listed !== this.names.toSorted().join()) return `${name} lists ${listed}`;
    }
    return null;
  }

  // What nodes show

  #booted(node: TcNode, isDamaged: boolean): void {
    if (isDamaged) reached(this.oracle.probes, "ledger-damaged");
    this.oracle.present.set(node.name, node.self);
    this.oracle.booted(node);
    this.left.delete(node.name);
    this.#leaving.delete(node.name);
  }

  #writing({ name }: TcNode): void {
    once(this.onWrite, name);
  }

  #news(node: TcNode, news: CoordinatorNews): void {
    this.oracle.news(node, news);
    // The first cluster has nothing to forget.
    if (news.kind === "founded" && this.oracle.winners.size > 0) this.writers.forget();
  }

  #heard(node: TcNode, from: PeerKey, body: CoordinatorRequest | AnswerTo<CoordinatorRequest>): void {
    const { clusterId } = node.coordinator.ledger;
    if ("kind" in body && (body.kind === "acquire" || body.kind === "renew")) {
      if (body.roster !== null && body.clusterId === clusterId && nodeIdOf(body.holder) === nodeIdOf(from))
        this.oracle.heard(node, generationOf(body.roster.term));
    } else if (!("kind" in body) && (isStatus(body) || isVote(body)) && body.clusterId === clusterId) {
      if (body.roster !== null) this.oracle.heard(node, generationOf(body.roster.term));
    }
    if (isAccepted(body)) {
      const key = `${node.name} ${body.voter}`;
      const sentMs = this.#sentMs.get(key);
      if (sentMs !== undefined) this.oracle.answered(node, body.voter, body.term, sentMs);
    }
  }

  #sending(node: TcNode, to: string, request: CoordinatorRequest): CoordinatorRequest {
    this.sent.set(request.kind, (this.sent.get(request.kind) ?? 0) + 1);
    this.world.scheduler.narrate(node.name, () => `${request.kind} to ${to}`);
    if (request.kind === "release") this.oracle.releasing(node, request.term);
    const isLost = request.kind === "release" && !this.oracle.hasWon(node, request.term);
    if (isLost) reached(this.oracle.probes, "candidacy-lost");
    if (request.kind !== "acquire" && request.kind !== "renew") return request;
    if (request.kind === "acquire") this.oracle.acquiring(node, request.term, this.durable(node.name));
    if (request.roster !== null) this.oracle.sendingRoster(node, request.roster);
    if (request.kind === "renew") once(this.onRenewal, node.name);
    const voter = this.oracle.present.get(to);
    if (voter !== undefined) this.#sentMs.set(`${node.name} ${voter}`, this.world.nowMs);
    const ttlMs = this.oddTtlMs.get(node.name);
    return ttlMs === undefined ? request : { ...request, ttlMs };
  }

  #answering(node: TcNode, { to, request, answer, arrivedMs }: Answering): void {
    if (!isVote(answer)) return;
    const text = answer.outcome.kind === "refused" ? answer.outcome.reason : "accepted";
    this.world.scheduler.narrate(node.name, () => `${request.kind} of ${to}: ${text}`);
    const vote = request as VoterRequest;
    if (vote.kind !== "release" && vote.ttlMs !== 3_000) reached(this.oracle.probes, "odd-ttl-answered");
    this.oracle.answering(node, { request: vote, answer, arrivedMs, durable: this.durable(node.name) });
  }

  #start(boot: Boot): void {
    const watch: NodeWatch = {
      booted: (node, isDamaged) => this.#booted(node, isDamaged),
      durable: (node, ledger) => this.oracle.durable(node, ledger),
      writing: (node) => this.#writing(node),
      news: (node, news) => this.#news(node, news),
      heard: (node, from, body) => this.#heard(node, from, body),
      sending: (node, to, request) => this.#sending(node, to, request),
      answering: (node, answering) => this.#answering(node, answering),
    };
    const seeds = this.names.slice(0, this.knobs.seeds);
    TcNode.begin(boot, seeds, { knobs: this.knobs, watch }, (node) => this.#nodes.set(boot.node, node));
  }

  #tell(node: TcNode, text: string): void {
    this.world.scheduler.trace(node.name, text);
    this.world.scheduler.narrate(node.name, () => text);
  }
}

function once(strikes: Map<string, () => void>, name: string): void {
  const strike = strikes.get(name);
  strikes.delete(name);
  strike?.();
}

function isAccepted(body: CoordinatorRequest | AnswerTo<CoordinatorRequest>): body is VoterAnswer {
  return "outcome" in body && body.outcome.kind === "accepted";
}
