// The islands of a run in one world, with their coordinators and the network between them, who works there, and what is known to be true.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import type { BackendHash, TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import type { Digest } from "../../ports/digest.ts";
import { strike, World } from "../kernel/index.ts";
import { Founding } from "./accounts.ts";
import { Clients } from "./clients.ts";
import type { Coordinating } from "./coordinating.ts";
import { type IslandStage, SimIsland, type TxnServer } from "./island.ts";
import { islandIds, nodesOf, type TxnKnobs } from "./knobs.ts";
import { TXN_GHOSTS_MAX, TXN_SIM_RESTART_AFTER_EXIT_MS } from "./limits.ts";
import { TxnOperator } from "./operator.ts";
import { TxnLedger } from "./oracle/txn-ledger.ts";
import { type Letter, post, type Underway } from "./post.ts";
import { type TxnProbeCounts, reached } from "./probes.ts";
import type { TxnRunOptions } from "./run.ts";
import { type Question, Transport } from "./transport.ts";
import { PlainWriters } from "./writers.ts";

const DAY_MS = 86_400_000;
const DECIDING: readonly TxnRequest["kind"][] = ["prepare", "commit", "rollback"];

export interface TxnStageOptions extends Pick<TxnRunOptions, "digest" | "narrate" | "reversed"> {
  readonly seed: string;
  readonly knobs: TxnKnobs;
}

export class TxnStage implements IslandStage {
  readonly world: World;
  readonly knobs: TxnKnobs;
  readonly digest: Digest;
  readonly probes: TxnProbeCounts = {};
  readonly ledger: TxnLedger;
  readonly names: readonly string[];
  readonly islands: readonly SimIsland[];
  readonly transport: Transport;
  readonly founding: Founding;
  readonly clients: Clients;
  readonly writers: PlainWriters;
  readonly operator: TxnOperator;
  /** By how much clients' clocks were put forward, with all others. */
  skewed = 0;
  /** Messages between islands that were sent: silence is measured with it. */
  sent = 0;
  elections = 0;
  readonly #random: Random;
  readonly #posts: Random;
  readonly #underway = new Set<Underway>();
  readonly #voters = new Map<string, { readonly self: PeerKey; readonly log: string }>();
  #messages: { left: number; readonly fire: (node: string) => void } | null = null;
  readonly #onPrepare = new Map<BackendHash, (node: string) => void>();
  #lossRate = 0.02;

  constructor(options: TxnStageOptions) {
    const { knobs, digest } = options;
    this.knobs = knobs;
    this.digest = digest;
    this.names = islandIds(knobs).flatMap((island) => nodesOf(island, knobs));
    this.world = new World({
      seed: options.seed,
      nodes: options.reversed === true ? this.names.toReversed() : this.names,
      link: knobs.link,
      disk: knobs.disk,
      restartAfterExitMs: TXN_SIM_RESTART_AFTER_EXIT_MS,
      start: (boot) => this.island(boot.node[0]!).start(boot),
      trace: options.narrate,
    });
    this.#random = this.world.random.fork("stage");
    this.#posts = this.#random.fork("posts");
    this.ledger = new TxnLedger({
      probes: this.probes,
      nowMs: () => this.world.nowMs,
      wrong: (node, what) => this.world.report(node, new Error(`${node} ${what}`)),
      isPastAt: (home, id) => this.#isPastAt(home, id),
    });
    this.transport = new Transport(this.world, knobs.weather, this.probes, keeps);
    this.islands = islandIds(knobs).map((id) => new SimIsland(id, this));
    this.founding = new Founding(this);
    this.clients = new Clients(this);
    this.writers = new PlainWriters(this);
    this.operator = new TxnOperator(this);
    this.#setClocks();
    for (const [at, { names }] of this.islands.entries())
      for (const name of names) this.world.node(name).process.jumpWall(knobs.skewsMs[at] ?? 0);
    if (knobs.skewsMs.some((skewMs) => Math.abs(skewMs) > DAY_MS)) reached(this.probes, "clock-days-off");
    this.#moveApart();
  }

  get random(): Random {
    return this.#random;
  }

  island(id: string): SimIsland {
    return this.islands.find((island) => island.id === id)!;
  }

  hashOf(island: string): BackendHash {
    return this.digest.sha256Hex(`tenure-backend\n${island}`);
  }

  server(node: string): TxnServer | undefined {
    return this.island(node[0]!).server(node);
  }

  get servers(): readonly TxnServer[] {
    return this.islands.flatMap(({ servers }) => servers);
  }

  /** Whoever leads the coordinators, or tries to. */
  get coordinator(): Coordinating | undefined {
    const leading = this.servers.filter(({ coordinating }) => coordinating.coordinator.leadership !== null);
    return leading.toSorted((a, b) => termOf(b) - termOf(a))[0]?.coordinating;
  }

  /** Which voter it is, as it was when it last ran. */
  voterOf(node: string): { readonly self: PeerKey; readonly log: string } | undefined {
    const now = this.server(node)?.coordinating;
    if (now !== undefined) this.#voters.set(node, { self: now.self, log: now.log });
    return this.#voters.get(node);
  }

