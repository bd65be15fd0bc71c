// How late words come at times although the one who sends them lives: a loaded machine or network stretches the gaps, and
// who waits no longer than on a quiet one would depose a leader for it. The longest recent gap is remembered and fades;
// it says how much longer to wait.
//
// Invariants:
// - on a quiet machine it is zero, so a failure is noticed as soon as is configured;
// - it is at most two of the longest election timeouts, so a failure is always noticed;
// - it only ever prolongs a wait: no vote and no promise of a lease rests on it.

import { STRAIN_FACTOR, STRAIN_HALF_LIFE_MS, STRAIN_TIMEOUTS_MAX } from "../kit/limits.ts";
import { beatIntervalMs, type ElectionConfig } from "./config.ts";
import { STRAIN_MS_MIN } from "./limits.ts";

export class Strain {
  readonly #beatMs: number;
  readonly #timeoutMaxMs: number;
  #peakMs = 0;
  #peakAtMs = 0;

  constructor(config: ElectionConfig) {
    this.#beatMs = beatIntervalMs(config);
    this.#timeoutMaxMs = config.electionTimeoutMaxMs;
  }

  at(nowMs: number): number {
    const leftMs = this.#peakMs * 0.5 ** ((nowMs - this.#peakAtMs) / STRAIN_HALF_LIFE_MS);
    return leftMs < STRAIN_MS_MIN ? 0 : leftMs;
  }

  /**
   * Who had spoken last spoke again. Above all that was waited for, it was a pause or a cut, which says nothing about
   * the next gap.
   */
  gapEnded(gapMs: number, nowMs: number): void {
    const strainMs = this.at(nowMs);
    if (gapMs > this.#timeoutMaxMs + strainMs) return;
    // Half a beat late is how timers and networks are.
    const lateMs = gapMs - 1.5 * this.#beatMs;
    const peakMs = Math.min(STRAIN_FACTOR * lateMs, STRAIN_TIMEOUTS_MAX * this.#timeoutMaxMs);
    if (lateMs <= 0 || peakMs <= strainMs) return;
    this.#peakMs = peakMs;
    this.#peakAtMs = nowMs;
  }
}
