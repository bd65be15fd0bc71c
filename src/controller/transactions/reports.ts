// Reports to homes what is done here: in batches, one at a time to each home. On the answer this island may forget it, and when all participants have
// reported, home may.
//
//   done here ──▶ gathered (TXN_REPORT_MS, or TXN_REPORT_IDS of them) ──▶ reporting ──recorded there and here──▶ forgotten
//                       ▲                                                   │
//                       └────── a pause that doubles, where home is silent ─┘

import type { Random } from "../../core/kit/random.ts";
import type { BackendHash } from "../../core/txn/model.ts";
import { retryInMs } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import { Dues } from "./dues.ts";
import { TXN_REPORT_IDS, TXN_REPORT_MS, TXN_RETRY_MS_MAX, TXN_RETRY_MS_MIN } from "./limits.ts";

export interface ReportsOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Those that home has recorded, and this island after it. Null: home does not answer. Never rejects. */
  report(home: BackendHash, ids: readonly string[]): Promise<readonly string[] | null>;
}

interface Gathered {
  readonly ids: Set<string>;
  isReporting: boolean;
  /** In a row. */
  failures: number;
}

export class Reports {
  readonly #options: ReportsOptions;
  readonly #homes = new Map<BackendHash, Gathered>();
  readonly #dues: Dues;
  #isOver = false;

  constructor(options: ReportsOptions) {
    this.#options = options;
    this.#dues = new Dues(options.clock, (home) => void this.#report(home));
  }

  add(home: BackendHash, id: string): void {
    if (this.#isOver) return;
    const gathered = this.#homes.get(home) ?? { ids: new Set(), isReporting: false, failures: 0 };
    this.#homes.set(home, gathered);
    gathered.ids.add(id);
    if (gathered.isReporting || gathered.failures > 0) return;
    if (gathered.ids.size >= TXN_REPORT_IDS) void this.#report(home);
    else if (!this.#dues.has(home)) this.#dues.start(home, TXN_REPORT_MS);
  }

  /** Whoever was silent until now is asked at once. */
  restart(): void {
    for (const home of this.#homes.keys()) void this.#report(home);
  }

  end(): void {
    this.#isOver = true;
    this.#dues.end();
    this.#homes.clear();
  }

  async #report(home: BackendHash): Promise<void> {
    const gathered = this.#homes.get(home);
    if (gathered === undefined || gathered.isReporting) return;
    this.#dues.drop(home);
    gathered.isReporting = true;
    const ids = firstOf(gathered.ids, TXN_REPORT_IDS);
    const recorded = new Set(await this.#options.report(home, ids));
    gathered.isReporting = false;
    if (this.#isOver) return;
    // What was not taken comes again after the others.
    for (const id of ids) if (gathered.ids.delete(id) && !recorded.has(id)) gathered.ids.add(id);
    if (gathered.ids.size === 0) return void this.#homes.delete(home);
    gathered.failures = recorded.size === 0 ? gathered.failures + 1 : 0;
    this.#dues.start(home, this.#pauseMs(gathered));
  }

  #pauseMs({ failures, ids }: Gathered): number {
    if (failures > 0) return retryInMs(this.#options.random, failures - 1, TXN_RETRY_MS_MIN, TXN_RETRY_MS_MAX);
    return ids.size >= TXN_REPORT_IDS ? 0 : TXN_REPORT_MS;
  }
}

function firstOf(ids: ReadonlySet<string>, max: number): string[] {
  const first: string[] = [];
  for (const id of ids) {
    first.push(id);
    if (first.length >= max) break;
  }
  return first;
}
