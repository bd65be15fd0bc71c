// One life of a simulated coordinator: the production loop over the kernel's clock, disk and network, and what the oracle is shown of it.

import { incarnationOf, type PeerKey, peerKey } from "../../core/kit/ids.ts";
import type { CoordinatorStatus, Ledger, VoterAnswer } from "../../core/lease/index.ts";
import { Coordinator, type CoordinatorNews } from "../../controller/coordinators/index.ts";
import { sleep } from "../../loops/time.ts";
import type { AnswerTo, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { Boot } from "../kernel/index.ts";
import type { TcKnobs } from "./knobs.ts";
import { openPlatter, writeLedger } from "./platter.ts";
import { Post } from "./post.ts";

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
  booted(node: TcNode, isDamaged: boolean): void;
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
  readonly coordinator: Coordinator;
  /** The term for which its work runs, also while it winds up. */
  working: number | null = null;
  readonly #post: Post;

  private constructor(boot: Boot, self: PeerKey, ledger: Ledger, seeds: readonly string[], of: Stageful) {
    const { knobs, watch } = of;
    const { node: name, clock, disk, random } = boot;
    this.name = name;
    this.boot = boot;
    this.self = self;
    this.#post = new Post({
      wire: boot.wire(self),
      clock,
      name: `${name}/${boot.life}`,
      answer: (caller, request) => this.coordinator.answer(caller, request),
      sending: (to, request) => watch.sending(this, to, request),
      heard: (from, body) => watch.heard(this, from, body),
      answering: (to, request, answer, arrivedMs) => watch.answering(this, { to, request, answer, arrivedMs }),
    });
    this.coordinator = new Coordinator({
      self,
      endpoint: name,
      seeds,
      ledger,
      clock,
      random: random.fork("coordinator"),
      calls: this.#post,
      file: {
        write: async (next) => {
          watch.writing(this);
          await writeLedger(disk, incarnationOf(self), next);
          watch.durable(this, next);
        },
      },
      work: {
        begins: (term) => void (this.working = term),
        ends: async () => {
          await sleep(clock, random.between(0, knobs.windUpMs));
          this.working = null;
        },
      },
      newClusterId: () => `cluster-${self}-${boot.life}`,
      news: (news) => watch.news(this, news),
      fatal: (error) => boot.fatal(error),
    });
  }

  /** Reads its disk first: which voter it is depends on it. */
  static begin(boot: Boot, seeds: readonly string[], of: Stageful, begun: (node: TcNode) => void): void {
    boot.when(openPlatter(boot.disk, boot.life.toString(16)), ({ incarnation, ledger, isDamaged }) => {
      const node = new TcNode(boot, peerKey(boot.node, incarnation), ledger, seeds, of);
      begun(node);
      of.watch.booted(node, isDamaged);
      node.#post.start();
      node.coordinator.start();
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
}

export function isVote(answer: AnswerTo<CoordinatorRequest>): answer is VoterAnswer {
  return "outcome" in answer;
}

export function isStatus(body: object): body is CoordinatorStatus {
  return "self" in body && "isLeaving" in body;
}
