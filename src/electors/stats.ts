// What an elector has counted; `tenure/prometheus` prints it.

import { Histogram } from "../core/kit/histogram.ts";
import { EFFECT_NAMES_MAX } from "../core/kit/limits.ts";

export class Counters {
  acquired = 0;
  attempts = 0;
  readonly lost = new Map<string, number>();
  readonly blocked = new Map<string, number>();
  readonly acquireLatencyMs = new Histogram();
  readonly heartbeatUpdateMs = new Histogram();
  readonly deadlineSlackMs = new Histogram();

  countLost(reason: string): void {
    this.lost.set(reason, (this.lost.get(reason) ?? 0) + 1);
  }

  /** Effects are named by the user: a name for each payment would otherwise grow for ever. */
  countBlocked(effect: string): void {
    const name = this.blocked.has(effect) || this.blocked.size < EFFECT_NAMES_MAX ? effect : "other";
    this.blocked.set(name, (this.blocked.get(name) ?? 0) + 1);
  }
}
