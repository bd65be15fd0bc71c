// An agent: leases jobs of its kinds, runs their handlers, and says how they ended.
//
//   made ──start──▶ starting ──▶ running ──stop──▶ draining ──▶ ended      another start is another session (trap 55)
//                       │           └──replaced, removed, or broken──▲
//                       └──stop: waits for the registration under way┘
//
// Draining takes no new jobs, waits for those that run, aborts and hands back what is left, also what an answer in flight was to
// bring (trap 81), and ends when all of it is answered or the time is over. Whatever is not answered then ends with its lease.

import { TenureError } from "../core/kit/errors.ts";
import { messageOf } from "../core/kit/user-code.ts";
import type { Attempt } from "./attempt.ts";
import { pause } from "../loops/time.ts";
import { Beats } from "./beats.ts";
import { Crew, type CrewWorld } from "./crew.ts";
import { STOP_DRAIN_MS, AGENT_FAREWELL_MS, HANDLERS_GRACE_MS } from "./limits.ts";
import { Polls } from "./polls.ts";
import { Results } from "./results.ts";
import type { CheckedSettings } from "./settings.ts";

export interface Agent extends AsyncDisposable {
  /** Resolves when the cluster knows it, or it was stopped meanwhile; rejects for what no retry repairs, such as a wrong key. */
  start(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /**
   * No new jobs; what is not done after `drainMs` (10 seconds) is aborted, has `graceMs` (a second) to end, and is handed back. A
   * cluster that does not answer costs five seconds more, at most. Never rejects.
   */
  stop(options?: StopOptions): Promise<void>;
  /** Jobs in its hands. */
  readonly running: number;
  /** Null before its start. */
  readonly session: string | null;
  /** Resolves when it has ended, with the reason where nobody asked for it: replaced by another process, removed, or INTERNAL. */
  readonly ended: Promise<TenureError | null>;
}

export interface StopOptions {
  readonly drainMs?: number | undefined;
  readonly graceMs?: number | undefined;
}

export interface AgentWorld extends CrewWorld {
  readonly newSession: () => string;
}

type Phase = "made" | "starting" | "running" | "draining" | "ended";

export class JobAgent implements Agent {
  readonly ended: Promise<TenureError | null>;
  readonly #settings: CheckedSettings;
  readonly #world: AgentWorld;
  readonly #end = Promise.withResolvers<TenureError | null>();
  #phase: Phase = "made";
  #crew: Crew | null = null;
  #polls: Polls | null = null;
  #loops: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | null = null;
  /** Registers no more. */
  readonly #unwanted = new AbortController();
  #isRegistering = false;

  constructor(settings: CheckedSettings, world: AgentWorld) {
    this.#settings = settings;
    this.#world = world;
    this.ended = this.#end.promise;
  }

  get running(): number {
    return this.#crew?.attempts.size ?? 0;
  }

  get session(): string | null {
    return this.#crew?.info.session ?? null;
  }

  async start({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (this.#phase !== "made") {
      throw new TenureError(
        "CONFIG_INVALID",
        "This agent was started before. Make another: each start is one of its own.",
      );
    }
    this.#phase = "starting";
    const crew = new Crew(this.#settings, this.#world, this.#world.newSession());
    this.#crew = crew;
    crew.onReplaced = (error) => this.#endedBy(error);
    crew.onBroken = (error) => this.#broken(error);
    const beats = new Beats(crew);
    try {
      await this.#register(crew, beats, signal);
    } catch (error) {
      this.#finish(null);
      throw error;
    } finally {
      this.#isRegistering = false;
      crew.idleBell.ring();
    }
    // Stopped meanwhile.
    if (this.#phase !== "starting") return;
    this.#phase = "running";
    this.#polls = new Polls(crew);
    const loops = [beats.run(), this.#polls.run(), new Results(crew).run()];
    this.#loops = Promise.all(loops.map((loop) => loop.catch(crew.onBroken)));
  }

  stop({ drainMs = STOP_DRAIN_MS, graceMs = HANDLERS_GRACE_MS }: StopOptions = {}): Promise<void> {
    this.#stopping ??= this.#drain(drainMs, graceMs);
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #register(crew: Crew, beats: Beats, signal: AbortSignal | undefined): Promise<void> {
    const unwanted = this.#unwanted.signal;
    const over = crew.over.signal;
    const stopped = signal === undefined ? over : AbortSignal.any([signal, over]);
    const pausing = AbortSignal.any([stopped, unwanted]);
    this.#isRegistering = true;
    for (let failures = 0; !pausing.aborted; failures++) {
      try {
        return await beats.register(stopped);
      } catch (error) {
        signal?.throwIfAborted();
        if (pausing.aborted) return;
        const mayPass = TenureError.is(error) && (error.retryable || error.code === "OUTCOME_UNKNOWN");
        if (!mayPass) throw error;
        await pause(this.#world.clock, crew.failed(error, failures), pausing);
      }
    }
    signal?.throwIfAborted();
  }

  async #drain(drainMs: number, graceMs: number): Promise<void> {
    const crew = this.#crew;
    if (crew !== null && this.#phase === "starting") await this.#unregistered(crew);
    if (crew === null || this.#phase !== "running") return this.#finish(null);
    this.#phase = "draining";
    const polls = this.#polls;
    polls?.stop();
    await this.#settled(crew, drainMs, () => crew.attempts.size === 0);
    const left = [...crew.attempts.values()];
    for (const attempt of left) attempt.abort("stopping", "This agent stops.");
    await this.#settled(crew, graceMs, () => left.every((one) => one.outcome !== null || one.isOver));
    for (const attempt of left) handBack(attempt);
    crew.ringAll();
    await this.#settled(crew, AGENT_FAREWELL_MS, () => crew.attempts.size === 0 && polls?.isOver !== false);
    this.#finish(null);
    await this.#loops;
  }

  /** A registration that arrives after the end would take the name from whoever starts next: it is waited for, and not repeated. */
  async #unregistered(crew: Crew): Promise<void> {
    this.#phase = "draining";
    this.#unwanted.abort();
    await this.#settled(crew, AGENT_FAREWELL_MS, () => !this.#isRegistering);
  }

  /** Until it is so, or the time is over, or there is nobody to tell. */
  async #settled(crew: Crew, limitMs: number, isSo: () => boolean): Promise<void> {
    const { clock } = this.#world;
    const untilMs = clock.monotonicMs() + limitMs;
    while (!isSo() && !crew.over.signal.aborted && clock.monotonicMs() < untilMs) await crew.idleBell.wait(untilMs);
  }

  #endedBy(error: TenureError): void {
    for (const attempt of this.#crew?.attempts.values() ?? []) attempt.abort("lease-lost", error.message);
    this.#finish(error);
  }

  /** A loop of ours failed for no reason of the world's: to go on with half of them would be worse than to end. */
  #broken(cause: unknown): void {
    const message = `This agent has failed by itself, and has ended: ${messageOf(cause)}`;
    this.#endedBy(new TenureError("INTERNAL", message, { cause }));
  }

  #finish(error: TenureError | null): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#polls?.stop();
    this.#crew?.over.abort();
    for (const attempt of this.#crew?.attempts.values() ?? []) attempt.finish();
    this.#crew?.ringAll();
    this.#end.resolve(error);
  }
}

/** Also where its handler does not end: it was told to, and the job is needed elsewhere. */
function handBack(attempt: Attempt): void {
  if (attempt.outcome === null) attempt.settle({ kind: "handed-back" });
}
