// What electors have counted, as Prometheus wants it: as text, or through a prom-client registry, without a dependency
// on either. docs/reference/metrics.md explains each metric; a test compares both ways.
// Invariants: one sample for each set of labels, also when a process has several electors of one scope (Prometheus
// refuses the whole scrape otherwise); every reason of a loss is there from the start with 0, so that `increase` sees
// the first one.

import { assertNever } from "../core/kit/assert.ts";
import type { EndReason } from "../core/trust/transitions.ts";
import type { Elector, ElectorStats, HistogramSnapshot } from "../ports/elector.ts";

/** An array, a Set or any other collection: what is in it at the time of a scrape is shown. */
export type Electors = Iterable<Pick<Elector, "stats">>;

/** prom-client's Registry, as far as it is needed. */
export interface MetricRegistry {
  registerMetric(metric: never): void;
}

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** Where a sample is not called as its metric: the parts of a histogram. */
  readonly metricName?: string;
}

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly read: Read;
}

/** `stats` are those of all electors of one scope. */
type Read =
  | { readonly type: "counter" | "gauge"; samples(stats: readonly ElectorStats[]): readonly Sample[] }
  | { readonly type: "histogram"; of(stats: ElectorStats): HistogramSnapshot };

const REASONS: Readonly<Record<EndReason, 0>> = {
  resigned: 0,
  asked: 0,
  expired: 0,
  "session-ended": 0,
  superseded: 0,
  "read-only": 0,
  "lease-gone": 0,
  unlocked: 0,
};

const METRICS: readonly Metric[] = [
  {
    name: "tenure_leader_acquired_total",
    help: "Terms that this instance has begun.",
    read: { type: "counter", samples: (stats) => [plain(sum(stats, (one) => one.acquiredTotal))] },
  },
  {
    name: "tenure_leadership_lost_total",
    help: "Terms of this instance that have ended, by reason; resigned and asked are on purpose.",
    read: { type: "counter", samples: (stats) => labelled("reason", REASONS, stats, (one) => one.lostTotal) },
  },
  {
    name: "tenure_acquire_attempts_total",
    help: "Attempts to acquire the scope, those that failed included.",
    read: { type: "counter", samples: (stats) => [plain(sum(stats, (one) => one.acquireAttemptsTotal))] },
  },
  {
    name: "tenure_effects_blocked_not_leader_total",
    help: "Effects that the gate has refused, by the name that the caller gave.",
    read: { type: "counter", samples: (stats) => labelled("effect", {}, stats, (one) => one.effectsBlockedTotal) },
  },
  {
    name: "tenure_is_leader",
    help: "1 while the gate of this instance is open, else 0.",
    read: { type: "gauge", samples: (stats) => [plain(stats.some((one) => one.isLeader) ? 1 : 0)] },
  },
  {
    name: "tenure_leader_epoch",
    help: "The epoch in which this instance holds the scope, 0 while it does not.",
    read: { type: "gauge", samples: (stats) => [plain(Math.max(...stats.map((one) => one.epoch)))] },
  },
  {
    name: "tenure_heartbeat_age_ms",
    help: "Milliseconds since the last heartbeat left that proved the hold; absent while not holding.",
    read: { type: "gauge", samples: heartbeatAge },
  },
  {
    name: "tenure_acquire_latency_ms",
    help: "Milliseconds from the wish to lead until leading, waiting for others included.",
    read: { type: "histogram", of: (stats) => stats.acquireLatencyMs },
  },
  {
    name: "tenure_heartbeat_update_ms",
    help: "Milliseconds from sending a heartbeat until its answer.",
    read: { type: "histogram", of: (stats) => stats.heartbeatUpdateMs },
  },
  {
    name: "tenure_deadline_slack_ms",
    help: "Milliseconds of trust that were left each time that a heartbeat renewed it.",
    read: { type: "histogram", of: (stats) => stats.deadlineSlackMs },
  },
];

