// What the API counts. Routes are those of the contract, so the sets of labels are bounded; what is no route is counted
// under one name.

import { Histogram } from "../core/kit/histogram.ts";
import type { CutReason, HttpStats } from "../ports/server-stats.ts";

export class HttpCounters {
  readonly #requests = new Map<string, Map<number, number>>();
  readonly #durations = new Map<string, Histogram>();
  inFlight = 0;
  droppedConnections = 0;
  badConnections = 0;
  lastBackupAtMs = 0;
  readonly cutConnections: Record<CutReason, number> = { newcomer: 0, "slow-reader": 0, age: 0, pipelined: 0 };

  count(route: string, status: number, durationMs: number): void {
    const statuses = this.#requests.get(route) ?? new Map<number, number>();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    this.#requests.set(route, statuses);
    const histogram = this.#durations.get(route) ?? new Histogram();
    histogram.record(durationMs);
    this.#durations.set(route, histogram);
  }

  snapshot(connections: number, streams: number): HttpStats {
    const requests = [...this.#requests].flatMap(([route, statuses]) =>
      [...statuses].map(([status, count]) => ({ route, status, count })),
    );
    const durationMs = [...this.#durations].map(([route, histogram]) => ({ route, histogram: histogram.snapshot() }));
    const { inFlight, droppedConnections, badConnections, lastBackupAtMs } = this;
    const cutConnections = { ...this.cutConnections };
    const now = { inFlight, connections, streams };
    return { requests, durationMs, ...now, droppedConnections, badConnections, cutConnections, lastBackupAtMs };
  }
}
