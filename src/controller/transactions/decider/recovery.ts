// What a new leader of the coordinators does first: raises the fence of its term at every registered island, hears what is open there, and has the islands
// ask home about what nobody runs any more. It decides nothing itself: whoever is asked, home's record is the outcome.

import type { Random } from "../../../core/kit/random.ts";
import type { BackendHash, TcFence, TxnAnswer, TxnOpen, TxnReason } from "../../../core/txn/model.ts";
import { pause, retryInMs } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { CoordinatorTerm, IslandCalls } from "../../../ports/transactions.ts";
import { isSameFence } from "./same-fence.ts";
import {
  TXN_CALL_MS,
  TXN_HINTS_AT_ONCE,
  TXN_RECOVER_CALL_MS,
  TXN_RECOVER_LOOK_MS,
  TXN_RECOVER_RETRY_MS_MAX,
  TXN_RECOVER_RETRY_MS_MIN,
} from "./limits.ts";

export interface RecoveryOptions {
  readonly term: Pick<CoordinatorTerm, "fence">;
  readonly calls: IslandCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Pick<Logger, "warn">;
  /** This node runs it. */
  readonly isRunning: (id: string) => boolean;
}

export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #fence: TcFence;
  readonly #signal: AbortSignal;
  /** At these the fence is raised, or about to be. */
  readonly #begun = new Set<BackendHash>();
  /** Island and id: each gets one hint in a term. */
  readonly #hinted = new Set<string>();

  /** `signal`: of the term. */
  constructor(options: RecoveryOptions, fence: TcFence, signal: AbortSignal) {
    this.#options = options;
    this.#fence = fence;
    this.#signal = signal;
  }

  /** Until the term is over. Calls that are under way then are not waited for: the islands compare terms. */
  async run(): Promise<void> {
    const { calls, clock } = this.#options;
    do {
      for (const island of calls.islands()) {
        if (this.#begun.has(island)) continue;
        this.#begun.add(island);
        void this.#recover(island);
      }
    } while (await pause(clock, TXN_RECOVER_LOOK_MS, this.#signal));
  }

  async #recover(island: BackendHash): Promise<void> {
    const { calls, clock, random } = this.#options;
    let after: string | null = null;
    let failures = 0;
    for (;;) {
      if (this.#signal.aborted) return;
      if (!calls.islands().includes(island)) return void this.#begun.delete(island);
      const answer: TxnAnswer | null = this.#mayAct
        ? await calls.call(island, { kind: "recover", fence: this.#fence, after }, TXN_RECOVER_CALL_MS)
        : null;
      if (answer?.kind === "recovered") {
        failures = 0;
        await this.#hint(island, answer.open);
        const { next }: { readonly next: string | null } = answer;
        if (next === null || (after !== null && next <= after)) return;
        after = next;
        continue;
      }
      if (answer?.kind === "refused" && failures === 0) this.#complain(island, answer);
      const waitMs = retryInMs(random, failures++, TXN_RECOVER_RETRY_MS_MIN, TXN_RECOVER_RETRY_MS_MAX);
      await pause(clock, waitMs, this.#signal);
    }
  }

  /** Prepared: it asks home. Committed at home: those that have not reported do. Never home itself, where it would be a decision. */
  async #hint(island: BackendHash, open: readonly TxnOpen[]): Promise<void> {
    const hints = open
      .filter(({ header }) => !this.#options.isRunning(header.id))
      .flatMap(({ header, phase, waitsFor }) => {
        const to = phase === "prepared" ? [island] : waitsFor;
        return to.filter((target) => target !== header.home).map((target) => ({ target, header }));
      });
    for (let at = 0; at < hints.length; at += TXN_HINTS_AT_ONCE) {
      if (!this.#mayAct) return;
      const some = hints.slice(at, at + TXN_HINTS_AT_ONCE).filter(({ target, header }) => {
        const mark = `${target} ${header.id}`;
        if (this.#hinted.has(mark)) return false;
        this.#hinted.add(mark);
        return true;
      });
      await Promise.all(
        some.map(({ target, header }) => {
          const request = { kind: "rollback", header, reason: ABANDONED, fence: this.#fence } as const;
          return this.#options.calls.call(target, request, TXN_CALL_MS);
        }),
      );
    }
  }

  get #mayAct(): boolean {
    return !this.#signal.aborted && isSameFence(this.#options.term.fence(), this.#fence);
  }

  #complain(island: BackendHash, { code, message }: { readonly code: string; readonly message: string }): void {
    const fields = { event: "txn_recover_refused", island, code, term: this.#fence.term };
    const text = `the island ${island} does not take the term ${this.#fence.term} of this leader: ${message}. It is asked again`;
    this.#options.logger.warn(fields, text);
  }
}

/** Only a hint: what the island does, home says. */
const ABANDONED: TxnReason = {
  code: "txn_fanout_failed",
  message: "Its coordinator is gone.",
  backendHash: null,
};
