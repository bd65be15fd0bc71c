// The history of events where the log itself keeps all of them: read again and verified from its table, page by page. There
// is no second copy; what the database's own backups and replicas keep is kept.

import { EMPTY_CHAIN, eventHashOf, MerkleFrontier, Verifier } from "../../core/events/index.ts";
import type { ChainHead } from "../../core/events/index.ts";
import { sleep } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { LogRecord } from "../../ports/log.ts";
import type { EventHistory } from "./events.ts";
import { HISTORY_EVENTS_PER_LOOK, HISTORY_PAGE_EVENTS_MAX, HISTORY_SLICE_MS } from "./limits.ts";

export interface LogHistoryOptions {
  readonly log: {
    /** What memory has comes from there. */
    read(from: number, max: number): Promise<readonly LogRecord[]>;
    /** What is stored, whatever memory has. */
    readStored(from: number, max: number): Promise<readonly LogRecord[]>;
  };
  /** The last event that is applied here. */
  readonly chain: () => ChainHead;
  readonly digest: Digest;
  readonly clock: Clock;
}

type HistoryStep = ReturnType<EventHistory["verify"]> extends AsyncIterable<infer Step> ? Step : never;
type HistoricBatch = ReturnType<EventHistory["read"]> extends AsyncIterable<infer Batch> ? Batch : never;

export class LogHistory implements EventHistory {
  readonly #options: LogHistoryOptions;

  constructor(options: LogHistoryOptions) {
    this.#options = options;
  }

  stats(): { readonly startSequence: number; readonly lastSequence: number } {
    return { startSequence: 0, lastSequence: this.#options.chain().sequence };
  }

  async *read(from: number, max = Infinity): AsyncGenerator<HistoricBatch> {
    const { log, digest } = this.#options;
    const end = from + max;
    for (let next = from; next < end;) {
      const records = await log.read(next, Math.min(HISTORY_PAGE_EVENTS_MAX, end - next));
      if (records.length === 0) return;
      yield records.map(({ position, data }) => ({
        sequence: position,
        bytes: data,
        eventHash: eventHashOf(data, digest),
      }));
      next += records.length;
    }
  }

  /** Up to the event that is the last one now. */
  async *verify(): AsyncGenerator<HistoryStep> {
    const { log, chain, digest, clock } = this.#options;
    const expected = chain();
    const tree = new MerkleFrontier(digest);
    const verifier = new Verifier({ checkpoint: EMPTY_CHAIN, digest, tree });
    let sliceMs = clock.monotonicMs();
    for (let next = 1, isFine = true; isFine && next <= expected.sequence;) {
      const records = await log.readStored(next, Math.min(HISTORY_PAGE_EVENTS_MAX, expected.sequence - next + 1));
      // What is missing is named by the verdict.
      if (records.length === 0) break;
      for (const { position, data } of records) {
        isFine = verifier.feed(position, data);
        if (!isFine) break;
        next = position + 1;
        if (position % HISTORY_EVENTS_PER_LOOK !== 0 || clock.monotonicMs() - sliceMs < HISTORY_SLICE_MS) continue;
        await sleep(clock, 0);
        sliceMs = clock.monotonicMs();
      }
      yield { kind: "progress", through: next - 1 };
    }
    const { valid, firstBrokenSequence, reason, head } = verifier.end(expected);
    if (valid) {
      yield { kind: "end", point: { sequence: head.sequence, hash: head.hash, frontier: tree.encode() } };
    } else yield { kind: "broken", sequence: firstBrokenSequence ?? head.sequence + 1, why: reason ?? "" };
  }
}
