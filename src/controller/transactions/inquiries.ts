// Asks the homes of what is prepared here what they have decided: only home may end a prepared transaction, however long it takes. No leader of the
// coordinators is needed for it.
//
//   prepared ──its time is over, or a hint──▶ waiting (for one of the home's turns) ──▶ asking ──decided──▶ done
//                                               ▲ ▲                                      │ │
//                                               │ └── home does not answer: a pause, for all of that home, that doubles
//                                               └──── home answers, and does not decide: a pause for this one
//
// Invariants: of one home at most TXN_INQUIRIES_AT_ONCE questions are under way; a home that does not answer delays no other one.

import type { Random } from "../../core/kit/random.ts";
import type { BackendHash } from "../../core/txn/model.ts";
import { retryInMs } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import { Dues } from "./dues.ts";
import { TXN_INQUIRIES_AT_ONCE, TXN_RETRY_MS_MAX, TXN_RETRY_MS_MIN } from "./limits.ts";

/** `done`: what home says is in this island's log, or it is prepared no longer. `unasked`: this node can't ask anybody now. */
export type Asked = "done" | "silent" | "refused" | "unasked";

export interface InquiriesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Asks home, and does what it says. Never rejects. */
  ask(id: string): Promise<Asked>;
}

interface Home {
  readonly waiting: Set<string>;
  readonly asking: Map<string, Promise<Asked>>;
  /** In a row. */
  failures: number;
}

export class Inquiries {
  readonly #options: InquiriesOptions;
  /** Whose home is to be asked, sooner or later. */
  readonly #homeOf = new Map<string, BackendHash>();
  readonly #homes = new Map<BackendHash, Home>();
  readonly #dues: Dues;
  /** Homes that did not answer, until they are asked again. */
  readonly #pauses: Dues;
  #isOver = false;

  constructor(options: InquiriesOptions) {
    this.#options = options;
    this.#dues = new Dues(options.clock, (id) => this.#isDue(id));
    this.#pauses = new Dues(options.clock, (home) => {
      this.#go(home);
      this.#forget(home);
    });
  }

  /** It was prepared, and its home is asked in `afterMs`. */
  start(id: string, home: BackendHash, afterMs: number): void {
    if (this.#isOver) return;
    this.#homeOf.set(id, home);
    this.#dues.start(id, afterMs);
  }

  /** It is decided. */
  drop(id: string): void {
    const home = this.#homeOf.get(id);
    if (home === undefined) return;
    this.#homeOf.delete(id);
    this.#dues.drop(id);
    this.#homes.get(home)?.waiting.delete(id);
    this.#forget(home);
  }

  /**
   * Asks at once, also a home that did not answer the last time. Resolves when this attempt is over; null: none was made. `isPerson`: however many are
   * asked about already.
   */
  now(id: string, isPerson = false): Promise<Asked | null> {
    const name = this.#homeOf.get(id);
    if (name === undefined || this.#isOver) return Promise.resolve(null);
    const home = this.#home(name);
    const asking = home.asking.get(id);
    if (asking !== undefined) return asking;
    this.#dues.drop(id);
    home.waiting.delete(id);
    if (isPerson || home.asking.size < 2 * TXN_INQUIRIES_AT_ONCE) return this.#ask(name, home, id);
    home.waiting.add(id);
    return Promise.resolve(null);
  }

  /** Of all homes at once: it may be that nobody could be asked until now. */
  restart(): void {
    for (const name of this.#homes.keys()) {
      this.#pauses.drop(name);
      this.#go(name);
    }
  }

  end(): void {
    this.#isOver = true;
    this.#dues.end();
    this.#pauses.end();
    this.#homeOf.clear();
    this.#homes.clear();
  }

  #isDue(id: string): void {
    const name = this.#homeOf.get(id);
    if (name === undefined) return;
    const home = this.#home(name);
    if (!home.asking.has(id)) home.waiting.add(id);
    this.#go(name);
  }

  #go(name: BackendHash): void {
    const home = this.#homes.get(name);
    if (home === undefined || this.#pauses.has(name)) return;
    for (const id of home.waiting) {
      if (home.asking.size >= TXN_INQUIRIES_AT_ONCE) return;
      home.waiting.delete(id);
      void this.#ask(name, home, id);
    }
  }

  #ask(name: BackendHash, home: Home, id: string): Promise<Asked> {
    const asked = this.#options.ask(id).then((answer) => {
      home.asking.delete(id);
      if (!this.#isOver) this.#asked(name, home, id, answer);
      return answer;
    });
    home.asking.set(id, asked);
    return asked;
  }

  #asked(name: BackendHash, home: Home, id: string, answer: Asked): void {
    if (answer === "silent" || answer === "unasked") {
      if (this.#homeOf.has(id)) home.waiting.add(id);
      // Those that were asked together fail together: that is one failure.
      if (!this.#pauses.has(name)) {
        const { random } = this.#options;
        this.#pauses.start(name, retryInMs(random, home.failures++, TXN_RETRY_MS_MIN, TXN_RETRY_MS_MAX));
      }
    } else {
      home.failures = 0;
      this.#pauses.drop(name);
      const againMs = this.#options.random.between(TXN_RETRY_MS_MIN, TXN_RETRY_MS_MAX);
      if (answer === "refused" && this.#homeOf.has(id)) this.#dues.start(id, againMs);
    }
    this.#go(name);
    this.#forget(name);
  }

  #home(name: BackendHash): Home {
    const known = this.#homes.get(name);
    if (known !== undefined) return known;
    const home: Home = { waiting: new Set(), asking: new Map(), failures: 0 };
    this.#homes.set(name, home);
    return home;
  }

  /** Nothing is asked of it, and it answers. */
  #forget(name: BackendHash): void {
    const home = this.#homes.get(name);
    if (home === undefined || home.waiting.size > 0 || home.asking.size > 0 || this.#pauses.has(name)) return;
    this.#homes.delete(name);
  }
}
