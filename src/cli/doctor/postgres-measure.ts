// Measures the way to a server: how long a round trip takes, and how fast its clock runs next to ours.
//
// The server's clock is read many times at both ends of a second; of each end the reading with the shortest round trip
// counts. It was taken somewhere inside of that round trip, which is the uncertainty.

import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../drivers/system/clock.ts";
import type { Line } from "../../postgres/line.ts";
import { CLOCK_OVER_MS, CLOCK_READINGS, LATENCY_MS_MAX, LATENCY_SAMPLES_MAX, LATENCY_SAMPLES_MIN } from "./limits.ts";
import type { ClockFacts, Latency } from "./postgres.ts";

interface Reading {
  /** The middle of the round trip, and how long it took. */
  readonly localMs: number;
  readonly wallMs: number;
  readonly tripMs: number;
  readonly serverMs: number;
}

export async function measureClock(line: Line): Promise<ClockFacts> {
  const first = await read(line);
  await sleep(CLOCK_OVER_MS);
  return clockOf(first, await read(line));
}

async function read(line: Line): Promise<Reading> {
  let best: Reading | undefined;
  for (let i = 0; i < CLOCK_READINGS; i++) {
    const sentMs = systemClock.monotonicMs();
    const [row] = await line.ask<{ ms: string }>("select (extract(epoch from clock_timestamp()) * 1000)::text as ms");
    const tripMs = systemClock.monotonicMs() - sentMs;
    const wallMs = systemClock.wallMs() - tripMs / 2;
    const reading = { localMs: sentMs + tripMs / 2, wallMs, tripMs, serverMs: Number(row?.ms) };
    if (best === undefined || tripMs < best.tripMs) best = reading;
  }
  return best as Reading;
}

function clockOf(first: Reading, last: Reading): ClockFacts {
  const overMs = last.localMs - first.localMs;
  return {
    rate: (last.serverMs - first.serverMs) / overMs,
    uncertainty: (first.tripMs + last.tripMs) / 2 / overMs,
    overMs,
    offsetMs: last.serverMs - last.wallMs,
  };
}

export async function measureLatency(line: Line): Promise<Latency> {
  return await sampleLatency(() => line.ask("select 1"));
}

export async function sampleLatency(ask: () => Promise<unknown>): Promise<Latency> {
  const trips: number[] = [];
  const untilMs = systemClock.monotonicMs() + LATENCY_MS_MAX;
  while (trips.length < LATENCY_SAMPLES_MAX) {
    if (trips.length >= LATENCY_SAMPLES_MIN && systemClock.monotonicMs() >= untilMs) break;
    const sentMs = systemClock.monotonicMs();
    await ask();
    trips.push(systemClock.monotonicMs() - sentMs);
  }
  trips.sort((a, b) => a - b);
  const at = (part: number): number => trips[Math.min(trips.length - 1, Math.ceil(trips.length * part) - 1)] ?? 0;
  return { samples: trips.length, p50Ms: at(0.5), p99Ms: at(0.99) };
}
