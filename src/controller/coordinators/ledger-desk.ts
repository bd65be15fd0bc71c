// Where a node's own voter is asked, by others and by its own loop: one request after the other. What a decision changes is durable before its
// answer leaves, and before the next request is decided.

import type { PeerKey } from "../../core/kit/ids.ts";
import {
  type CoordinatorStatus,
  type KnownLeader,
  type Ledger,
  Voter,
  type VoterAnswer,
  type VoterRequest,
} from "../../core/lease/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LedgerFile } from "../../ports/coordinators.ts";
import { DESK_REQUESTS_MAX } from "./limits.ts";
import type { Pace } from "./pace.ts";

export interface DeskOptions {
  readonly self: PeerKey;
  readonly ledger: Ledger;
  readonly file: LedgerFile;
  readonly clock: Clock;
  fatal(error: unknown): void;
}

export class LedgerDesk {
  readonly #options: DeskOptions;
  readonly #pace: Pace;
  readonly #voter: Voter;
  #last: Promise<unknown> = Promise.resolve();
  /** Requests that wait for their turn, or have it. */
  #requests = 0;
  /** The durable one. */
  #ledger: Ledger;
  #isClosed = false;
  /** The last write. */
  #written: Promise<void> = Promise.resolve();
  #onChange: (isReleased: boolean) => void = () => {};

  constructor(options: DeskOptions, pace: Pace) {
    this.#options = options;
    this.#pace = pace;
    this.#ledger = options.ledger;
    this.#voter = new Voter(options.self, options.ledger, options.clock.monotonicMs());
  }

  /** As it is on disk. */
  get ledger(): Ledger {
    return this.#ledger;
  }

  /** The highest that anybody has spoken of. */
  get generation(): number {
    return this.#voter.generation;
  }

  /** A higher generation than that of its roster exists. */
  get isOutdated(): boolean {
    return this.#voter.isOutdated;
  }

  get isLeaving(): boolean {
    return this.#voter.isLeaving;
  }

  set isLeaving(is: boolean) {
    this.#voter.isLeaving = is;
  }

  get leader(): KnownLeader | null {
    return this.#voter.leaderAt(this.#options.clock.monotonicMs());
  }

  get promisedUntilMs(): number | null {
    return this.#voter.promisedUntilMs(this.#options.clock.monotonicMs());
  }

  get leaderlessSinceMs(): number | null {
    return this.#voter.leaderlessSinceMs(this.#options.clock.monotonicMs());
  }

  get status(): CoordinatorStatus {
    return this.#voter.statusAt(this.#options.clock.monotonicMs());
  }

  /** At most one listener: after a decision changed the ledger, or released a lease; and at once when a higher generation is heard of. */
  onChange(listener: (isReleased: boolean) => void): void {
    this.#onChange = listener;
  }

  noteTerm(term: number): void {
    this.#noting(() => this.#voter.noteTerm(term));
  }

  /** `caller`: the node id of its certificate. Never answers once a write has failed, nor where too many wait for a disk. */
  decide(caller: string, request: VoterRequest): Promise<VoterAnswer> {
    this.#noting(() => this.#voter.hear(caller, request));
    if (this.#requests >= DESK_REQUESTS_MAX) return new Promise(() => {});
    this.#requests++;
    return this.#inTurn(async () => {
      const decision = this.#noting(() => this.#voter.decide(this.#options.clock.monotonicMs(), caller, request));
      if (decision.ledger !== null) await this.#write(decision.ledger);
      this.#requests--;
      if (decision.ledger !== null || decision.isReleased) this.#onChange(decision.isReleased);
      return decision.answer;
    });
  }

  /** False: somebody has admitted it meanwhile. */
  found(clusterId: string, endpoint: string): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#voter.ledger.clusterId !== null) return false;
      await this.#write(this.#voter.found(clusterId, endpoint));
      return true;
    });
  }

  /** Nothing more is decided. Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#written.catch(() => undefined);
  }

  #noting<T>(work: () => T): T {
    const { generation } = this;
    const done = work();
    if (this.generation > generation) this.#onChange(false);
    return done;
  }

  async #write(ledger: Ledger): Promise<void> {
    const { file, clock } = this.#options;
    const beganMs = clock.monotonicMs();
    this.#written = file.write(ledger);
    await this.#written;
    this.#pace.wrote(clock.monotonicMs() - beganMs);
    this.#ledger = ledger;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => (this.#isClosed ? nothing<T>() : work()));
    this.#last = turn;
    // Whoever waits for it hears nothing any more: the process ends.
    return turn.catch((error: unknown) => {
      if (!this.#isClosed) this.#options.fatal(error);
      return nothing<T>();
    });
  }
}

function nothing<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
