// What an island's leader does about transactions of its own accord, in one leadership and without any leader of the coordinators:
//
//   prepared   ──its time is over, or a hint──▶ asks home, does what it says          inquiries.ts
//   committed  ──jobs──▶ gives them to the jobs' log                                  deliveries.ts
//   done here  ──▶ reports it to home                                                 reports.ts
//   staged     ──▶ drops what has expired
//
// Times are counted on this leader's monotonic clock, anew by each leader: longer than asked for is always safe.
// Invariant: it ends nothing by itself. A prepared transaction ends by home's word, or by an operator's.

import type { Random } from "../../core/kit/random.ts";
import {
  type BackendHash,
  isToReport,
  outboxBytes,
  type TxnEvent,
  txnIdOf,
  type TxnReason,
  type TxnsFold,
  type TxnState,
  waitsFor,
} from "../../core/txn/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { DeliveredJob, IslandCalls, JobsDelivery } from "../../ports/transactions.ts";
import { Deliveries } from "./deliveries.ts";
import { Dues } from "./dues.ts";
import { type Asked, Inquiries } from "./inquiries.ts";
import {
  TXN_DELIVERED_BYTES,
  TXN_DELIVERED_JOBS,
  TXN_INQUIRY_WITHIN_MS,
  TXN_OPEN_SLICE,
  TXN_REPORT_WITHIN_MS,
  TXN_RETRY_MS_MAX,
  TXN_STAGED_MS,
} from "./limits.ts";
import { Reports } from "./reports.ts";

export interface HomesWord {
  readonly phase: "committed" | "rolled-back";
  readonly reason: TxnReason | null;
}

/** What the leader writes. Each resolves when it is committed, and rejects where nothing, or perhaps nothing, was written. */
export interface ResolverActions {
  /** Of a transaction that is prepared here. */
  decided(id: string, word: HomesWord): Promise<void>;
  delivered(ids: readonly string[]): Promise<void>;
  /** Home has recorded that these are done here. */
  reported(ids: readonly string[]): Promise<void>;
  expired(id: string): Promise<void>;
}

export interface ResolverOptions {
  readonly self: BackendHash;
  readonly clock: Clock;
  readonly random: Random;
  readonly applied: TxnsFold;
  readonly actions: ResolverActions;
  /** Null: no other island can be reached. */
  readonly calls: () => IslandCalls | null;
  /** Nor ever will be. */
  readonly isAlone: () => boolean;
  /** Null: there is no jobs' log yet. */
  readonly jobs: () => JobsDelivery | null;
}

export class Resolver {
  readonly #options: ResolverOptions;
  readonly #inquiries: Inquiries;
  readonly #reports: Reports;
  readonly #deliveries: Deliveries;
  readonly #staged: Dues;
  /** Of the open ones: since when this leader knows of them. */
  readonly #sinceMs = new Map<string, number>();
  #isOver = false;

  constructor(options: ResolverOptions) {
    this.#options = options;
    const { clock, random } = options;
    this.#inquiries = new Inquiries({ clock, random, ask: (id) => this.#ask(id) });
    this.#reports = new Reports({ clock, random, report: (home, ids) => this.#report(home, ids) });
    this.#deliveries = new Deliveries({ clock, random, deliver: (few) => this.#deliver(few) });
    this.#staged = new Dues(clock, (id) => void this.#expire(id));
    this.#followAll();
  }

