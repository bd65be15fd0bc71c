import { describe, expect, it } from "vitest";
import type { ElectorStats, HistogramSnapshot } from "../ports/elector.ts";
import { prometheusText, register } from "./prometheus.ts";

const EMPTY: HistogramSnapshot = {
  count: 0,
  sum: 0,
  buckets: [
    { le: 1, count: 0 },
    { le: 5, count: 0 },
  ],
};

function elector(stats: Partial<ElectorStats> = {}): { stats(): ElectorStats } {
  const base: ElectorStats = {
    scope: "payer",
    identity: "a",
    isLeader: false,
    epoch: 0,
    acquiredTotal: 0,
    acquireAttemptsTotal: 0,
    lostTotal: {},
    effectsBlockedTotal: {},
    heartbeatAgeMs: null,
    acquireLatencyMs: EMPTY,
    heartbeatUpdateMs: EMPTY,
    deadlineSlackMs: EMPTY,
  };
  return { stats: () => ({ ...base, ...stats }) };
}

function line(text: string, start: string): string | undefined {
  return text.split("\n").find((one) => one.startsWith(start));
}

describe("the text exposition", () => {
  it("shows each number with its scope", () => {
    const text = prometheusText([elector({ isLeader: true, epoch: 7, acquiredTotal: 3, heartbeatAgeMs: 250.5 })]);
    expect(line(text, "tenure_is_leader")).toBe('tenure_is_leader{scope="payer"} 1');
    expect(line(text, "tenure_leader_epoch")).toBe('tenure_leader_epoch{scope="payer"} 7');
    expect(line(text, "tenure_leader_acquired_total")).toBe('tenure_leader_acquired_total{scope="payer"} 3');
    expect(line(text, "tenure_heartbeat_age_ms")).toBe('tenure_heartbeat_age_ms{scope="payer"} 250.5');
  });

  it("shows every reason of a loss from the start, so that the first one is an increase", () => {
    const text = prometheusText([elector({ lostTotal: { expired: 2 } })]);
    expect(line(text, 'tenure_leadership_lost_total{scope="payer",reason="expired"}')).toMatch(/ 2$/);
    expect(line(text, 'tenure_leadership_lost_total{scope="payer",reason="superseded"}')).toMatch(/ 0$/);
  });

  it("leaves out the heartbeat's age while nothing is held", () => {
    expect(line(prometheusText([elector()]), "tenure_heartbeat_age_ms")).toBeUndefined();
  });

  it("ends a histogram with +Inf, sum and count", () => {
    const heartbeatUpdateMs = {
      count: 4,
      sum: 21.5,
      buckets: [
        { le: 1, count: 1 },
        { le: 5, count: 3 },
      ],
    };
    const text = prometheusText([elector({ heartbeatUpdateMs })]);
    const lines = text.split("\n").filter((one) => one.startsWith("tenure_heartbeat_update_ms_"));
    expect(lines).toEqual([
      'tenure_heartbeat_update_ms_bucket{scope="payer",le="1"} 1',
      'tenure_heartbeat_update_ms_bucket{scope="payer",le="5"} 3',
      'tenure_heartbeat_update_ms_bucket{scope="payer",le="+Inf"} 4',
      'tenure_heartbeat_update_ms_sum{scope="payer"} 21.5',
      'tenure_heartbeat_update_ms_count{scope="payer"} 4',
    ]);
  });

  it("escapes label values, so that a name given by a user can't add lines or labels", () => {
    const effect = 'a"} 1\ntenure_is_leader{scope="forged\\';
    const text = prometheusText([elector({ effectsBlockedTotal: { [effect]: 1 } })]);
    const escaped = String.raw`effect="a\"} 1\ntenure_is_leader{scope=\"forged\\"`;
    expect(line(text, "tenure_effects_blocked")).toBe(
      `tenure_effects_blocked_not_leader_total{scope="payer",${escaped}} 1`,
    );
    expect(text.split("\n").filter((one) => one.startsWith("tenure_is_leader{"))).toHaveLength(1);
  });

  it("adds up several electors of one scope, because a sample that comes twice spoils the scrape", () => {
    const buckets = [
      { le: 1, count: 1 },
      { le: 5, count: 2 },
    ];
    const acquireLatencyMs = { count: 2, sum: 4, buckets };
    const leader = elector({
      isLeader: true,
      epoch: 5,
      acquiredTotal: 2,
      effectsBlockedTotal: { pay: 1 },
      acquireLatencyMs,
    });
    const other = elector({ acquiredTotal: 1, effectsBlockedTotal: { pay: 2 }, acquireLatencyMs, heartbeatAgeMs: 10 });
    const text = prometheusText([leader, other, elector({ scope: "other" })]);
    const samples = text.split("\n").filter((one) => one !== "" && !one.startsWith("#"));
    const keys = samples.map((one) => one.slice(0, one.lastIndexOf(" ")));
    expect(new Set(keys).size).toBe(keys.length);
    expect(samples).toContain('tenure_leader_acquired_total{scope="payer"} 3');
    expect(samples).toContain('tenure_is_leader{scope="payer"} 1');
    expect(samples).toContain('tenure_leader_epoch{scope="payer"} 5');
    expect(samples).toContain('tenure_effects_blocked_not_leader_total{scope="payer",effect="pay"} 3');
    expect(samples).toContain('tenure_acquire_latency_ms_bucket{scope="payer",le="5"} 4');
    expect(samples).toContain('tenure_is_leader{scope="other"} 0');
  });
});

describe("register", () => {
  it("gives the registry one metric for each, which reads the electors at each scrape", async () => {
    interface Registered {
      name: string;
      get(): Promise<{ values: { labels: object; value: number }[] }>;
    }
    const metrics: Registered[] = [];
    const electors = new Set<{ stats(): ElectorStats }>();
    register({ registerMetric: (metric: Registered) => metrics.push(metric) }, electors);
    const leading = metrics.find(({ name }) => name === "tenure_is_leader");
    expect((await leading?.get())?.values).toEqual([]);
    electors.add(elector({ isLeader: true }));
    expect((await leading?.get())?.values).toEqual([{ labels: { scope: "payer" }, value: 1 }]);
    expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length);
  });
});
