// The benchmarks of jobs, a few rounds of each: that they end by themselves and print what they promise. The figures themselves
// mean nothing on a busy machine; only what is true of any figure is checked.

import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { jsonOf, LIMIT_MS, notNegative, positive } from "./test-bench.ts";

const peersInstalled = existsSync(new URL("../bench/node_modules/.tenure-installed", import.meta.url));
const row = {
  tenure_per_s: positive,
  tenure_p50_ms: positive,
  tenure_p99_ms: positive,
  cpu_us_per_job: positive,
};
const short = ["--rounds", "1", "--warm-first-ms", "200", "--window-ms", "2000", "--warm-ms", "500", "--samples", "3"];

describe("jobs", () => {
  test("a row for each shape, through the SDK and without it", { timeout: LIMIT_MS }, async () => {
    const flags = ["--nodes", "1", "--backends", "embedded", "--raw", "--alone", "--calm"];
    const alone = { nodes: 1, backend: "embedded", ...row, peers: { graphile: null, pgboss: null }, ratio: null };
    expect(await jsonOf("jobs", ...flags, ...short)).toEqual({
      bench: "jobs",
      rows: [
        { shape: "throughput", batched: true, ...alone },
        { shape: "throughput-raw", batched: true, ...alone },
        { shape: "throughput", batched: false, ...alone },
        { shape: "throughput-raw", batched: false, ...alone },
        { shape: "latency", batched: false, ...alone },
        { shape: "latency-raw", batched: false, ...alone },
      ],
    });
  });

  test.runIf(peersInstalled)("on PostgreSQL, beside the peers", { timeout: LIMIT_MS }, async () => {
    const peers = { graphile: { per_s: positive, p50_ms: positive }, pgboss: { per_s: positive, p50_ms: positive } };
    const beside = { nodes: 1, backend: "postgres", ...row, peers, ratio: positive };
    expect(await jsonOf("jobs", "--nodes", "1", "--backends", "postgres", ...short)).toEqual({
      bench: "jobs",
      rows: [
        { shape: "throughput", batched: true, ...beside },
        { shape: "throughput", batched: false, ...beside },
        { shape: "latency", batched: false, ...beside },
      ],
    });
  });

  test("that wait: leasing beside few and many of them", { timeout: LIMIT_MS }, async () => {
    const at = { leased_per_s: positive, failover_p50_ms: null, failover_max_ms: null, leader_rss_mb: positive };
    expect(await jsonOf("jobs", "--pending", "3000", "--nodes", "1", "--calm", ...short)).toEqual({
      bench: "jobs-pending",
      nodes: 1,
      rows: [
        { pending: 1000, ...at },
        { pending: 3000, ...at },
      ],
      leasing_ratio: positive,
      failover_ratio: null,
    });
  });

  test("with search, verification and snapshots beside them: nobody campaigns", { timeout: LIMIT_MS }, async () => {
    const result = await jsonOf("loop", "--nodes", "1", "--window-ms", "500", "--calm");
    expect(result).toEqual({
      bench: "loop",
      nodes: 1,
      seconds: notNegative,
      jobs: positive,
      per_s: positive,
      elections: 0,
      searches: positive,
      verifications: positive,
      snapshots: positive,
      failed: 0,
      memory: [{ name: "n1", rss_mb: [positive, positive] }],
    });
  });
});

test("events: verified, archived, read", { timeout: LIMIT_MS }, async () => {
  const percentiles = { p50_ms: positive, p99_ms: positive };
  expect(await jsonOf("events", "--events", "20000", "--window-ms", "300")).toEqual({
    bench: "events",
    events: 20_000,
    verify: { chain_per_s: positive, tree_per_s: positive },
    archive: {
      megabytes: positive,
      written_per_s: positive,
      verified_per_s: positive,
      longest_slice_ms: positive,
      rss_mb: [positive, positive],
    },
    since: { page: 1000, events_per_s: positive, mb_per_s: positive, ...percentiles },
  });
});

test("api: reads, and events to many streams", { timeout: LIMIT_MS }, async () => {
  const figure = { per_s: positive, p50_ms: positive, p99_ms: positive };
  const flags = ["--jobs", "500", "--window-ms", "200", "--streams", "5", "--samples", "3"];
  expect(await jsonOf("api", ...flags)).toEqual({
    bench: "api",
    jobs: 500,
    readers: 4,
    rows: ["job", "job, linearizable", "list", "list, by state", "search", "stats", "role"].map((read) => ({
      read,
      ...figure,
    })),
    events: { streams: 5, samples: 3, ...figure },
  });
});

test("api --connections: pages by many at once, and nobody is refused", { timeout: LIMIT_MS }, async () => {
  const flags = ["--jobs", "500", "--window-ms", "300", "--connections", "1,128"];
  const row = {
    read: "list",
    main_us: expect.any(Number) as number,
    views_us: expect.any(Number) as number,
    per_s: positive,
    p50_ms: positive,
    p99_ms: positive,
    refused: 0,
  };
  expect(await jsonOf("api", ...flags)).toEqual({
    bench: "api-lists",
    jobs: 500,
    rows: [
      { connections: 1, ...row },
      { connections: 128, ...row },
    ],
  });
});

test("turns: a row for each part of the consensus thread's work", { timeout: 4 * LIMIT_MS }, async () => {
  const flags = ["--seconds", "1", "--jobs", "2000", "--agents", "30", "--streams", "30"];
  const figures = { longest_ms: positive, p99_ms: positive, longest_cpu_ms: positive, turns: positive };
  expect(await jsonOf("turns", ...flags)).toEqual({
    bench: "turns",
    must_ms: 50,
    goal_ms: 5,
    rows: ["schedules", "pending", "snapshot", "verify", "agents", "streams"].map((what) => ({ what, ...figures })),
  });
});
