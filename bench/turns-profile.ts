// Loaded into a server before turns-probe.ts (`bench turns --profile`): says what ran in its longest turns. A sampling profile of
// the main thread and the collector's pauses are laid over the turns; on SIGUSR2 the longest ones are written to the error
// stream, each with where its samples fell. It costs some percent: its figures are not the benchmark's.

import { writeSync } from "node:fs";
import { Session, type Profiler } from "node:inspector";
import { constants, PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";
import { followTurns } from "../src/drivers/telemetry/index.ts";

const STDERR = 2;
const SAMPLE_US = 250;
const TURNS_KEPT = 12;
const FRAMES_SAID = 14;
const US_PER_MS = 1_000;

interface Turn {
  readonly endMs: number;
  readonly tookMs: number;
  readonly processorMs: number;
}

const KINDS = new Map<number, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, "major"],
  [constants.NODE_PERFORMANCE_GC_MINOR, "minor"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "incremental"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "weak"],
]);

if (isMainThread) {
  let turns: Turn[] = [];
  let pauses: { readonly startMs: number; readonly ms: number; readonly kind: string }[] = [];
  let spentMs = threadMs();
  let isOwn = false;
  const session = new Session();
  let isSampling = false;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const kind = (entry as PerformanceEntry & { readonly detail: { readonly kind: number } }).detail.kind;
      pauses.push({ startMs: entry.startTime, ms: entry.duration, kind: KINDS.get(kind) ?? String(kind) });
    }
  }).observe({ entryTypes: ["gc"] });
  followTurns((tookMs) => {
    const nowMs = threadMs();
    const processorMs = nowMs - spentMs;
    spentMs = nowMs;
    const isReport = isOwn;
    isOwn = false;
    if (isReport) return;
    if (turns.length === TURNS_KEPT && processorMs <= turns[TURNS_KEPT - 1]!.processorMs) return;
    turns.push({ endMs: performance.now(), tookMs, processorMs });
    turns.sort((one, other) => other.processorMs - one.processorMs);
    turns.length = Math.min(turns.length, TURNS_KEPT);
  });
  process.on("SIGUSR2", () => {
    const longest = turns;
    isOwn = true;
    // Not before the first signal: a server that loads its program while it is sampled hangs now and then.
    if (!isSampling) {
      isSampling = true;
      turns = [];
      session.connect();
      session.post("Profiler.enable");
      session.post("Profiler.setSamplingInterval", { interval: SAMPLE_US });
      session.post("Profiler.start");
      return;
    }
    session.post("Profiler.stop", (error, result) => {
      if (error === null) for (const turn of longest) writeSync(STDERR, saidOf(turn, result.profile));
      turns = [];
      pauses = [];
      session.post("Profiler.start");
    });
  });

  function saidOf({ endMs, tookMs, processorMs }: Turn, profile: Profiler.Profile): string {
    const fromMs = endMs - tookMs;
    const within = pauses.filter(({ startMs, ms }) => startMs < endMs && startMs + ms > fromMs);
    const collector = within.map(({ kind, ms }) => `${kind} ${ms.toFixed(1)}`).join(", ");
    const head = `\nbench-profile turn of ${tookMs.toFixed(1)} ms, ${processorMs.toFixed(1)} of a processor; collector: ${collector}\n`;
    return head + framesIn(profile, fromMs, endMs);
  }
}

/** The profile's clock is the monotonic one, as `process.hrtime` reads it. */
function framesIn(profile: Profiler.Profile, fromMs: number, endMs: number): string {
  const offsetUs = Number(process.hrtime.bigint() / 1000n) - performance.now() * US_PER_MS;
  const [fromUs, endUs] = [fromMs * US_PER_MS + offsetUs, endMs * US_PER_MS + offsetUs];
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map<number, number>();
  for (const { id, children } of profile.nodes) for (const child of children ?? []) parents.set(child, id);
  const [own, whole] = [new Map<string, number>(), new Map<string, number>()];
  let atUs = profile.startTime;
  for (const [at, id] of (profile.samples ?? []).entries()) {
    const tookUs = profile.timeDeltas?.[at] ?? 0;
    atUs += tookUs;
    if (atUs < fromUs || atUs > endUs) continue;
    const seen = new Set<string>();
    for (let up: number | undefined = id; up !== undefined; up = parents.get(up)) {
      const name = nameOf(byId.get(up)!);
      if (up === id) own.set(name, (own.get(name) ?? 0) + tookUs);
      if (!seen.has(name)) whole.set(name, (whole.get(name) ?? 0) + tookUs);
      seen.add(name);
    }
  }
  return `bench-profile   own: ${mostOf(own)}\nbench-profile   whole: ${mostOf(whole)}\n`;
}

function nameOf({ callFrame }: Profiler.ProfileNode): string {
  const file = callFrame.url.split("/").slice(-2).join("/");
  return `${callFrame.functionName || "(anonymous)"} ${file}:${callFrame.lineNumber + 1}`;
}

function mostOf(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .slice(0, FRAMES_SAID)
    .map(([name, us]) => `${(us / US_PER_MS).toFixed(1)} ${name}`)
    .join("; ");
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / US_PER_MS;
}
