// The beat: renews every lease, and brings progress and logs. It never waits for a handler, nor for a poll that is parked
// (trap 52), and one is under way at a time, so what is printed arrives in order.
//
//   reporting ──a beat with reports fails──▶ bare: only renews ──a beat succeeds──▶ reporting, with fewer logs at once
//
// What a handler prints must not cost it its lease, however slow the way to the cluster is.

import { LOG_CHUNKS_PER_CALL_MAX } from "../core/kit/limits.ts";
import type { LeaseAnswer, LeaseCall, LogChunk } from "../ports/jobs.ts";
import type { Attempt } from "./attempt.ts";
import { type Crew, instantOf, isAboutContent, isReplaced } from "./crew.ts";
import { LOG_BYTES_PER_CALL_MAX, LOG_BYTES_PER_CALL_MIN, REPORT_MS } from "./limits.ts";

/** After a failure a quarter of it, after a success this much more. */
const LOG_BYTES_FALL = 4;
const LOG_BYTES_RISE = LOG_BYTES_PER_CALL_MAX / 16;
/** Shares of a lease: a call with reports leaves time for bare ones behind it. */
const REPORT_SHARE = 1 / 4;
const BARE_SHARE = 1 / 2;

interface Reports {
  readonly progress: LeaseCall["progress"];
  readonly logs: LeaseCall["logs"];
  /** They were taken; also where nobody wanted them. `logEnds`: as the answer has them; none where it was a refusal. */
  readonly confirm: (logEnds: LeaseAnswer["logEnds"]) => void;
}

const NOTHING: Reports = { progress: [], logs: [], confirm: () => undefined };

export class Beats {
  readonly #crew: Crew;
  #sentMs = Number.NEGATIVE_INFINITY;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #turns = 0;
  #isBare = false;
  #logBytesMax = LOG_BYTES_PER_CALL_MAX;

  constructor(crew: Crew) {
    this.#crew = crew;
  }

  async run(): Promise<void> {
    const { over, beatBell, world } = this.#crew;
    while (!over.signal.aborted) {
      const dueMs = this.#dueMs();
      if (dueMs !== null && world.clock.monotonicMs() >= dueMs) await this.#beat();
      else await beatBell.wait(dueMs);
    }
  }

  /** Registers the agent. Rejects as the call does. */
  async register(signal: AbortSignal): Promise<void> {
    const { world, info, settings } = this.#crew;
    const call = { agent: info, renew: [], progress: [], logs: [], max: 0, waitMs: 0, ttlMs: settings.leaseMs };
    const { agentEpoch } = await world.desk.lease(call, { signal, timeoutMs: settings.leaseMs });
    this.#crew.epoch = agentEpoch;
  }

  #dueMs(): number | null {
    const attempts = [...this.#crew.attempts.values()];
    if (attempts.length === 0) return null;
    return Math.max(this.#notBeforeMs, this.#sentMs + this.#waitMs(attempts));
  }

  #waitMs(attempts: readonly Attempt[]): number {
    if (attempts.some((one) => one.needsRenewal || (one.outcome !== null && !one.logs.isEmpty))) return 0;
    const isReporting = attempts.some((one) => one.progress !== null || !one.logs.isEmpty);
    return isReporting ? Math.min(REPORT_MS, this.#crew.settings.beatMs) : this.#crew.settings.beatMs;
  }

  async #beat(): Promise<void> {
    const { world, info, settings, attempts, over } = this.#crew;
    const { clock, desk } = world;
    const reports = this.#isBare ? NOTHING : this.#reports();
    const sentAt = instantOf(clock);
    this.#sentMs = sentAt.monotonicMs;
    const renew = Array.from(attempts.values(), (one) => one.ref);
    const { progress, logs } = reports;
    const agentEpoch = this.#crew.epoch;
    const call = { agent: info, agentEpoch, renew, progress, logs, max: 0, waitMs: 0, ttlMs: settings.leaseMs };
    const isReporting = progress.length + logs.length > 0;
    const timeoutMs = settings.leaseMs * (isReporting ? REPORT_SHARE : BARE_SHARE);
    // Where the way is slow, one long attempt gets further than several that are each cut off.
    const attemptMs = isReporting && this.#logBytesMax < LOG_BYTES_PER_CALL_MAX ? timeoutMs : undefined;
    try {
      const answer = await desk.lease(call, { signal: over.signal, timeoutMs, attemptMs });
      this.#failures = 0;
      this.#isBare = false;
      if (logs.length > 0) this.#logBytesMax = Math.min(LOG_BYTES_PER_CALL_MAX, this.#logBytesMax + LOG_BYTES_RISE);
      reports.confirm(answer.logEnds);
      this.#crew.heard(sentAt, answer);
    } catch (error) {
      if (isReplaced(error)) return this.#crew.onReplaced(error);
      // Leases must not end for what a handler printed.
      if (isAboutContent(error)) reports.confirm([]);
      this.#isBare = true;
      if (logs.length > 0)
        this.#logBytesMax = Math.max(LOG_BYTES_PER_CALL_MIN, Math.floor(this.#logBytesMax / LOG_BYTES_FALL));
      this.#notBeforeMs = clock.monotonicMs() + this.#crew.failed(error, this.#failures++);
      this.#sentMs = Number.NEGATIVE_INFINITY;
    }
  }

  /** Those that have ended first, whose results wait for their logs; of the others another one comes first each time. */
  #inTurn(): readonly Attempt[] {
    const all = [...this.#crew.attempts.values()];
    const ended = all.filter(({ outcome }) => outcome !== null);
    const others = all.filter(({ outcome }) => outcome === null);
    const first = others.length === 0 ? 0 : this.#turns++ % others.length;
    return [...ended, ...others.slice(first), ...others.slice(0, first)];
  }

  #reports(): Reports {
    const progress: LeaseCall["progress"][number][] = [];
    const logs: LeaseCall["logs"][number][] = [];
    const taken: ((logEnds: LeaseAnswer["logEnds"]) => void)[] = [];
    let bytesLeft = this.#logBytesMax;
    const turn = this.#inTurn();
    let waiting = turn.filter((one) => !one.logs.isEmpty).length;
    for (const attempt of turn) {
      const said = attempt.progress;
      if (said !== null && attempt.outcome === null) progress.push({ ...attempt.ref, progress: said });
      taken.push(() => {
        if (attempt.progress === said) attempt.progress = null;
      });
      if (bytesLeft <= 0 || logs.length >= LOG_CHUNKS_PER_CALL_MAX || attempt.logs.isEmpty) continue;
      const share = Math.ceil(bytesLeft / Math.max(1, waiting--));
      const chunks: readonly LogChunk[] = attempt.logs.take(share).slice(0, LOG_CHUNKS_PER_CALL_MAX - logs.length);
      const at = logs.length;
      for (const chunk of chunks) {
        logs.push({ ...attempt.ref, chunk });
        bytesLeft -= chunk.text.length;
      }
      taken.push((logEnds) => attempt.logs.answered(chunks, logEnds[at] ?? null));
    }
    return { progress, logs, confirm: (logEnds) => taken.forEach((done) => done(logEnds)) };
  }
}
