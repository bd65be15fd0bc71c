// A node's coordinator and its elector: the leader of the transaction coordinators is elected as every other leader is, and its work runs in
// `lead`, once at a time, with a term whose gate is asked before each effect.
//
//   Coordinator (votes, campaigns, renews) ⇄ CoordinatorQuorum ⇄ seat ⇄ elector ⇄ lead(work)
//
// Invariants: the coordinator campaigns only while the elector wants to lead; a release leaves after both gates are closed and the work has ended;
// no work begins behind a closed gate.

import type { Coordinator, CoordinatorWork } from "../../controller/coordinators/index.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { ScopeElector } from "../../electors/elector.ts";
import { quorumBackend } from "../../electors/quorum/index.ts";
import type { HeldQuorum, ObservedLeader, Quorum } from "../../ports/backends/quorum.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Elector, LeadOptions, Term } from "../../ports/elector.ts";
import type { Logger } from "../../ports/logger.ts";

/** What the elector asks of the coordinator's loop: to be among the options of whoever makes it. */
export interface CoordinatorHooks {
  readonly work: CoordinatorWork;
  readonly isWanted: () => boolean;
}

/** The service of a coordinator, or the bare loop. */
interface Served {
  readonly coordinator: Coordinator;
}

type Metadata = Readonly<Record<string, string>>;

export interface CoordinatorQuorumOptions<Service extends Served> {
  readonly self: PeerKey;
  readonly endpoint: string;
  /** What observers know of a node: where it is, unless there is more. */
  readonly metadataOf?: ((identity: string, endpoint: string | null) => Metadata) | undefined;
  make(hooks: CoordinatorHooks): Service;
}

/** The coordinator as the elector's seat sees it, and the elector as the coordinator does. */
export class CoordinatorQuorum<Service extends Served = Served> implements Quorum {
  readonly identity: string;
  readonly service: Service;
  readonly #options: CoordinatorQuorumOptions<Service>;
  readonly #listeners = new Set<() => void>();
  #isWanted = false;
  /** Whose gate has opened, until it is over. */
  #openTerm: number | null = null;
  /** Settles when it has ended. */
  #working: Promise<void> | null = null;

  constructor(options: CoordinatorQuorumOptions<Service>) {
    this.#options = options;
    this.identity = nodeIdOf(options.self);
    this.service = options.make({
      work: { begins: (term) => this.#begins(term), ends: (term) => this.#ends(term) },
      isWanted: () => this.#isWanted,
    });
    this.coordinator.onChange(() => this.#changed());
  }

  get coordinator(): Coordinator {
    return this.service.coordinator;
  }

  get metadata(): Metadata {
    return this.#metadataOf(this.identity, this.#options.endpoint);
  }

  get held(): HeldQuorum | null {
    const { leadership } = this.coordinator;
    if (leadership === null || leadership.over !== null || leadership.term !== this.#openTerm) return null;
    const { term: epoch, provedAt } = leadership;
    return provedAt === null ? null : { epoch, provedAt };
  }

  get leader(): ObservedLeader | null {
    const { observed } = this.coordinator;
    if (observed === null) return null;
    const { peer, endpoint, term: epoch, untilMs } = observed;
    const identity = nodeIdOf(peer);
    return { epoch, identity, metadata: this.#metadataOf(identity, endpoint), untilMs };
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted;
    const { leadership } = this.coordinator;
    // A campaign that is under way gives up by itself.
    if (!isWanted && leadership !== null && leadership.over === null) void this.coordinator.resign();
    else this.coordinator.wake();
  }

  async release(epoch: number): Promise<boolean> {
    this.#isWanted = false;
    return this.coordinator.leadership?.term === epoch ? this.coordinator.release() : true;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The work of one term, from its begin to its end. */
  async during<R>(work: () => Promise<R> | R): Promise<R> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#working = promise;
    try {
      return await work();
    } finally {
      this.#working = null;
      resolve();
    }
  }

  #metadataOf(identity: string, endpoint: string | null): Metadata {
    const { metadataOf } = this.#options;
    if (metadataOf !== undefined) return metadataOf(identity, endpoint);
    return endpoint === null ? {} : { endpoint };
  }

  #begins(term: number): void {
    this.#openTerm = term;
    this.#changed();
  }

  /** The elector hears first, so that its term's signal aborts; what runs then has as long as it needs. */
  async #ends(term: number): Promise<void> {
    if (this.#openTerm === term) this.#openTerm = null;
    this.#changed();
    await this.#working;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

const COORDINATORS_SCOPE = "tc";

export interface CoordinationOptions<Service extends Served> extends CoordinatorQuorumOptions<Service> {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface Coordination<Service extends Served = Served> {
  /** Not started yet. */
  readonly service: Service;
  /** Who leads, for metrics and observers. What it leads runs in `lead`. */
  readonly elector: Elector;
  /** As the elector's: campaigns, and runs the work while this node leads. No release leaves before the work has ended. */
  lead<R>(work: (term: Term, lastError?: unknown) => Promise<R> | R, options?: LeadOptions): Promise<R>;
  /** The work winds up, then the leadership is given up; the coordinator votes on until it is stopped. */
  close(): Promise<void>;
}

/** Puts a coordinator and its elector together. */
export function assembleCoordination<Service extends Served>(
  options: CoordinationOptions<Service>,
): Coordination<Service> {
  const { clock, random, logger } = options;
  const quorum = new CoordinatorQuorum(options);
  const { identity, metadata, service } = quorum;
  const elector = new ScopeElector(
    { scope: COORDINATORS_SCOPE, backend: quorumBackend(COORDINATORS_SCOPE, quorum), identity, metadata, logger },
    { clock, random, uuid: () => identity, warn: () => {} },
  );
  return {
    service,
    elector,
    lead: (work, lead) => elector.lead((term, lastError) => quorum.during(() => begin(term, work, lastError)), lead),
    close: () => elector.close(),
  };
}

/** Where the leadership ended between the grant and this, nothing begins. */
function begin<R>(
  term: Term,
  work: (term: Term, lastError?: unknown) => Promise<R> | R,
  lastError: unknown,
): Promise<R> | R {
  term.check();
  return work(term, lastError);
}
