// Logs that never block, metrics that Prometheus reads, and an event loop that is watched.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Histogram } from "../../src/core/kit/histogram.ts";
import { createMetrics, openLogSink, SERVER_METRICS, startLoopMonitor } from "../../src/drivers/telemetry/index.ts";
import { sourceOf } from "./test-metrics.ts";

describe("the log", () => {
  it("is JSON lines with time, level, message and fields; its level silences, but never the audit", async () => {
    const directory = await mkdtemp(join(tmpdir(), "tenure-log-"));
    const file = join(directory, "log");
    const sink = openLogSink({ level: "warn", destination: file, fields: { nodeId: "n1" } });
    sink.logger.info({ a: 1 }, "not worth it");
    sink.logger.warn({ term: 3 }, "look");
    sink.logger.error({}, "look at once");
    sink.audit.info({ audit: true, who: "ada" }, "admin");
    await sink.close();
    const lines = (await readFile(file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(({ msg }) => msg)).toEqual(["look", "look at once", "admin"]);
    expect(lines[0]).toMatchObject({ level: 40, nodeId: "n1", term: 3, time: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(lines[2]).toMatchObject({ audit: true, who: "ada", nodeId: "n1" });
    expect(sink.dropped()).toBe(0);
    await rm(directory, { recursive: true });
  });

  it("keeps its last lines in memory: of its level, bounded in number and in length, whoever reads the log", () => {
    const sink = openLogSink({ level: "warn", destination: "/dev/null" });
    sink.logger.info({}, "not worth it");
    expect(sink.recent()).toEqual([]);
    sink.logger.warn({ a: 1 }, "first");
    expect(JSON.parse(sink.recent()[0]!)).toMatchObject({ a: 1, msg: "first" });
    for (let at = 0; at < 20_000; at++) sink.logger.warn({ at }, "line");
    sink.logger.warn({ pad: "x".repeat(100_000) }, "long");
    const lines = sink.recent();
    expect(lines.at(-1)!.length).toBeLessThan(9_000);
    expect(JSON.parse(lines.at(-2)!)).toMatchObject({ at: 19_999 });
    const characters = lines.reduce((sum, line) => sum + line.length, 0);
    expect(characters).toBeGreaterThan(400_000);
    expect(characters).toBeLessThanOrEqual(512 * 1024);
    return sink.close();
  });

  it("a reader that stands still blocks nothing: lines past the buffer are dropped and counted", async () => {
    const script = `
      import { openLogSink } from ${JSON.stringify(new URL("../../src/drivers/telemetry/index.ts", import.meta.url).href)};
      const sink = openLogSink({ level: "info", destination: 2, bufferBytesMax: 65_536 });
      let slowest = 0;
      let last = performance.now();
      let rounds = 0;
      const timer = setInterval(() => {
        for (let i = 0; i < 100; i++) sink.logger.info({ pad: "x".repeat(500) }, "line");
        slowest = Math.max(slowest, performance.now() - last);
        last = performance.now();
        if (++rounds < 50) return;
        clearInterval(timer);
        const startedMs = performance.now();
        void sink.close().then(() => {
          process.stdout.write(JSON.stringify({ slowest, dropped: sink.dropped(), closeMs: performance.now() - startedMs }));
          process.exit(0);
        });
      }, 10);`;
    // Nobody reads standard error: the pipe is full after 64 KiB.
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
    child.stderr.pause();
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await new Promise((resolve) => child.stdout.once("end", resolve));
    const { slowest, dropped, closeMs } = JSON.parse(text) as { slowest: number; dropped: number; closeMs: number };
    // 5,000 lines of more than 500 bytes; the pipe and the buffer hold some hundred.
    expect(dropped).toBeGreaterThan(4_000);
    expect(slowest).toBeLessThan(1_000);
    expect(closeMs).toBeLessThan(2_000);
  });
});

describe("metrics", () => {
  it("show the server's numbers as they are at the scrape, with the specification's names", async () => {
    let term = 5;
    const metrics = createMetrics(() => sourceOf({ term }));
    const scrape = async () => (await metrics.scrape()).text;
    expect(await scrape()).toMatch(/^tenure_current_term 5$/m);
    term = 6;
    const text = await scrape();
    expect(text).toMatch(/^tenure_current_term 6$/m);
    expect(text).toMatch(/^tenure_current_leader_id\{leader_id="n2"\} 1$/m);
    expect(text).toMatch(/^tenure_leader_transfer_count\{result="failed"\} 1$/m);
    expect(text).toMatch(/^tenure_role\{role="STANDBY"\} 1$/m);
    expect(text).toMatch(/^# TYPE tenure_election_duration_ms histogram$/m);
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
  });

  it("a histogram that was counted elsewhere keeps its buckets", async () => {
    const fsyncMs = new Histogram();
    for (const ms of [0.5, 3, 70_000]) fsyncMs.record(ms);
    const { text } = await createMetrics(() => sourceOf({}, { fsyncMs: fsyncMs.snapshot() })).scrape();
    expect(text).toMatch(/^tenure_fsync_ms_bucket\{le="1"\} 1$/m);
    expect(text).toMatch(/^tenure_fsync_ms_bucket\{le="5"\} 2$/m);
    expect(text).toMatch(/^tenure_fsync_ms_bucket\{le="60000"\} 2$/m);
    expect(text).toMatch(/^tenure_fsync_ms_bucket\{le="\+Inf"\} 3$/m);
    expect(text).toMatch(/^tenure_fsync_ms_count 3$/m);
  });

  it("what is unknown is absent: no leader, no success rate, no free space", async () => {
    const { text } = await createMetrics(() =>
      sourceOf({ leaderId: null, disk: { freeBytes: null, isFull: false } }),
    ).scrape();
    for (const name of ["tenure_current_leader_id", "tenure_election_success_rate", "tenure_disk_free_bytes"]) {
      expect(text).toContain(`# TYPE ${name} gauge`);
      expect(text).not.toMatch(new RegExp(`^${name}[ {]`, "m"));
    }
  });

  it("each sample is there once, and two servers in one process share nothing", async () => {
    const first = createMetrics(() => sourceOf({ term: 1 }));
    const second = createMetrics(() => sourceOf({ term: 2 }));
    const [one, two] = await Promise.all([first.scrape(), second.scrape()]);
    expect(one.text).toMatch(/^tenure_current_term 1$/m);
    expect(two.text).toMatch(/^tenure_current_term 2$/m);
    const samples = one.text
      .split("\n")
      .filter((line) => line.startsWith("tenure_"))
      .map((line) => line.slice(0, line.lastIndexOf(" ")));
    expect(new Set(samples).size).toBe(samples.length);
    expect(new Set(SERVER_METRICS.map(({ name }) => name)).size).toBe(SERVER_METRICS.length);
  });
});

it("the loop monitor sees a loop that was held up, and little else", async () => {
  const monitor = startLoopMonitor();
  const idle = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  await idle(250);
  const endMs = performance.now() + 400;
  while (performance.now() < endMs);
  await expect
    .poll(() => {
      const { buckets, count } = monitor.snapshot();
      return count - (buckets.find(({ le }) => le === 100)?.count ?? 0);
    })
    .toBeGreaterThanOrEqual(1);
  const { count, sum } = monitor.snapshot();
  expect(sum).toBeGreaterThan(100);
  expect(count).toBeGreaterThan(1);
  const { turns, longestMs } = monitor.turns();
  expect(turns).toBeGreaterThan(1);
  // It was held for 400 ms, give or take what the clocks of libuv and of this process disagree about.
  expect(longestMs).toBeGreaterThan(390);
  monitor.stop();
});

it("the loop monitor wakes nobody: a loop that waits is not turned by it", async () => {
  const monitor = startLoopMonitor();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const { turns } = monitor.turns();
  monitor.stop();
  // Its own timer wakes four times a second; a loop that turned by itself would do so a hundred thousand times.
  expect(turns).toBeLessThan(5_000);
});
