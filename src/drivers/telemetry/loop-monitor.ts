// How late the event loop is: a timer of its own, and by how much each call misses its time. Node's monitorEventLoopDelay
// is not used: it counts its own interval in (20 ms with resolution 20), and tells percentiles only, from which cumulative
// buckets can't be rebuilt without now and then falling by one, which Prometheus reads as a restart.

import { performance } from "node:perf_hooks";
import { Histogram } from "../../core/kit/histogram.ts";
import type { HistogramSnapshot } from "../../ports/elector.ts";

export interface LoopMonitor {
  snapshot(): HistogramSnapshot;
  stop(): void;
}

/** Every wake costs an idle node: 20 ms are 0.5 % of a core. A stall is seen short by at most this. */
const INTERVAL_MS = 250;

export function startLoopMonitor(): LoopMonitor {
  const histogram = new Histogram();
  let dueMs = performance.now() + INTERVAL_MS;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    histogram.record(Math.max(0, nowMs - dueMs));
    dueMs = nowMs + INTERVAL_MS;
  }, INTERVAL_MS);
  timer.unref();
  return { snapshot: () => histogram.snapshot(), stop: () => clearInterval(timer) };
}
