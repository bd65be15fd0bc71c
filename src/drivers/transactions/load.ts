// How much is sent to an island at once, and how long its answer is waited for. A link between two places has a bandwidth: what does not arrive within the
// time of one exchange would never do so, sent again as it was.
//
//   no answer in time ──▶ half of what was sent, down to one call ──▶ for one call alone, or what is larger: twice the time
//   an answer         ──▶ as much more as it has answered, so that what was full doubles; and for so large ones twice the time that it took
//
// Invariants: what goes together is never more than a batch may have, and a time never longer than ISLAND_TRY_MS_MAX nor shorter than ISLAND_TRY_MS, but for
// what is left of the calls' own.

import { TXN_BATCH_BYTES_MAX, TXN_BATCH_MAX } from "../../core/kit/limits.ts";
import { ISLAND_BATCH_BYTES_MIN, ISLAND_QUICK_MS, ISLAND_TRY_MS, ISLAND_TRY_MS_MAX } from "./limits.ts";

/** What one exchange carries. */
export interface Carried {
  readonly count: number;
  readonly bytes: number;
  readonly withinMs: number;
  /** Of `Load`, when it was sent. */
  readonly round: number;
}

export class Load {
  #countMax = TXN_BATCH_MAX;
  #bytesMax = TXN_BATCH_BYTES_MAX;
  #round = 0;
  /** For what is as large as `#longFromBytes`, or larger. */
  #longMs = ISLAND_TRY_MS;
  #longFromBytes = Infinity;

  #answerMs = 0;

  /** How long the last answer took. */
  get answerMs(): number {
    return this.#answerMs;
  }

  get countMax(): number {
    return this.#countMax;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Less goes together than may. */
  get isReduced(): boolean {
    return this.#countMax < TXN_BATCH_MAX || this.#bytesMax < TXN_BATCH_BYTES_MAX;
  }

  /** `leftMs`: until nobody waits for it any more. */
  carry(count: number, bytes: number, leftMs: number): Carried {
    const tryMs = bytes >= this.#longFromBytes ? this.#longMs : ISLAND_TRY_MS;
    return { count, bytes, withinMs: Math.min(tryMs, Math.max(1, leftMs)), round: this.#round };
  }

  /** It had its time. Those that were under way together are one silence: they had the same link, or the same node. */
  unanswered({ count, bytes, withinMs, round }: Carried): void {
    // An answer takes longer than that.
    this.#answerMs = Math.max(this.#answerMs, Math.min(withinMs, ISLAND_TRY_MS));
    // Nothing smaller can be sent: it was not the size.
    if (round !== this.#round || bytes <= ISLAND_BATCH_BYTES_MIN) return;
    this.#round++;
    this.#countMax = Math.max(1, Math.floor(Math.min(this.#countMax, count) / 2));
    this.#bytesMax = Math.max(ISLAND_BATCH_BYTES_MIN, Math.floor(Math.min(this.#bytesMax, bytes) / 2));
    // What had little time because its calls had little left says nothing of the time that others need.
    if (count > 1 || withinMs < ISLAND_TRY_MS) return;
    this.#longMs = Math.min(Math.max(this.#longMs, withinMs) * 2, ISLAND_TRY_MS_MAX);
    this.#longFromBytes = Math.min(this.#longFromBytes, bytes);
  }

  answered({ count, bytes }: Carried, tookMs: number): void {
    this.#answerMs = tookMs;
    const part = tookMs <= ISLAND_QUICK_MS ? 1 : 1 / 8;
    this.#countMax = Math.min(TXN_BATCH_MAX, this.#countMax + Math.ceil(count * part));
    this.#bytesMax = Math.min(TXN_BATCH_BYTES_MAX, this.#bytesMax + Math.ceil(bytes * part));
    // A smaller one says nothing of how long these take.
    if (bytes < this.#longFromBytes) return;
    this.#longMs = Math.min(Math.max(tookMs * 2, ISLAND_TRY_MS), ISLAND_TRY_MS_MAX);
    if (this.#longMs === ISLAND_TRY_MS) this.#longFromBytes = Infinity;
  }
}
