// The coordinator of one node, of production: its votes and campaigns, the elector over it, and the decider that runs transactions while it leads. What
// it asks of others goes over the simulated network.

import {
  type Coordinator,
  type CoordinatorFiles,
  CoordinatorService,
  openCoordinatorFiles,
} from "../../controller/coordinators/index.ts";
import type { TransactionsService } from "../../controller/transactions/transactions.ts";
import type { Decider } from "../../controller/transactions/decider/index.ts";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import type { BackendHash, TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import { assembleCoordination, type Coordination } from "../../node/assembly/coordinators.ts";
import { assembleDecider } from "../../node/assembly/transactions.ts";
import type { CoordinatorRequest } from "../../ports/coordinators.ts";
import type { Digest } from "../../ports/digest.ts";
import type {
  IslandCalls,
  TxnBody,
  TxnCaller,
  TxnDecide,
  TxnForward,
  TxnOutcome,
  TxnParticipant,
} from "../../ports/transactions.ts";
import type { Boot } from "../kernel/index.ts";
import { SimIslandCalls } from "./calls.ts";
import type { TxnKnobs } from "./knobs.ts";
import type { Question, Transport } from "./transport.ts";

const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };

export type TxnQuestion =
  | { readonly kind: "tc"; readonly number: string; readonly request: CoordinatorRequest }
  | { readonly kind: "island"; readonly target: BackendHash; readonly request: TxnRequest }
  | { readonly kind: "run"; readonly body: TxnBody; readonly by: string }
  | { readonly kind: "decide"; readonly request: TxnDecide; readonly by: string };

export interface CoordinatingStage {
  readonly names: readonly string[];
  readonly knobs: TxnKnobs;
  readonly digest: Digest;
  readonly transport: Transport;
  hashOf(island: string): BackendHash;
  /** A transaction was forwarded to a coordinator. */
  forwarded(): void;
  /** A coordinator is elected. */
  elected(node: string, term: number): void;
  /** Before it leaves. */
  sending(node: string, target: BackendHash, request: TxnRequest): void;
  /** Before an island's node is asked, in its process; false: it is not asked any more. */
  asking(node: string, from: string, request: TxnRequest): boolean;
  /** As it leaves the island's node. */
  answering(node: string, request: TxnRequest, answer: TxnAnswer): void;
}

interface Made {
  readonly island: BackendHash;
  readonly files: CoordinatorFiles & { readonly log: string };
  readonly transactions: TransactionsService;
}

export class Coordinating {
  readonly name: string;
  readonly boot: Boot;
  readonly self: PeerKey;
  readonly log: string;
  readonly decider: Decider;
  readonly #stage: CoordinatingStage;
  readonly #coordination: Coordination<CoordinatorService>;
  readonly #transactions: TxnParticipant;
  readonly #island: BackendHash;
  readonly #taken = new Set<string>();
  #asked = 0;

  static async open(boot: Boot, { digest }: CoordinatingStage, log: string): Promise<Made["files"]> {
    const { node, disk, life } = boot;
    const newIncarnation = (): string => life.toString(16);
    const files = await openCoordinatorFiles({ disk, digest, node, log, newIncarnation });
    return { ...files, log };
  }

