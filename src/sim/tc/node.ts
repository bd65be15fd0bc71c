// One life of a simulated coordinator: the production loop over the kernel's clock, disk and network, and what the oracle is shown of it.

import type { PeerKey } from "../../core/kit/ids.ts";
import { type CoordinatorStatus, isVoter, type Ledger, type VoterAnswer } from "../../core/lease/index.ts";
import {
  type Coordinator,
  type CoordinatorFiles,
  type CoordinatorNews,
  CoordinatorService,
  openCoordinatorFiles,
} from "../../controller/coordinators/index.ts";
import { sleep } from "../../loops/time.ts";
import { assembleCoordination, type Coordination } from "../../node/assembly/coordinators.ts";
import type { AnswerTo, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Term } from "../../ports/elector.ts";
import type { Boot } from "../kernel/index.ts";
import type { TcKnobs } from "./knobs.ts";
import type { Places } from "./places.ts";
import { Post } from "./post.ts";

const NO_LOGGER = { info() {}, warn() {}, error() {} };

/** An answer that is about to leave. */
export interface Answering {
  readonly to: string;
  readonly request: CoordinatorRequest;
  readonly answer: AnswerTo<CoordinatorRequest>;
  /** When the request arrived, by the node's own monotonic clock. */
  readonly arrivedMs: number;
}

/** What a node shows of itself, in the order in which it happens. */
export interface NodeWatch {
  /** `setAside`: why the ledger that it found is not its own. */
  booted(node: TcNode, setAside: string | null): void;
  /** It survives any crash from now on. */
  durable(node: TcNode, ledger: Ledger): void;
  /** It begins to write its ledger. */
  writing(node: TcNode): void;
  news(node: TcNode, news: CoordinatorNews): void;
  heard(node: TcNode, from: PeerKey, body: CoordinatorRequest | AnswerTo<CoordinatorRequest>): void;
  sending(node: TcNode, to: string, request: CoordinatorRequest): CoordinatorRequest;
  answering(node: TcNode, answering: Answering): void;
}

export class TcNode {
  readonly name: string;
  readonly boot: Boot;
  readonly self: PeerKey;
  readonly coordination: Coordination<CoordinatorService>;
  /** The term for which its work runs, also while it winds up. */
  working: number | null = null;
  readonly #windUpMs: () => number;
  readonly #post: Post;
  /** Aborts when nobody here wants it to lead any more. */
  #wish = new AbortController();
  #led: Promise<void> = Promise.resolve();
  /** Ends the work that runs. */
  #finish: () => void = () => {};

  private constructor(boot: Boot, files: CoordinatorFiles, seeds: readonly string[], of: Stageful) {
    const { knobs, watch, places } = of;
    const { node: name, clock, random } = boot;
    const { self } = files;
    this.name = name;
    this.boot = boot;
    this.self = self;
    this.#post = new Post({
      wire: boot.wire(self),
      clock,
      name: `${name}/${boot.life}`,
      at: (endpoint) => places.at(endpoint),
      answer: (caller, request) => this.service.answer(caller, request),
      sending: (to, request) => watch.sending(this, to, request),
      heard: (from, body) => watch.heard(this, from, body),
      answering: (to, request, answer, arrivedMs) => watch.answering(this, { to, request, answer, arrivedMs }),
    });
    const write = async (next: Ledger): Promise<void> => {
      watch.writing(this);
      await files.ledgerFile.write(next);
      watch.durable(this, next);
    };
    this.#windUpMs = () => random.between(0, knobs.windUpMs);
    const endpoint = places.endpointOf(name);
    this.coordination = assembleCoordination({
      self,
      endpoint,
      clock,
      random: random.fork("elector"),
      logger: NO_LOGGER,
      make: (hooks) =>
        new CoordinatorService({
          files: { ...files, ledgerFile: { write } },
          endpoint,
          seeds,
          backendHash: places.backendHashOf(name),
          calls: this.#post,
          clock,
          random: random.fork("coordinator"),
          logger: NO_LOGGER,
          ...hooks,
          newClusterId: () => `cluster-${self}-${boot.life}`,
          news: (news) => watch.news(this, news),
          fatal: (error) => boot.fatal(error),
        }),
    });
  }

  get service(): CoordinatorService {
    return this.coordination.service;
  }

  /** The term in which this node may act, as its coordinator or its elector says; null: neither does. */
  get trusts(): number | null {
    const { elector } = this.coordination;
    return this.coordinator.leads ?? (elector.gate.isLeader ? elector.stats().epoch : null);
  }

  /** Somebody here wants it to lead, or nobody does any more. */
  want(isWanted: boolean): void {
    this.#wish.abort();
    if (!isWanted) return;
    this.#wish = new AbortController();
    const { signal } = this.#wish;
    this.#led = this.#led.then(() => this.#lead(signal));
  }

  /** Its work is done, for this time: an elector that resigns, where `resign` is a coordinator that does. */
  finish(): void {
    this.#finish();
  }

  async #lead(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.coordination.lead((term) => this.#work(term), { signal });
      } catch (error) {
        if (signal.aborted) return;
        return this.boot.fatal(new Error(`its elector gave up: ${String(error)}`));
      }
    }
  }

  async #work(term: Term): Promise<void> {
    this.working = term.epoch;
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      term.signal.addEventListener("abort", () => resolve());
    });
    await sleep(this.boot.clock, this.#windUpMs());
    this.working = null;
  }

  get isVoter(): boolean {
    const { roster } = this.coordinator.ledger;
    return roster !== null && isVoter(roster, this.self);
  }

  get coordinator(): Coordinator {
    return this.service.coordinator;
  }

  /** Reads its disk first: which voter it is depends on it. */
  static begin(boot: Boot, seeds: readonly string[], of: Stageful, begun: (node: TcNode) => void): void {
    const { node: name, disk } = boot;
    const newIncarnation = (): string => boot.life.toString(16);
    const log = of.places.logOf(name);
    boot.when(openCoordinatorFiles({ disk, digest: of.digest, node: name, log, newIncarnation }), (files) => {
      const node = new TcNode(boot, files, seeds, of);
      begun(node);
      of.watch.booted(node, files.setAside);
      node.#post.start();
      node.service.start();
      node.want(true);
    });
  }

  /** As somebody who has this node's certificate. */
  forge(to: string, request: CoordinatorRequest): void {
    this.#post.send(to, request);
  }
}

interface Stageful {
  readonly knobs: TcKnobs;
  readonly watch: NodeWatch;
  readonly places: Places;
  readonly digest: Digest;
}

export function isVote(answer: AnswerTo<CoordinatorRequest>): answer is VoterAnswer {
  return "outcome" in answer;
}

export function isStatus(body: object): body is CoordinatorStatus {
  return "self" in body && "isLeaving" in body;
}
