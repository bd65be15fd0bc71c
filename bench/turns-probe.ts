// Loaded into a server before its own program (`node --import`): times each turn of its main thread, in wall time and in
// processor time, with the probe that the server's own metric uses. On SIGUSR2 it writes one line with what it has measured
// since the last one to the error stream, and begins anew.

import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { followTurns, TurnCounts } from "../src/drivers/telemetry/index.ts";

const STDERR = 2;
const US_PER_MS = 1_000;

if (isMainThread) {
  const wall = new TurnCounts();
  const processor = new TurnCounts();
  let spentMs = threadMs();
  let longest = { ms: 0, processorMs: 0 };
  /** The turn in which the figures are written is the probe's, not the server's. */
  let isOwn = false;
  followTurns((tookMs) => {
    const nowMs = threadMs();
    const processorMs = nowMs - spentMs;
    spentMs = nowMs;
    const isReport = isOwn;
    isOwn = false;
    if (isReport) return;
    wall.record(tookMs);
    processor.record(processorMs);
    if (tookMs > longest.ms) longest = { ms: tookMs, processorMs };
  });
  process.on("SIGUSR2", () => {
    isOwn = true;
    const { turns, longestMs, p99Ms } = wall.figures();
    const { longestMs: longestCpuMs } = processor.figures();
    const told = { turns, longestMs, p99Ms, longestCpuMs, cpuMsOfLongest: longest.processorMs };
    wall.clear();
    processor.clear();
    longest = { ms: 0, processorMs: 0 };
    writeSync(STDERR, `\nbench-turns ${JSON.stringify(told)}\n`);
  });
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / US_PER_MS;
}