/** The text exposition format, version 0.0.4: `Content-Type: text/plain; version=0.0.4; charset=utf-8`. */
export function prometheusText(electors: Electors): string {
  const scopes = byScope(electors);
  return METRICS.map((metric) => {
    const lines = samplesOf(metric, metric.name, scopes).map(
      ({ metricName = metric.name, labels, value }) => `${metricName}{${labelText(labels)}} ${value}\n`,
    );
    return `# HELP ${metric.name} ${metric.help}\n# TYPE ${metric.name} ${metric.read.type}\n${lines.join("")}`;
  }).join("");
}

/** Adds Tenure's metrics to a prom-client registry. They are read from the electors at each scrape. */
export function register(registry: MetricRegistry, electors: Electors): void {
  for (const metric of METRICS) registry.registerMetric(new RegisteredMetric(metric, electors) as never);
}

/** What prom-client calls on a metric. It changes `name` where it speaks OpenMetrics, which wants no `_total` there. */
class RegisteredMetric {
  name: string;
  readonly help: string;
  readonly type: Read["type"];
  readonly aggregator = "sum";
  readonly #metric: Metric;
  readonly #electors: Electors;

  constructor(metric: Metric, electors: Electors) {
    this.name = metric.name;
    this.help = metric.help;
    this.type = metric.read.type;
    this.#metric = metric;
    this.#electors = electors;
  }

  get(): Promise<object> {
    const { name, help, type, aggregator } = this;
    const values = samplesOf(this.#metric, name, byScope(this.#electors));
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  /** The numbers are the electors', and a counter never falls. */
  reset(): void {}
}

function byScope(electors: Electors): ReadonlyMap<string, readonly ElectorStats[]> {
  const scopes = new Map<string, ElectorStats[]>();
  for (const elector of electors) {
    const stats = elector.stats();
    const others = scopes.get(stats.scope);
    if (others === undefined) scopes.set(stats.scope, [stats]);
    else others.push(stats);
  }
  return scopes;
}

function samplesOf(metric: Metric, name: string, scopes: ReturnType<typeof byScope>): Sample[] {
  return [...scopes].flatMap(([scope, stats]) =>
    read(metric.read, name, stats).map((sample) => ({ ...sample, labels: { scope, ...sample.labels } })),
  );
}

function read(how: Read, name: string, stats: readonly ElectorStats[]): readonly Sample[] {
  switch (how.type) {
    case "counter":
    case "gauge":
      return how.samples(stats);
    case "histogram":
      return histogram(
        name,
        stats.map((one) => how.of(one)),
      );
    default:
      return assertNever(how, "prometheus.read");
  }
}

function histogram(name: string, snapshots: readonly HistogramSnapshot[]): readonly Sample[] {
  const bounds = snapshots[0]?.buckets ?? [];
  const count = sum(snapshots, (one) => one.count);
  const buckets = bounds.map(({ le }, i) => ({
    le: String(le),
    value: sum(snapshots, (one) => one.buckets[i]?.count ?? 0),
  }));
  return [
    ...[...buckets, { le: "+Inf", value: count }].map(({ le, value }) => ({
      metricName: `${name}_bucket`,
      labels: { le },
      value,
    })),
    { metricName: `${name}_sum`, labels: {}, value: sum(snapshots, (one) => one.sum) },
    { metricName: `${name}_count`, labels: {}, value: count },
  ];
}

function heartbeatAge(stats: readonly ElectorStats[]): readonly Sample[] {
  const ages = stats.map((one) => one.heartbeatAgeMs).filter((age) => age !== null);
  return ages.length === 0 ? [] : [plain(Math.max(...ages))];
}

function labelled(
  label: string,
  initial: Readonly<Record<string, number>>,
  stats: readonly ElectorStats[],
  of: (stats: ElectorStats) => Readonly<Record<string, number>>,
): readonly Sample[] {
  const totals = new Map(Object.entries(initial));
  for (const [value, count] of stats.flatMap((one) => Object.entries(of(one)))) {
    totals.set(value, (totals.get(value) ?? 0) + count);
  }
  return [...totals].map(([value, count]) => ({ labels: { [label]: value }, value: count }));
}

function plain(value: number): Sample {
  return { labels: {}, value };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function labelText(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(",");
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
