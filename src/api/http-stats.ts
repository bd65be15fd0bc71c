// What the API counts. Routes are those of the contract, so the sets of labels are bounded; what is no route is counted
// under one name.

import { Histogram } from "../core/kit/histogram.ts";
import type { HistogramSnapshot } from "../ports/elector.ts";

export interface HttpStats {
  readonly requests: readonly { readonly route: string; readonly status: number; readonly count: number }[];
  /** From the headers' arrival to the last byte handed over, by route. Waiting on purpose counts too. */
  readonly durationMs: readonly { readonly route: string; readonly histogram: HistogramSnapshot }[];
  /** Being answered at this moment. */
  readonly inFlight: number;
  /** Connections that were closed unheard, at the limit. */
  readonly droppedConnections: number;
  /** What came was no HTTP, or came too slowly. */
  readonly badConnections: number;
  /** Connections that were cut, by why: see traffic/connections.ts. */
  readonly cutConnections: Readonly<Record<CutReason, number>>;
  /** Connections that are open. */
  readonly connections: number;
  /** Of events and logs, open at this moment. */
  readonly streams: number;
  /** When a snapshot of this node was last reported as stored elsewhere, by the wall clock; 0: not since this process began. */
  readonly lastBackupAtMs: number;
}

export type CutReason = "newcomer" | "slow-reader" | "age" | "pipelined";

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
