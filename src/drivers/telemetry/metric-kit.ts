// How one metric is read from what a server has counted, and the makers of its kinds.

import type { HistogramSnapshot } from "../../ports/elector.ts";
import type {
  CoordinatorServerStats,
  HttpStats,
  JobsServerStats,
  MeshServerStats,
  ServerStats,
} from "../../ports/server-stats.ts";
import type { DeciderStats, TxnStats } from "../../ports/transactions.ts";
import type { ValuesStats } from "../../ports/values.ts";

export interface MetricsSource {
  readonly server: ServerStats;
  readonly jobs: JobsServerStats;
  /** Null: the site is standalone. */
  readonly mesh: MeshServerStats | null;
  /** Null: a site on Postgres keeps none. */
  readonly values: ValuesStats | null;
  /** Null: this node is no transaction coordinator. */
  readonly coordinators: CoordinatorServerStats | null;
  /** Null: a site on Postgres keeps none. */
  readonly transactions: TxnStats | null;
  /** Null: this node is no transaction coordinator. */
  readonly decider: DeciderStats | null;
  readonly http: Omit<HttpStats, "lastBackupAtMs">;
  /** Null without TLS. */
  readonly apiCertificateNotAfterMs: number | null;
  readonly droppedLogLines: number;
  /** 0: none since this process began. Null where a database keeps the log. */
  readonly lastBackupAtMs: number | null;
}

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** Where a sample is not called as its metric: the parts of a histogram. */
  readonly metricName?: string;
}

export interface ServerMetric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  read(source: MetricsSource): readonly Sample[];
}

type Value = (source: MetricsSource) => number | null;

export function counter(name: string, help: string, of: Value): ServerMetric {
  return labelled(name, "counter", help, (source) => plain(of(source)));
}

export function gauge(name: string, help: string, of: Value): ServerMetric {
  return labelled(name, "gauge", help, (source) => plain(of(source)));
}

export function histogram(name: string, help: string, of: (source: MetricsSource) => HistogramSnapshot): ServerMetric {
  return labelled(name, "histogram", help, (source) => buckets(name, of(source), {}));
}

export function labelled(
  name: string,
  type: ServerMetric["type"],
  help: string,
  read: ServerMetric["read"],
): ServerMetric {
  return { name, type, help, read };
}

/** One sample for each of these numbers, labelled with its name. */
export function by(label: string, counts: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

function plain(value: number | null): readonly Sample[] {
  return value === null ? [] : [{ labels: {}, value }];
}

export function buckets(name: string, snapshot: HistogramSnapshot, labels: Labels): readonly Sample[] {
  const { buckets: bounds, count, sum } = snapshot;
  return [
    ...bounds.map(({ le, count: value }) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: String(le) },
      value,
    })),
    { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
