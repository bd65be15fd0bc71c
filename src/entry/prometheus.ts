// `tenure/prometheus`: what electors have counted, for Prometheus.

export { type Electors, type MetricRegistry, prometheusText, register } from "../electors/prometheus.ts";