  end(): void {
    this.#isOver = true;
    for (const part of [this.#inquiries, this.#reports, this.#deliveries, this.#staged]) part.end();
    this.#sinceMs.clear();
  }

  /** A record was applied here. */
  applied(event: TxnEvent): void {
    if (this.#isOver || event.kind === "txn-fence") return;
    const id = txnIdOf(event);
    const state = this.#options.applied.get(id);
    if (state === undefined) this.#forget(id);
    else this.#follow(state);
  }

  /** Other islands, or the jobs' log, can be reached from now on. */
  attached(): void {
    this.#inquiries.restart();
    this.#reports.restart();
    this.#deliveries.wake();
  }

  /** Asks home at once. Resolves when that is over; null: it is not asked. `isPerson`: however much is asked already, and before a new leader has come to it. */
  askNow(id: string, isPerson = false): Promise<Asked | null> {
    const state = isPerson && !this.#isOver ? this.#options.applied.get(id) : undefined;
    if (state?.phase === "prepared") this.#follow(state);
    return this.#inquiries.now(id, isPerson);
  }

  /** On this leader's clock, as long as it is open; null: it is not. */
  openForMs(id: string): number | null {
    const sinceMs = this.#sinceMs.get(id);
    return sinceMs === undefined ? null : this.#options.clock.monotonicMs() - sinceMs;
  }

  // ---- what is followed ----------------------------------------------------------------------------

  /** Under a new leader: in slices, because there may be thousands. */
  #followAll(after: string | null = null): void {
    if (this.#isOver) return;
    const { applied, clock } = this.#options;
    let count = 0;
    for (const state of applied.live(after)) {
      this.#follow(state);
      if (++count < TXN_OPEN_SLICE) continue;
      return void clock.setTimer(clock.monotonicMs(), () => this.#followAll(state.header.id));
    }
  }

  #follow(state: TxnState): void {
    const { header, phase } = state;
    const { self } = this.#options;
    const { id, home } = header;
    if (phase === "staged") return this.#staged.start(id, this.#expiresInMs(state));
    this.#staged.drop(id);
    const isPrepared = phase === "prepared";
    if (!isPrepared && waitsFor(state).length === 0) this.#sinceMs.delete(id);
    else if (!this.#sinceMs.has(id)) this.#sinceMs.set(id, this.#options.clock.monotonicMs());
    // What was prepared before a restore names this island by another hash, and home may know more of it: an operator's word ends it.
    const isOurs = header.participants.includes(self);
    if (!isPrepared) this.#inquiries.drop(id);
    else if (isOurs) this.#inquiries.start(id, home, header.timeoutMs);
    if (state.outbox.length > 0) this.#deliveries.wake();
    if (isOurs && isToReport(state, self)) this.#reports.add(home, id);
  }

  #forget(id: string): void {
    this.#staged.drop(id);
    this.#inquiries.drop(id);
    this.#sinceMs.delete(id);
  }

  /** By the wall time that was written, and never later than what may be asked for: clocks may differ by years. */
  #expiresInMs({ atMs }: TxnState): number {
    return Math.min(Math.max(0, atMs - this.#options.clock.wallMs()), TXN_STAGED_MS);
  }

  // ---- what is done --------------------------------------------------------------------------------

  async #ask(id: string): Promise<Asked> {
    const { applied, calls, isAlone, actions } = this.#options;
    const state = applied.get(id);
    if (state?.phase !== "prepared") return "done";
    const { header } = state;
    const reached = calls();
    if (reached === null) return isAlone() ? "silent" : "unasked";
    const answer = await reached.call(header.home, { kind: "inquire", header }, TXN_INQUIRY_WITHIN_MS);
    if (this.#isOver) return "done";
    if (answer === null) return "silent";
    // Another island is at its address: home itself has said nothing.
    if (answer.kind === "refused" && answer.code === "txn_backend_mismatch") return "silent";
    if (answer.kind !== "txn") return "refused";
    const { phase, reason } = answer;
    if (phase !== "committed" && phase !== "rolled-back") return "refused";
    try {
      await actions.decided(id, { phase, reason });
      return "done";
    } catch {
      return "refused";
    }
  }

  async #report(home: BackendHash, ids: readonly string[]): Promise<readonly string[]> {
    const { self, calls, actions } = this.#options;
    try {
      const answer = await calls()?.call(home, { kind: "settled", from: self, ids }, TXN_REPORT_WITHIN_MS);
      if (this.#isOver || answer?.kind !== "settled") return [];
      const known = ids.filter((id) => answer.ids.includes(id));
      await actions.reported(known);
      return known;
    } catch {
      return [];
    }
  }

  async #deliver(few: boolean): Promise<"some" | "none"> {
    const { applied, jobs, actions } = this.#options;
    const [given, ids] = firstOf(applied.undelivered(), few ? 1 : TXN_DELIVERED_JOBS);
    if (ids.length === 0) return "none";
    const log = jobs();
    if (log === null) throw new Error("there is no jobs' log yet");
    await log.deliver(given);
    if (this.#isOver) return "none";
    await actions.delivered(ids);
    return "some";
  }

  async #expire(id: string): Promise<void> {
    try {
      await this.#options.actions.expired(id);
    } catch {
      const isStaged = this.#options.applied.get(id)?.phase === "staged";
      if (!this.#isOver && isStaged) this.#staged.start(id, TXN_RETRY_MS_MAX);
    }
  }
}

/** The first ones, all of each transaction; of one transaction at least. */
function firstOf(
  states: Iterable<TxnState>,
  max: number,
): readonly [jobs: readonly DeliveredJob[], ids: readonly string[]] {
  const jobs: DeliveredJob[] = [];
  const ids: string[] = [];
  let bytes = 0;
  for (const { header, place, outbox } of states) {
    bytes += outboxBytes(outbox);
    if (jobs.length > 0 && (jobs.length + outbox.length > max || bytes > TXN_DELIVERED_BYTES)) break;
    ids.push(header.id);
    for (const { operation, jobId, spec } of outbox) {
      jobs.push({ id: jobId, spec, by: header.by, mark: `txn:${header.id}:${operation}`, place, operation });
    }
  }
  return [jobs, ids];
}
