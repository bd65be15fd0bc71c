// The alert of a node on Postgres whose clock is not the database's. The database's is believed, which is one for the whole
// site, so such a node may lead: only what people read of its own clock (logs, since when) is wrong.

import { CLOCK_SKEW_MS_MAX } from "../../core/kit/limits.ts";
import type { AlertView } from "../../ports/cluster.ts";

export class SiteClock {
  #sinceWallMs: number | null = null;

  /** `skewMs`: how far this node's clock is ahead of the database's; null: nobody knows. */
  alerts(nodeId: string, skewMs: number | null, wallMs: number): AlertView[] {
    if (skewMs === null || Math.abs(skewMs) <= CLOCK_SKEW_MS_MAX) {
      this.#sinceWallMs = null;
      return [];
    }
    this.#sinceWallMs ??= wallMs;
    const way = skewMs > 0 ? "ahead of" : "slower than";
    const message = `this node's clock is ${Math.round(Math.abs(skewMs) / 1_000)} s ${way} the database's, which is believed. Set the one that is wrong right (NTP)`;
    return [{ name: "clock_skewed", severity: "warning", message, sinceWallMs: this.#sinceWallMs, nodeId }];
  }
}
