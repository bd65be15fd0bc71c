// Where pages of other sites enter this one: at the leader, whose log of receipts is open, once they were verified. Every node shows
// what is applied (receipts-fold.ts).
//
// The log is opened when the first page comes, and not before: a site that takes part in no mesh has nothing of it in its log. And
// only where every member of the cluster reads it: one that does not would leave records out, and have other arrival numbers.

import { TenureError } from "../../../core/kit/errors.ts";
import type { Random } from "../../../core/kit/random.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Leadership } from "../../../ports/leadership.ts";
import type { Log } from "../../../ports/log.ts";
import { type Opened, Reign } from "../../leadership/reign.ts";
import { type PageReceived, ReceiptsReign, type ReceiptsReignOptions, type VerifiedPage } from "./receipts-reign.ts";

export interface ReceiptsServiceOptions extends Pick<ReceiptsReignOptions, "fold" | "wallMs" | "maxSkewMs"> {
  readonly log: Log;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly random: Random;
  /** Members that are not known to read these records. */
  readonly unready: () => readonly string[];
  /** Why no pages are taken; null: they are. */
  readonly refuses: () => TenureError | null;
}

export class ReceiptsService {
  readonly #options: ReceiptsServiceOptions;
  #reign: Reign<ReceiptsReign> | null = null;
  #isClosed = false;

  constructor(options: ReceiptsServiceOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#reign?.current?.waiting ?? 0;
  }

  /**
   * One outcome for each page, in their order. Throws NOT_LEADER, NOT_SUPPORTED (a member can't read it), OVERLOADED, and what `refuses`
   * says; OUTCOME_UNKNOWN: the pages may be written.
   */
  async receive(pages: readonly VerifiedPage[]): Promise<readonly PageReceived[]> {
    const refusal = this.#options.refuses() ?? this.#unreadable();
    if (refusal !== null) throw refusal;
    const door = this.#door();
    return (door.now() ?? (await door.next())).receive(pages);
  }

  /** Whoever waits is refused: this node does not lead. Safe to call twice. */
  close(): void {
    this.#isClosed = true;
    this.#reign?.close();
  }

  #door(): Reign<ReceiptsReign> {
    if (this.#reign !== null) return this.#reign;
    const options = this.#options;
    const log = { open: (epoch: number) => this.#open(epoch) };
    const begin = (opened: Opened): ReceiptsReign => new ReceiptsReign({ ...options, ...opened });
    const reign = new Reign({ ...options, log, begin });
    if (this.#isClosed) reign.close();
    this.#reign = reign;
    return reign;
  }

  /** Where it rejects, it is tried again for as long as this node leads. */
  async #open(epoch: number): ReturnType<Log["open"]> {
    const refusal = this.#unreadable();
    if (refusal !== null) throw refusal;
    return this.#options.log.open(epoch);
  }

  #unreadable(): TenureError | null {
    const missing = this.#options.unready();
    if (missing.length === 0) return null;
    const text = `Events of other sites are kept only where every node can read them, and ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} of another release, or not connected since this leader started. Upgrade and start them all. Nothing was done.`;
    return new TenureError("NOT_SUPPORTED", text);
  }
}
