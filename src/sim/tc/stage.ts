// Coordinators of production on the nodes of a simulated world, those who change the registry, and the oracle.

import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import {
  comparePositions,
  decodeLedger,
  generationOf,
  isVoter,
  type Ledger,
  type Position,
  type VoterAnswer,
  type VoterRequest,
} from "../../core/lease/index.ts";
import { type CoordinatorNews, LEDGER_NAME } from "../../controller/coordinators/index.ts";
import type { AnswerTo, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { Digest } from "../../ports/digest.ts";
import { type Boot, reached, World } from "../kernel/index.ts";
import type { TcKnobs } from "./knobs.ts";
import { TC_LOOK_EVERY_MS, TC_LATE_REGISTRATION_MS } from "./limits.ts";
import { type Answering, isStatus, isVote, type NodeWatch, TcNode } from "./node.ts";
import { Operator } from "./operator.ts";
import { TcOracle } from "./oracle.ts";
import { Places } from "./places.ts";
import type { TcRunOptions } from "./run.ts";
import { Writers } from "./writers.ts";

interface StageOptions extends Pick<TcRunOptions, "narrate" | "reversed" | "digest"> {
  readonly seed: string;
  readonly knobs: TcKnobs;
}

export class Stage {
  readonly world: World;
  readonly oracle: TcOracle;
  readonly knobs: TcKnobs;
  readonly names: readonly string[];
  readonly writers: Writers;
  readonly operator: Operator;
  readonly places: Places;
  readonly digest: Digest;
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
  /** When a node last asked to be registered itself. */
  readonly #registeringMs = new Map<string, number>();
  #isCalm = false;

  constructor({ seed, knobs, narrate, reversed, digest }: StageOptions) {
    this.knobs = knobs;
    this.digest = digest;
    this.names = Array.from({ length: knobs.nodes }, (_, at) => `n${at + 1}`);
    this.places = new Places(this.names);
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
    this.#moveApart();
    this.oracle = new TcOracle(
      this.world,
      () => this.nodes,
      (name) => this.isSeed(name),
    );
    this.writers = new Writers(this);
    this.operator = new Operator(this);
    this.#lookAfter();
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
    this.world.network.becomes({ lossRate: 0 });
    this.#moveApart();
    for (const [at, name] of this.names.entries())
      this.world.node(name).process.setClockRate(this.knobs.clockRates[at]!);
    this.operator.calmDown();
  }

  /** Nodes of different places: a fault of the links between them ends with links as short as any, until the last one has ended. */
  #moveApart(): void {
    const placeOf = (name: string): number => this.names.indexOf(name) % this.knobs.places;
    for (const link of this.world.network.links()) {
      const { latencyMinMs } = link.model;
      const isFar = placeOf(link.from) !== placeOf(link.to);
      if (isFar) link.model = { ...link.model, latencyMinMs: latencyMinMs + this.knobs.farMs };
    }
  }

  /** What the service of each node shows, now and then. */
  #lookAfter(): void {
    const { scheduler, nowMs } = this.world;
    scheduler.schedule(nowMs + TC_LOOK_EVERY_MS, scheduler.owner("operator"), () => {
      for (const node of this.nodes) this.oracle.shows(node, this.places.movesOf(node.name));
      this.#lookAfter();
    });
  }

  /** It has left, and is in no registry any more; unless a request of its own is still on its way. */
  hasLeft(node: TcNode): void {
    const atMs = this.#registeringMs.get(node.name) ?? -Infinity;
    if (this.world.nowMs - atMs < TC_LATE_REGISTRATION_MS) return;
    const { name } = node;
    this.oracle.hasLeft(node, { backendHash: this.places.backendHashOf(name), endpoint: this.places.endpointOf(name) });
  }

  /** What a crash at this moment would keep of its ledger. */
  durable(name: string): Ledger | null {
    const bytes = this.world.node(name).disk.directory.durable.get(LEDGER_NAME)?.durableContent();
    const read = bytes === undefined ? null : decodeLedger(bytes, this.digest);
    return read?.kind === "whole" ? read.value.ledger : null;
  }

  /** In what the nodes do not agree, or null. */
  disagreement(): string | null {
    const leading = this.nodes.filter(({ coordinator }) => coordinator.leads !== null);
    if (leading.length !== 1) return `${leading.length} nodes lead`;
    const leader = leading[0]!.coordinator;
    const { committed, roster } = leader.leadership!;
    if (committed !== roster) return "a roster is on its way";
    const { leaving } = this.operator;
    if (leaving.length > 0) return `${leaving.join()} is about to leave`;
    const voters = roster.voters.map(({ peer }) => peer).join();
    const all = this.names.map((name) => this.node(name)?.self ?? `${name} does not run`);
    if (voters !== all.toSorted().join()) return `the voters are ${voters}, the nodes ${all.join()}`;
    const lost = roster.voters.find(({ peer, endpoint }) => endpoint !== this.places.endpointOf(nodeIdOf(peer)));
    if (lost !== undefined) return `the roster has ${lost.peer} at ${lost.endpoint}`;
    const silent = leading[0]!.service.members().voters.find(({ state }) => state !== "leads" && state !== "answers");
    if (silent !== undefined) return `the leader shows ${silent.peer} as ${silent.state}`;
    for (const node of this.nodes) {
      const different = this.#different(node, roster);
      if (different !== null) return different;
    }
    return null;
  }

  #different({ name, coordinator, boot, self }: TcNode, roster: Position): string | null {
    const { ledger, members } = coordinator;
    if (ledger.roster === null || comparePositions(ledger.roster, roster) !== 0) return `${name} has another roster`;
    if (ledger.shown === null || comparePositions(ledger.shown, roster) !== 0) return `${name} shows another roster`;
    if (!isVoter(ledger.roster, self)) return `${name} is no voter`;
    const listed = members.endpoints(boot.clock.wallMs()).join();
    const places = this.names.map((one) => this.places.endpointOf(one));
    if (listed !== places.toSorted().join()) return `${name} lists ${listed}`;
    const { registry } = ledger.shown;
    const missing = this.names.find((one) => {
      const [hash, endpoint] = [this.places.backendHashOf(one), this.places.endpointOf(one)];
      return !registry.some((entry) => entry.endpoint === endpoint && entry.backendHash === hash);
    });
    return missing === undefined ? null : `${name} does not show ${missing} as registered`;
  }

  // What nodes show

  #booted(node: TcNode, setAside: string | null): void {
    const { probes, present } = this.oracle;
    if (setAside !== null) reached(probes, setAside.includes("damaged") ? "ledger-damaged" : "ledger-of-another-log");
    if (node.coordinator.members.active(node.boot.clock.wallMs()).length > 0) reached(probes, "leases-kept");
    present.set(node.name, node.self);
    this.oracle.booted(node);
    this.operator.booted(node);
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
    if (request.kind === "registry" && request.entry.endpoint === this.places.endpointOf(node.name))
      if (request.change === "register") this.#registering(node);
    if (request.kind === "release") this.oracle.releasing(node, request.term, this.durable(node.name));
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

  #registering({ name, coordinator }: TcNode): void {
    this.#registeringMs.set(name, this.world.nowMs);
    if (coordinator.hasLeft) this.world.report(name, "it registers itself although it has left");
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
      booted: (node, setAside) => this.#booted(node, setAside),
      durable: (node, ledger) => this.oracle.durable(node, ledger),
      writing: (node) => this.#writing(node),
      news: (node, news) => this.#news(node, news),
      heard: (node, from, body) => this.#heard(node, from, body),
      sending: (node, to, request) => this.#sending(node, to, request),
      answering: (node, answering) => this.#answering(node, answering),
    };
    const seeds = this.names.slice(0, this.knobs.seeds);
    const { knobs, places, digest } = this;
    TcNode.begin(boot, seeds, { knobs, watch, places, digest }, (node) => this.#nodes.set(boot.node, node));
  }

  tell(node: TcNode, text: string): void {
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
