// Takes over what users submitted in the database, while this node leads: in the order of their numbers, each exactly once.
//
//   not leading ──epoch──▶ reads the inbox ──▶ takes over, in one step with the log ──▶ reads on …        not leading
//
// What is taken over is deleted there in the transaction that appends it. Whatever goes wrong between, it is in the inbox or
// in the log; so a failure costs a pause and nothing else, a longer one each time.
//
// What has been submitted is committed and can't be refused. Where several can't be taken over together they are taken one by
// one, and one that can't be taken by itself, several times, becomes a job that has failed. The others do not wait for it.

import type { TakenJob } from "../../core/jobs/index.ts";
import { type ErrorCode, TenureError } from "../../core/kit/errors.ts";
import { TextMap } from "../../core/kit/keyed/text-map.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Logger } from "../../ports/logger.ts";
import * as limits from "./limits.ts";

/** Where they wait. One reader at a time. */
export interface Inbox {
  /** Waits until there is something. Rejects when it is closed, or with what a person must repair. */
  next(max: number): Promise<readonly Submitted[]>;
  /** Whatever became of them: those that are still there are told again. */
  settle(ids: readonly string[]): void;
  close(): Promise<void>;
}

export interface Submitted {
  readonly id: string;
  readonly kind: string;
  /** JSON. */
  readonly payload: string;
  readonly options: string;
  readonly by: string;
}

export interface SubmissionsOptions {
  readonly leadership: Leadership;
  readonly open: () => Inbox;
  /** What a submission asks for; never throws. */
  readonly read: (submitted: Submitted) => TakenJob;
  readonly take: (jobs: readonly TakenJob[]) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class Submissions {
  readonly #options: SubmissionsOptions;
  readonly #stop: () => void;
  #inbox: Inbox | null = null;
  /** In a row. */
  #failures = 0;
  /** How often each has failed by itself; only of those that were found last. */
  #alone = new TextMap<number>();
  #timer: { readonly timer: Timer; readonly resolve: () => void } | null = null;
  #isClosed = false;

  constructor(options: SubmissionsOptions) {
    this.#options = options;
    this.#stop = options.leadership.subscribe(() => this.#look());
    this.#look();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    await this.#leave();
  }

  #look(): void {
    const leads = !this.#isClosed && this.#options.leadership.epoch() !== null;
    if (leads && this.#inbox === null) {
      this.#inbox = this.#options.open();
      this.#failures = 0;
      void this.#run(this.#inbox);
    } else if (!leads) void this.#leave();
  }

  async #leave(): Promise<void> {
    const inbox = this.#inbox;
    this.#inbox = null;
    this.#timer?.timer.cancel();
    this.#timer?.resolve();
    await inbox?.close();
  }

  async #run(inbox: Inbox): Promise<void> {
    const { logger } = this.#options;
    let taken = idsOf([]);
    while (this.#inbox === inbox) {
      let found: readonly Submitted[] = [];
      try {
        found = await inbox.next(limits.SUBMISSIONS_TAKEN_MAX);
        const ids = idsOf(found);
        for (const id of this.#alone.keys()) if (!ids.has(id)) this.#alone.delete(id);
        const left: unknown[] = [];
        for (const part of parts(found)) left.push(...(await this.#takeAll(part)));
        if (left.length > 0) throw left[0];
        // Known here and not deleted there: asked for at once, it would come back at once.
        const again = found.find(({ id }) => taken.has(id));
        taken = ids;
        if (again !== undefined) throw comesBack(again);
        this.#failures = 0;
      } catch (error) {
        if (this.#inbox !== inbox) return;
        const code = TenureError.is(error) ? error.code : "bug";
        logger.warn({ event: "inbox", code, error: String(error) }, "jobs in the database wait to be taken over");
        await this.#pause();
      } finally {
        inbox.settle(found.map(({ id }) => id));
      }
    }
  }

  /** Why some are left, to be tried again. Rejects where it makes no sense to go on now. */
  async #takeAll(submitted: readonly Submitted[]): Promise<unknown[]> {
    const { take, read } = this.#options;
    try {
      await take(submitted.map(read));
      return [];
    } catch (error) {
      if (isOfTheWorld(error)) throw error;
      if (submitted.length === 1) return this.#failedAlone(submitted[0]!, error);
    }
    const left: unknown[] = [];
    for (const one of submitted) left.push(...(await this.#takeAll([one])));
    return left;
  }

  async #failedAlone(submitted: Submitted, error: unknown): Promise<unknown[]> {
    const { take, read, logger } = this.#options;
    const { id } = submitted;
    const times = (this.#alone.get(id) ?? 0) + 1;
    this.#alone.set(id, times);
    if (times < limits.SUBMISSION_FAILURES_MAX) return [error];
    logger.error(
      { event: "inbox", job: id, error: String(error) },
      "a job in the database can't be taken over and has failed",
    );
    const problem = (error instanceof Error ? error.message : String(error)).slice(0, limits.PROBLEM_LENGTH_MAX);
    try {
      // Without what may be wrong with it.
      await take([{ ...read({ ...submitted, payload: "null", options: "{}" }), problem }]);
      return [];
    } catch (again) {
      if (isOfTheWorld(again)) throw again;
      return [again];
    }
  }

  async #pause(): Promise<void> {
    const { clock } = this.#options;
    const ms = Math.min(limits.SUBMISSIONS_RETRY_MS_MIN * 2 ** this.#failures++, limits.SUBMISSIONS_RETRY_MS_MAX);
    await new Promise<void>((resolve) => {
      this.#timer = { timer: clock.setTimer(clock.monotonicMs() + ms, resolve), resolve };
    });
    this.#timer = null;
  }
}

/** Says nothing about what was submitted: it may be taken later, here or elsewhere. */
function isOfTheWorld(error: unknown): boolean {
  return TenureError.is(error) && (error.retryable || OF_THE_WORLD.has(error.code));
}

const OF_THE_WORLD: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "OUTCOME_UNKNOWN",
  "STALE_EPOCH",
  "CHAIN_BROKEN",
  "PERMISSION_DENIED",
  "SCHEMA_MISSING",
]);

/** Not the engine's own set: ids are many, and new ones all the time (decision 52). */
function idsOf(found: readonly Submitted[]): TextMap<true> {
  const ids = new TextMap<true>();
  for (const { id } of found) ids.set(id, true);
  return ids;
}

function comesBack({ id }: Submitted): TenureError {
  return new TenureError(
    "INTERNAL",
    `submission ${id} was taken over and is in the inbox again: a row was put there by hand. Delete it (tenure_inbox).`,
  );
}

function parts(found: readonly Submitted[]): Submitted[][] {
  const all: Submitted[][] = [];
  let chars = Infinity;
  for (const one of found) {
    const size = one.payload.length + one.options.length;
    if (chars + size > limits.SUBMISSIONS_CHARS_MAX) {
      all.push([]);
      chars = 0;
    }
    all.at(-1)!.push(one);
    chars += size;
  }
  return all;
}
