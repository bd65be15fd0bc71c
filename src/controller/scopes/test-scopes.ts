// What the tests of the scopes share: a service on hand-made ports. Leadership, proofs of it and the log's answers come when
// a test says so; time passes when a test moves its clock.

import { peerKey } from "../../core/kit/ids.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { configurationOf, type RaftEvent, type RaftStatus } from "../../core/raft/index.ts";
import type { StateFold } from "../../core/state/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Lead } from "../../ports/consensus.ts";
import type { Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../ports/log.ts";
import type { AcquireAnswer, AcquireRequest } from "../../ports/scopes.ts";
import { type ManualClock, settled as drain } from "../../loops/test-clock.ts";
import { RaftLeadership } from "../leadership/raft-leadership.ts";
import { StateService, type StateServiceOptions } from "../state/state.ts";
import type { Island } from "../transactions/transactions.ts";
import type { ScopesService } from "./scopes.ts";

export { settled as drain } from "../../loops/test-clock.ts";

const PEER = peerKey("n1", "a1");
/** Of tests without other islands. */
export const ALONE: Island = { backendHash: "a".repeat(64), newJobId: () => "job", problemOf: () => null };

class ManualConsensus implements Pick<Lead, "status" | "readIndex" | "subscribe"> {
  role: RaftStatus["role"] = "follower";
  term = 1;
  established = false;
  transfer: RaftStatus["transfer"] = null;
  /** Reads are answered at once, or wait for `answerReads`. */
  holdReads = false;
  reads = 0;
  readonly #listeners = new Set<(event: RaftEvent) => void>();
  #held: ((index: number | null) => void)[] = [];

  status(): RaftStatus {
    const configuration = configurationOf([PEER], []);
    return {
      peer: PEER,
      role: this.role,
      term: this.term,
      established: this.established,
      transfer: this.transfer,
      configuration,
      committedConfiguration: configuration,
    } as RaftStatus;
  }

  readIndex(): Promise<number | null> {
    this.reads++;
    if (!this.holdReads) return Promise.resolve(this.role === "leader" ? 1 : null);
    return new Promise((settle) => this.#held.push(settle));
  }

  answerReads(index: number | null): void {
    const held = this.#held;
    this.#held = [];
    for (const settle of held) settle(index);
  }

  subscribe(listener: (event: RaftEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  lead(term: number): void {
    this.role = "leader";
    this.term = term;
    this.established = true;
    this.#tell({ kind: "established", term, index: 1 });
  }

  /** Deposed, and told so. `silently`: as a node that does not know it yet; reads fail from here on. */
  depose(term = this.term + 1): void {
    this.role = "follower";
    this.established = false;
    this.term = term;
    this.#tell({ kind: "role", role: "follower", term, leader: null });
    this.answerReads(null);
  }

  /** Another node leads instead, or it came to nothing. */
  endTransfer(success: boolean): void {
    this.transfer = null;
    if (success) this.depose();
    const result = { success, isUnknown: false, message: "", oldLeaderId: PEER, newLeaderId: null };
    this.#tell({ kind: "transfer", result });
  }

  #tell(event: RaftEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** Passes everything on, but an append only when it is let through, or never. */
export class HeldLog implements Log {
  readonly #inner: Log;
  #compacted: () => void = () => undefined;
  readonly #held: { readonly go: () => void; readonly answer: (answer: LogAppended | Error) => void }[] = [];
  isHolding = false;
  /** What is written from now on is written, and nobody hears of it. */
  isDeaf = false;
  opens = 0;
  /** The next open rejects. */
  refuseOpen = false;

  constructor(inner: Log) {
    this.#inner = inner;
  }

  get waiting(): number {
    return this.#held.length;
  }

  head(): LogHead {
    return this.#inner.head();
  }

  open(epoch: number): Promise<LogOpened> {
    this.opens++;
    if (!this.refuseOpen) return this.#inner.open(epoch);
    this.refuseOpen = false;
    return Promise.reject(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
  }

  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    if (!this.isHolding) return this.#append(epoch, after, batch);
    return new Promise((resolve, reject) => {
      this.#held.push({
        go: () => void this.#append(epoch, after, batch).then(resolve, reject),
        answer: (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)),
      });
    });
  }

  async #append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    const { isDeaf } = this;
    const answer = await this.#inner.append(epoch, after, batch);
    return isDeaf ? { outcome: "unknown" } : answer;
  }

  read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.#inner.read(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    this.#compacted = compacted;
    return this.#inner.subscribe(from, tell, compacted);
  }

  /** A snapshot was restored. */
  jump(): void {
    this.#compacted();
  }

  /** Lets what waits through. */
  release(): void {
    this.isHolding = false;
    for (const { go } of this.#held.splice(0)) go();
  }

  /** Answers what waits without having written it. */
  answer(answer: LogAppended | Error): void {
    this.isHolding = false;
    for (const one of this.#held.splice(0)) one.answer(answer);
  }
}

export class ScopesStage {
  readonly consensus = new ManualConsensus();
  readonly log: HeldLog;
  readonly state: StateService;
  readonly applied: StateFold;
  isPaused = false;

  constructor(clock: Clock, log: Log, applied: StateFold, more: Partial<StateServiceOptions> = {}) {
    this.log = new HeldLog(log);
    this.applied = applied;
    const leadership = new RaftLeadership(this.consensus);
    const isPaused = (): boolean => this.isPaused;
    const random = seededRandom("scopes");
    const around = { log: this.log, applied, leadership, clock, random, isPaused, island: ALONE };
    this.state = new StateService({ ...around, ...more });
  }

  get service(): ScopesService {
    return this.state.scopes;
  }

  /** Leads in this term and serves. */
  async lead(term: number): Promise<void> {
    this.consensus.lead(term);
    await drain();
  }

  acquire(session: string, options: Partial<AcquireRequest> = {}, signal = never()): Promise<AcquireAnswer> {
    const request = { scope: "s", session, identity: `id-${session}`, metadata: {}, ttlMs: 10_000, waitMs: 0 };
    return this.service.acquire({ ...request, ...options }, signal);
  }

  /** The epoch that was granted. */
  async granted(session: string, options: Partial<AcquireRequest> = {}): Promise<number> {
    const answer = await this.acquire(session, options);
    if (!answer.granted) throw new Error(`expected a grant for ${session}: ${JSON.stringify(answer)}`);
    return answer.epoch;
  }
}

export interface Outcome<T> {
  state: "pending" | "resolved" | "rejected";
  value?: T;
  code?: string;
}

/** How a promise has ended, to look at without waiting. */
export function watch<T>(promise: Promise<T>): Outcome<T> {
  const outcome: Outcome<T> = { state: "pending" };
  promise.then(
    (value) => Object.assign(outcome, { state: "resolved", value }),
    (error: unknown) =>
      Object.assign(outcome, { state: "rejected", code: TenureError.is(error) ? error.code : String(error) }),
  );
  return outcome;
}

export function never(): AbortSignal {
  return {
    aborted: false,
    reason: undefined,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  } as unknown as AbortSignal;
}

/** Time passes, and every timer that comes due fires on time. */
export function advance(clock: ManualClock, forMs: number): Promise<void> {
  return clock.advance(forMs);
}
