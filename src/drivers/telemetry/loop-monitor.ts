// How long the event loop is held. Two views of it:
//
// - The delay: a timer of its own, and by how much each call misses its time. Node's monitorEventLoopDelay is not used: it
//   counts its own interval in (20 ms with resolution 20), and reports percentiles only, from which cumulative buckets can't
//   be rebuilt without now and then falling by one, which Prometheus reads as a restart.
// - The turns: everything that runs between two waits for the world, measured at the end of each: callbacks of sockets, files
//   and timers, their promises, and the collector's pauses. A message or a timer waits for as long as the turn it comes in.
//
// A turn's end is seen by an immediate that is not referenced: it runs after each poll that happens anyway and makes none
// happen, so an idle node is not woken by it.

import { performance } from "node:perf_hooks";
import { Histogram } from "../../core/kit/histogram.ts";
import type { HistogramSnapshot } from "../../ports/elector.ts";
import type { LoopTurns } from "../../ports/server-stats.ts";
import { LOOP_INTERVAL_MS } from "./limits.ts";
import { TurnsOfLate } from "./turn-counts.ts";

export interface LoopMonitor {
  snapshot(): HistogramSnapshot;
  /** Of the last minute. */
  turns(): LoopTurns;
  stop(): void;
}

export function startLoopMonitor(): LoopMonitor {
  const histogram = new Histogram();
  const turns = new TurnsOfLate();
  const stopTurns = followTurns((tookMs) => turns.record(performance.now(), tookMs));
  let dueMs = performance.now() + LOOP_INTERVAL_MS;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    histogram.record(Math.max(0, nowMs - dueMs));
    dueMs = nowMs + LOOP_INTERVAL_MS;
  }, LOOP_INTERVAL_MS);
  timer.unref();
  return {
    snapshot: () => histogram.snapshot(),
    turns: () => turns.counts(performance.now()).figures(),
    stop: () => {
      clearInterval(timer);
      stopTurns();
    },
  };
}

/** Calls `ended` at the end of each turn of this thread's loop with what it took; returns how to stop. */
export function followTurns(ended: (tookMs: number) => void): () => void {
  let startedMs = performance.now();
  let idleMs = performance.nodeTiming.idleTime;
  let isOver = false;
  const check = (): void => {
    if (isOver) return;
    const nowMs = performance.now();
    const nowIdleMs = performance.nodeTiming.idleTime;
    // The time in which the loop waited for the world is the kernel's; libuv counts it.
    ended(Math.max(0, nowMs - startedMs - (nowIdleMs - idleMs)));
    startedMs = nowMs;
    idleMs = nowIdleMs;
    setImmediate(check).unref();
  };
  setImmediate(check).unref();
  return () => {
    isOver = true;
  };
}
