// The door of the telemetry driver: logs by pino, metrics by prom-client, and the event loop's lateness.

export { type LogSink, type LogSinkOptions, openLogSink } from "./log-sink.ts";
export { followTurns, type LoopMonitor, startLoopMonitor } from "./loop-monitor.ts";
export { TurnCounts } from "./turn-counts.ts";
export { createMetrics, type Metrics } from "./metrics.ts";
export type { MetricsSource } from "./metric-kit.ts";
export { SERVER_METRICS } from "./server-metrics.ts";
