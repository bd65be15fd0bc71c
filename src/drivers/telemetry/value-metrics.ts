// The metrics of values. A node on Postgres shows none of them.

import { by, gauge, labelled, type ServerMetric } from "./metric-kit.ts";

export const VALUE_METRICS: readonly ServerMetric[] = [
  gauge("tenure_values", "Values that there are, as applied here.", ({ values }) => values?.values ?? null),
  gauge(
    "tenure_values_bytes",
    "Bytes of values with their names, as applied here.",
    ({ values }) => values?.bytes ?? null,
  ),
  gauge(
    "tenure_values_watchers",
    "Streams that wait on this node for values to change.",
    ({ values }) => values?.watching ?? null,
  ),
  labelled(
    "tenure_values_writes_total",
    "counter",
    "Puts and deletions of values that this node has decided as leader, by outcome.",
    ({ values }) => (values === null ? [] : by("outcome", values.writes)),
  ),
];
