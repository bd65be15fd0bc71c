// Which numbers of the inbox are worth a look. Numbers are given out when something is submitted, and it is seen when its
// transaction commits, so a lower number may come later than a higher one.
//
//   never seen ──a higher one is found──▶ passed over ──found──▶ seen        passed over ──INBOX_MARK_KEPT_MS, or too many──▶ forgotten
//                                                                seen ──again──▶ to be looked for once more
//
// Invariants: what is after the highest number seen, and what was passed over not long ago, is looked for each time. What was
// forgotten (rolled back mostly; another log's, or of a transaction that stays open for long) is found by a look at everything.

import { INBOX_MARK_KEPT_MS, INBOX_PASSED_OVER_MAX } from "../limits.ts";

/** Before the first that is found: their transactions may be under way. */
const BEFORE_FIRST = 100;

export interface InboxLook {
  /** All numbers after this one, */
  readonly after: number;
  /** and these. */
  readonly exactly: readonly number[];
}

export class InboxMarks {
  #seen = 0;
  /** By number, ascending: when it was passed over. */
  readonly #passedOver = new Map<number, number>();
  readonly #again = new Set<number>();

  /** The highest number that was found; 0: none yet. */
  get seen(): number {
    return this.#seen;
  }

  /** This one may still be there. */
  again(number: number): void {
    this.#again.add(number);
  }

  /** Nothing is known of what is there. */
  forget(): void {
    this.#seen = 0;
    this.#passedOver.clear();
    this.#again.clear();
  }

  everything(): InboxLook {
    return { after: 0, exactly: [...this.#again] };
  }

  next(nowMs: number): InboxLook {
    for (const [number, sinceMs] of this.#passedOver) {
      if (nowMs - sinceMs >= INBOX_MARK_KEPT_MS) this.#passedOver.delete(number);
    }
    return { after: this.#seen, exactly: [...this.#passedOver.keys(), ...this.#again] };
  }

  /** `numbers`: ascending, what a look has found; `isAll`: there was no more. `exactly`: as the look was asked. */
  found(numbers: readonly number[], exactly: readonly number[], isAll: boolean, nowMs: number): void {
    if (isAll) for (const number of exactly) this.#again.delete(number);
    for (const number of numbers) {
      this.#passedOver.delete(number);
      this.#again.delete(number);
      if (number <= this.#seen) continue;
      const from = this.#seen === 0 ? number - BEFORE_FIRST : this.#seen + 1;
      for (let missing = Math.max(1, from, number - INBOX_PASSED_OVER_MAX); missing < number; missing++) {
        this.#passedOver.set(missing, nowMs);
      }
      this.#seen = number;
    }
    for (const number of this.#passedOver.keys()) {
      if (this.#passedOver.size <= INBOX_PASSED_OVER_MAX) break;
      this.#passedOver.delete(number);
    }
  }
}
