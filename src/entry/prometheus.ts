// `tenure/prometheus`: what electors have counted, for Prometheus.

import { requireNode } from "../drivers/system/host.ts";

export { type Electors, type MetricRegistry, prometheusText, register } from "../electors/prometheus.ts";

requireNode();
