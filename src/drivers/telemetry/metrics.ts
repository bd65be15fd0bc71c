// A server's metrics as Prometheus scrapes them: ours, read from what was counted elsewhere, and those of the process (CPU,
// memory, descriptors, garbage collection), which prom-client knows how to get. A registry of its own: nothing is global.

import { collectDefaultMetrics, Registry } from "prom-client";
import { NEVER_MS } from "./limits.ts";
import type { MetricsSource, ServerMetric } from "./metric-kit.ts";
import { SERVER_METRICS } from "./server-metrics.ts";

export interface Metrics {
  scrape(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** `read` is called once for each scrape, so that all its numbers are of one moment. */
export function createMetrics(read: () => MetricsSource): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const { name } of registry.getMetricsAsArray()) {
    if (name.startsWith("nodejs_eventloop_lag")) registry.removeSingleMetric(name);
  }
  const moment = { source: undefined as MetricsSource | undefined };
  for (const metric of SERVER_METRICS) registry.registerMetric(new ReadMetric(metric, moment) as never);
  return {
    scrape: async () => {
      moment.source = read();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** What prom-client calls on a metric. Its own histogram counts by itself and can't be given counts. */
class ReadMetric {
  readonly name: string;
  readonly help: string;
  readonly type: ServerMetric["type"];
  readonly aggregator = "sum";
  readonly #metric: ServerMetric;
  readonly #moment: { readonly source: MetricsSource | undefined };

  constructor(metric: ServerMetric, moment: { readonly source: MetricsSource | undefined }) {
    this.name = metric.name;
    this.help = metric.help;
    this.type = metric.type;
    this.#metric = metric;
    this.#moment = moment;
  }

  get(): Promise<object> {
    const { name, help, type, aggregator } = this;
    const { source } = this.#moment;
    const values = source === undefined ? [] : this.#metric.read(source);
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  /** The numbers are others', and a counter never falls. */
  reset(): void {}
}
