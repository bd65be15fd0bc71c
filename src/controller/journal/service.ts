// Who writes to a site's journal: this node, while it leads and the log is open. Its tenants' services write here, each in one of
// two ways: those that decide on the head have something that serves in each epoch (`serve`), the others change one thing at a
// time, decided on what is applied (`change`).

import type { Random } from "../../core/kit/random.ts";
import { TURNOVER_WAIT_MS } from "../../core/kit/timeouts.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Door, Reign } from "../leadership/reign.ts";
import { NodeTime } from "./event-time.ts";
import { type Change, JournalReign, type JournalReignOptions } from "./journal-reign.ts";

export interface JournalServiceOptions extends Omit<JournalReignOptions, "epoch" | "onOver" | "time"> {
  /** The time of day, where a majority of clocks agrees on it; null: none does. By default this node's own clock is believed. */
  readonly believedMs?: (() => number | null) | undefined;
  readonly random: Random;
}

export class JournalService {
  /** Of this node, whether it leads or not. */
  readonly time: NodeTime;
  readonly #begin: ((reign: JournalReign) => void)[] = [];
  readonly #stops: readonly (() => void)[];
  readonly #reign: Reign<JournalReign>;
  readonly #clock: Clock;
  #changes: Promise<void> = Promise.resolve();

  constructor(options: JournalServiceOptions) {
    const { clock, journal, believedMs } = options;
    this.#clock = clock;
    this.time = new NodeTime(clock, believedMs ?? (() => clock.wallMs()), journal.chain.timestamp);
    this.#stops = [
      // Leases, backoffs and schedules do not jump with another site's clock.
      journal.follow(({ event }) => {
        if (!journal.isLifted) this.time.applied(event.timestamp);
      }),
      journal.onRestored(() => this.time.applied(journal.chain.timestamp)),
    ];
    this.#reign = new Reign({
      ...options,
      begin: ({ epoch, onOver }) => {
        const reign = new JournalReign({ ...options, time: this.time, epoch, onOver });
        try {
          for (const begin of this.#begin) begin(reign);
        } catch (error) {
          // The epoch is tried again, with others: those that have begun must not serve in it too.
          reign.end();
          throw error;
        }
        return reign;
      },
    });
  }

  /** Whoever waits is refused: this node does not lead. Safe to call twice. */
  close(): void {
    for (const stop of this.#stops) stop();
    this.#reign.close();
  }

  /** What `begin` makes serves in one epoch, from the turn in which the log is open. */
  serve<T>(begin: (reign: JournalReign) => T): Door<T> {
    const [reign, made] = [this.#reign, { latest: null as T }];
    this.#begin.push((begun) => void (made.latest = begin(begun)));
    if (reign.current !== null) made.latest = begin(reign.current);
    const of = (serving: JournalReign | null): T | null => (serving === null ? null : made.latest);
    return {
      get current() {
        return of(reign.current);
      },
      now: () => of(reign.now()),
      next: async () => of(await reign.next())!,
      serving: () => of(reign.serving())!,
    };
  }

  /** Writes what `make` decides, one change at a time; where that is nothing, resolves once this node is known to lead. */
  async change(make: Change): Promise<void> {
    // At the door, before those who came first are waited for: who does not lead says so at once.
    this.#reign.now();
    const untilMs = this.#clock.monotonicMs() + TURNOVER_WAIT_MS;
    const run = this.#changes.then(async () => (this.#reign.now() ?? (await this.#next(untilMs))).change(make));
    this.#changes = run.catch(() => undefined);
    return run;
  }

  /** Whoever has waited for so long in the queue does not wait for a change of leaders too: many would, one after the other. */
  async #next(untilMs: number): Promise<JournalReign> {
    return this.#clock.monotonicMs() < untilMs ? this.#reign.next() : this.#reign.serving();
  }
}