  constructor(boot: Boot, stage: CoordinatingStage, { island, files, transactions }: Made) {
    const { node: name, clock, random } = boot;
    this.name = name;
    this.boot = boot;
    this.self = files.self;
    this.log = files.log;
    this.#stage = stage;
    this.#island = island;
    this.#transactions = transactions;
    const coordinatorCalls = {
      call: async (endpoint: string, request: CoordinatorRequest, withinMs: number) => {
        const number = `${name}/${boot.life}#${++this.#asked}`;
        const question: TxnQuestion = { kind: "tc", number, request };
        const heard = await stage.transport.ask(boot, endpoint, question, withinMs);
        return heard?.ok === true ? { from: endpoint, answer: heard.value } : null;
      },
    };
    this.#coordination = assembleCoordination({
      self: files.self,
      endpoint: name,
      clock,
      random: random.fork("elector"),
      logger: NO_LOGGER,
      make: (hooks) =>
        new CoordinatorService({
          ...hooks,
          files,
          endpoint: name,
          seeds: stage.names,
          backendHash: island,
          calls: coordinatorCalls as never,
          clock,
          random: random.fork("coordinator"),
          logger: NO_LOGGER,
          newClusterId: () => `tc-${files.self}-${boot.life}`,
          news: (news) => news.kind === "elected" && stage.elected(name, news.term),
          fatal: (error) => boot.fatal(error),
        }),
    });
    this.decider = assembleDecider({
      coordination: this.#coordination,
      transactions,
      calls: this.#calls(),
      forward: this.#forward(),
      clock,
      random: random.fork("decider"),
      digest: stage.digest,
      logger: NO_LOGGER,
    });
    stage.transport.listen(name, {
      isAlive: boot.isAlive,
      answer: (from, question) => this.#answer(from, question as TxnQuestion),
    });
  }

  get coordinator(): Coordinator {
    return this.#coordination.service.coordinator;
  }

  get service(): CoordinatorService {
    return this.#coordination.service;
  }

  start(): void {
    this.service.start();
    const { signal } = new AbortController();
    const led = this.#coordination.lead((term) => this.decider.lead(term.signal), { signal });
    led.catch((error: unknown) => this.boot.fatal(new Error(`its elector gave up: ${String(error)}`)));
  }

  #calls(): IslandCalls {
    return new SimIslandCalls({
      entries: () => this.service.registry().entries,
      ask: (endpoint, target, request, withinMs) => {
        this.#stage.sending(this.name, target, request);
        return this.#stage.transport.ask<TxnAnswer>(
          this.boot,
          endpoint,
          { kind: "island", target, request } as Question,
          withinMs,
        );
      },
      clock: this.boot.clock,
    });
  }

  #forward(): TxnForward {
    const ask = async <T>(endpoint: string, question: TxnQuestion, withinMs: number): Promise<T | null> => {
      const heard = await this.#stage.transport.ask<T>(this.boot, endpoint, question, withinMs);
      // It may have arrived.
      if (heard === null) throw new TenureError("OUTCOME_UNKNOWN", "The coordinators' leader did not answer in time.");
      if (!heard.ok) throw heard.error;
      return heard.value;
    };
    return {
      run: (endpoint, body, by, withinMs) => ask<TxnOutcome>(endpoint, { kind: "run", body, by }, withinMs),
      decide: (endpoint, request, by, withinMs) => ask(endpoint, { kind: "decide", request, by }, withinMs),
    };
  }

  async #answer(from: string, question: TxnQuestion): Promise<unknown> {
    switch (question.kind) {
      case "tc": {
        const { number, request } = question;
        // Changes of the registry are taken once, as over one connection.
        if (request.kind === "registry" && this.#taken.has(number)) throw new TenureError("OVERLOADED", "taken before");
        if (request.kind === "registry") this.#taken.add(number);
        return this.service.answer(from, request);
      }
      case "island": {
        const { target, request } = question;
        if (target !== this.#island)
          return { kind: "refused", code: "txn_backend_mismatch", message: "another island" };
        if (!this.#stage.asking(this.name, from, request)) throw new TenureError("OVERLOADED", "it is about to end");
        const answer = await this.#transactions.answer(request);
        this.#stage.answering(this.name, request, answer);
        return answer;
      }
      case "run":
        this.#stage.forwarded();
        return this.decider.run(question.body, forwarded(question.by));
      case "decide":
        return this.decider.decide(question.request, forwarded(question.by));
      default:
        return assertNever(question, "question");
    }
  }
}

function forwarded(by: string): TxnCaller {
  return { by, isForwarded: true };
}
