// A subscriber that asks for more than memory has: told from the table, page by page, until memory has the rest.
//
//   reading ──memory has the next──▶ subscribed to the feed        reading ──not kept any more──▶ told so, over
//      └─ no connection: waits, asks again                         stopped from anywhere
//
// Invariant: it knows which record it waits for, so none is told twice or passed over.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { sleep } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LogRecord } from "../../ports/log.ts";
import { REPLAY_PAGE_RECORDS_MAX, REPLAY_RETRY_MS } from "../limits.ts";
import type { RecordFeed } from "../record-feed.ts";

export interface Replay {
  readonly feed: RecordFeed;
  readonly clock: Clock;
  readonly from: number;
  readonly read: (from: number, max: number) => Promise<readonly LogRecord[]>;
  readonly tell: (record: LogRecord) => void;
  readonly compacted: () => void;
}

/** Returns what stops it. */
export function replay(options: Replay): () => void {
  assert(Number.isSafeInteger(options.from) && options.from >= 1, "positions start at 1", () => String(options.from));
  const life: Life = { isStopped: false, leave: () => undefined };
  void run(options, life);
  return () => {
    life.isStopped = true;
    life.leave();
  };
}

interface Life {
  isStopped: boolean;
  leave: () => void;
}

async function run({ feed, clock, from, read, tell, compacted }: Replay, life: Life): Promise<void> {
  let next = from;
  while (next < feed.first) {
    const records = await page(read, next, Math.min(REPLAY_PAGE_RECORDS_MAX, feed.first - next));
    if (life.isStopped) return;
    if (records === "compacted") return compacted();
    if (records.length === 0) await sleep(clock, REPLAY_RETRY_MS);
    for (const record of records) {
      if (life.isStopped) return;
      assert(record.position === next, "no record is passed over", () => `${record.position} for ${next}`);
      next++;
      tell(record);
    }
  }
  if (life.isStopped) return;
  // It may leave inside of a call, before the feed has said how.
  const tellLiving = (record: LogRecord): void => {
    if (!life.isStopped) tell(record);
  };
  life.leave = feed.subscribe(next, tellLiving, compacted);
  if (life.isStopped) life.leave();
}

/** None where there is no connection now. */
async function page(read: Replay["read"], from: number, max: number): Promise<readonly LogRecord[] | "compacted"> {
  try {
    return await read(from, max);
  } catch (error) {
    return TenureError.is(error) && error.code === "LOG_COMPACTED" ? "compacted" : [];
  }
}