  post<T>(letter: Letter<T>): void {
    const server = (node: string): TxnServer | undefined => this.server(node);
    post<T>(
      { world: this.world, random: this.#posts, lossRate: this.#lossRate, server, underway: this.#underway },
      letter,
    );
  }

  /** A call of a client is on its way to a node, or a node that runs works on it. */
  get isAsked(): boolean {
    return [...this.#underway].some(({ to, server }) => server === null || this.server(to) === server);
  }

  tell(node: string, text: string): void {
    this.world.scheduler.trace(node, text);
    this.world.scheduler.narrate(node, () => text);
  }

  cut(groups: readonly (readonly string[])[], forMs: number): void {
    strike(this.world, { kind: "partition", groups, forMs }, () => undefined);
  }

  begin(): void {
    this.founding.start();
    this.clients.start();
    this.writers.start();
  }

  /** The faults are over, and nobody begins anything. */
  calm(): void {
    const { world } = this;
    this.#messages = null;
    this.#onPrepare.clear();
    this.#lossRate = 0;
    world.calm();
    world.network.becomes({ lossRate: 0 });
    this.transport.weather = { ...this.transport.weather, lateRate: 0 };
    this.#setClocks();
    this.#moveApart();
    this.operator.calmDown();
    this.clients.stop();
    this.writers.stop();
  }

  /** All clocks, and those of clients. */
  later(byMs: number): void {
    this.skewed += byMs;
    for (const { process } of this.world.nodes) process.jumpWall(byMs);
  }

  // ---- what nodes show -----------------------------------------------------------------------------

  forwarded(): void {
    reached(this.probes, "forwarded");
  }

  elected(node: string, term: number): void {
    this.tell(node, `elected in term ${term}`);
    if (this.elections++ > 0) reached(this.probes, "coordinator-changed");
  }

  sending(node: string, target: BackendHash, request: TxnRequest): void {
    this.sent++;
    this.world.scheduler.narrate(node, () => `${said(request)} to ${this.#nameOf(target)}`);
    if (!DECIDING.includes(request.kind) || this.#messages === null) return;
    if (this.#messages.left-- > 0) return;
    const { fire } = this.#messages;
    this.#messages = null;
    // What it says in this turn has left.
    this.world.scheduler.schedule(this.world.nowMs, this.world.scheduler.owner("faults"), () => fire(node));
  }

  asking(node: string, _from: string, request: TxnRequest): boolean {
    if (request.kind === "inquire") reached(this.probes, "asked-home");
    if (request.kind !== "prepare") return true;
    const hash = this.island(node[0]!).hash;
    const fire = this.#onPrepare.get(hash);
    if (fire === undefined || this.island(node[0]!).leader() !== node) return true;
    this.#onPrepare.delete(hash);
    // Written perhaps, and not answered.
    const { scheduler, nowMs } = this.world;
    scheduler.schedule(nowMs + this.#random.between(0.1, 8), scheduler.owner("faults"), () => fire(node));
    return true;
  }

  answering(node: string, request: TxnRequest, answer: TxnAnswer): void {
    this.world.scheduler.narrate(node, () => `${said(request)}: ${JSON.stringify(answer).slice(0, 160)}`);
    this.ledger.answered(node, this.island(node[0]!).hash, request, answer);
  }

  // ---- for faults ----------------------------------------------------------------------------------

  /** When a coordinator has sent so many more messages about transactions. */
  afterMessages(count: number, fire: (node: string) => void): void {
    this.#messages = { left: count, fire };
  }

  /** When this island's leader is asked to prepare the next time. */
  onPrepare(island: string, fire: (node: string) => void): void {
    this.#onPrepare.set(this.island(island).hash, fire);
  }

  #nameOf(hash: BackendHash): string {
    return this.islands.find((island) => island.hash === hash)?.id ?? hash;
  }

  #isPastAt(home: BackendHash, id: string): boolean {
    const { horizon } = this.ledger.island(home);
    return horizon !== null && id <= horizon;
  }

  #setClocks(): void {
    for (const [at, name] of this.names.entries())
      this.world.node(name).process.setClockRate(this.knobs.clockRates[at] ?? 1);
  }

  /** A fault of the links between islands ends with links as short as any, until the last one has ended. */
  #moveApart(): void {
    for (const link of this.world.network.links()) {
      const { latencyMinMs } = this.knobs.link;
      if (link.from[0] === link.to[0]) continue;
      link.model = { ...link.model, latencyMinMs: latencyMinMs + this.knobs.farMs };
    }
  }
}

function said(request: TxnRequest): string {
  if ("header" in request) return `${request.kind} ${request.header.id}`;
  if (request.kind === "stage") return `stage ${request.id}`;
  return request.kind === "settled" ? `settled ${request.ids.join()}` : request.kind;
}

function keeps({ kind }: Question): number {
  return kind === "island" ? TXN_GHOSTS_MAX : 0;
}

function termOf({ coordinating }: TxnServer): number {
  return coordinating.coordinator.leadership!.term;
}
