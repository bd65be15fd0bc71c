// `chaos gate`: rounds of iterations, each with one fault, on workers that increment a counter through gate and fence.
//
//   round:     a crew of two to five ─▶ iterations ─▶ all end ─▶ ledger and resource are compared ─▶ both are cleared
//   iteration: steady ─▶ fault ─▶ somebody else's first acknowledged write ─▶ stale writes ─▶ undone
//
// What the seed decides: the sizes of crews, directions and pauses. What it can't: how real
// processes are scheduled.

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { waitFor } from "../servers/index.ts";
import { Crew } from "./crew.ts";
import { familyOf, type FaultKind, mayKeepLeader, staleDuringTakeover } from "./faults.ts";
import { Ghost } from "./ghost.ts";
import { Ledger } from "./ledger.ts";
import type { Stage } from "./stage.ts";
import { strike } from "./strike.ts";

export interface RunOptions {
  /** The faults, in this order. */
  readonly deck: readonly FaultKind[];
  readonly minutes: number;
  readonly seed: number;
  /** Undefined: drawn for each round. */
  readonly workers: number | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export interface RunResult {
  readonly iterations: number;
  readonly increments: number;
  readonly lostUpdates: number;
  readonly overlappingTerms: number;
  readonly unknown: number;
  readonly staleAttempts: number;
  readonly staleRejected: number;
  /** Sent before it was known that the epoch was over; those that were accepted are judged by the order of writes. */
  readonly staleEarly: number;
  /** The most that one leader had open, as seen. */
  readonly concurrentTransactions: number;
  readonly failoverMs: ReadonlyMap<string, readonly number[]>;
  readonly fired: Readonly<Partial<Record<FaultKind, number>>>;
  readonly failed: readonly string[];
}

const ROUND_ITERATIONS = 20;
const WORKERS_MIN = 2;
const WORKERS_MAX = 5;
/** Before a fault, the leader has acknowledged so many increments. */
const STEADY_ACKS = 24;
const STEADY_MS_MAX = 30_000;
const TAKEOVER_MS_MAX = 30_000;
const STALE_PER_ITERATION = 12;
/** Fewer than this for each iteration, and the run has proved little. */
const STALE_NEEDED = 10;
/** How long stale writes go on after the takeover. */
const HAUNT_MS = 60;
const LIMIT_REACHED = "the time was over";

export async function runGate(stage: Stage, options: RunOptions): Promise<RunResult> {
  const run = new GateRun(stage, options);
  try {
    await run.play();
  } catch (error) {
    run.fail(error);
    await run.compareAfterFailure();
  } finally {
    await run.end();
  }
  return run.result();
}

class GateRun {
  readonly #stage: Stage;
  readonly #options: RunOptions;
  readonly #crew: Crew;
  readonly #ghost: Ghost;
  readonly #random: Random;
  readonly #deck: readonly FaultKind[];
  readonly #failover = new Map<string, number[]>();
  readonly #fired: Partial<Record<FaultKind, number>> = {};
  readonly #failed: string[] = [];
  readonly #untilMs: number;
  readonly #sum = { increments: 0, lostUpdates: 0, overlappingTerms: 0, unknown: 0 };
  #openMax = 0;
  #iterations = 0;

  constructor(stage: Stage, options: RunOptions) {
    this.#stage = stage;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#crew = new Crew((place, name) => stage.configure(place, name), options.signal);
    this.#ghost = new Ghost(stage, this.#crew, this.#random.fork("ghost"));
    this.#deck = options.deck;
    this.#untilMs = performance.now() + options.minutes * 60_000;
  }

  fail(reason: unknown): void {
    this.#failed.push(reason instanceof Error ? reason.message : String(reason));
  }

  /** What was lost is worth knowing then too, where it can be found out. */
  async compareAfterFailure(): Promise<void> {
    if (this.#options.signal.aborted) return;
    try {
      await this.#ghost.stop();
      await this.#compare();
    } catch (error) {
      this.fail(error);
    }
  }

  async play(): Promise<void> {
    for (let from = 0; from < this.#deck.length; from += ROUND_ITERATIONS) {
      const kinds = this.#deck.slice(from, from + ROUND_ITERATIONS);
      const drawn = WORKERS_MIN + this.#random.below(WORKERS_MAX - WORKERS_MIN + 1);
      const outcome = await this.#round(kinds, this.#options.workers ?? drawn);
      if (outcome !== "played") {
        this.fail(`${outcome} after ${this.#iterations} of ${this.#deck.length} iterations`);
        return;
      }
    }
  }

  async end(): Promise<void> {
    await this.#ghost.stop();
    this.#crew.killAll();
    await Promise.all(this.#crew.members.map((member) => member.gone));
  }

  async #round(kinds: readonly FaultKind[], workers: number): Promise<"played" | "interrupted" | typeof LIMIT_REACHED> {
    await this.#stage.proxies.open(workers);
    this.#crew.ledger = new Ledger();
    this.#crew.acksInTerm = 0;
    for (let place = 0; place < workers; place++) this.#crew.start(place);
    let outcome: "played" | "interrupted" | typeof LIMIT_REACHED = "played";
    for (const kind of kinds) {
      if (this.#options.signal.aborted) outcome = "interrupted";
      else if (performance.now() > this.#untilMs) outcome = LIMIT_REACHED;
      if (outcome !== "played") break;
      await this.#iteration(kind, workers);
    }
    if (outcome !== "interrupted") await this.#compare();
    return outcome;
  }

  async #iteration(kind: FaultKind, workers: number): Promise<void> {
    const crew = this.#crew;
    await this.#steady(kind);
    const { epoch, place, worker } = crew.last!;
    this.#ghost.remember(epoch);
    if (staleDuringTakeover(kind)) this.#ghost.start();
    const done = await strike(kind, this.#stage, crew, crew.at(place), this.#random);
    this.#fired[kind] = (this.#fired[kind] ?? 0) + 1;
    const sinceMs = mayKeepLeader(this.#stage.backend, kind) ? done.atMs : undefined;
    const next = await crew.nextAck(epoch, TAKEOVER_MS_MAX, sinceMs);
    const tookMs = Math.max(0, next.atMs - done.atMs);
    const family = familyOf(kind);
    this.#failover.set(family, [...(this.#failover.get(family) ?? []), tookMs]);
    this.#ghost.start();
    const undone = done.undo();
    await sleep(HAUNT_MS);
    await this.#ghost.stop();
    await this.#ghost.volley(STALE_PER_ITERATION);
    await undone;
    this.#iterations++;
    this.#options.log(
      `${String(this.#iterations).padStart(4)}/${this.#deck.length}  ${kind.padEnd(17)} of ${workers}: ${worker} in epoch ${epoch} ─▶ ${next.worker} in epoch ${next.epoch} after ${tookMs.toFixed(0)} ms`,
    );
    const finding = crew.findings[0];
    if (finding !== undefined) throw new Error(`iteration ${this.#iterations} (${kind}): ${finding}`);
  }

  /** Somebody leads and writes, and everybody else waits. */
  async #steady(kind: FaultKind): Promise<void> {
    const crew = this.#crew;
    const { signal } = this.#options;
    const isReady = async (): Promise<boolean> => {
      if (signal.aborted) throw new Error("interrupted");
      const { last } = crew;
      if (last === undefined || crew.acksInTerm < STEADY_ACKS) return false;
      const others = crew.members.filter((member) => member.place !== last.place);
      if (crew.at(last.place).name !== last.worker || !crew.at(last.place).isAlive) return false;
      if (!others.every((member) => member.isAlive)) return false;
      // Also those that were started just now: on a small machine a start would slow down the takeover that is measured.
      if (!others.every((member) => member.transition.startsWith("campaigning"))) return false;
      return this.#stage.hasWaiters(others.length);
    };
    try {
      await waitFor(`a steady leader before ${kind}`, isReady, STEADY_MS_MAX);
    } catch (error) {
      const states = crew.members.map((member) => `${member.name} ${member.state}`).join(", ");
      throw new Error(
        `${(error as Error).message}: ${states}; ${[...crew.findings, ...crew.troubles].slice(-5).join("; ")}`,
        {
          cause: error,
        },
      );
    }
    await sleep(this.#random.between(0, 100));
  }

  /** The end of a round: nobody writes any more, so ledger and resource must agree. */
  async #compare(): Promise<void> {
    await this.#crew.endAll();
    await this.#ghost.volley(STALE_PER_ITERATION);
    const verdict = this.#crew.ledger.compare(await this.#stage.read());
    this.#sum.increments += verdict.increments;
    this.#sum.lostUpdates += verdict.lostUpdates;
    this.#sum.overlappingTerms += verdict.overlappingTerms;
    this.#sum.unknown += verdict.unknown;
    this.#openMax = Math.max(this.#openMax, this.#crew.ledger.openMax);
    for (const finding of [...verdict.findings, ...this.#crew.findings.splice(0)]) this.fail(finding);
    this.#options.log(
      `      compared: ${verdict.increments} increments, ${verdict.unknown} unknown, ${verdict.lostUpdates} lost, ${verdict.overlappingTerms} terms overlap; ${this.#crew.stale.rejected} of ${this.#crew.stale.attempts} stale writes refused so far`,
    );
    for (const trouble of this.#crew.troubles.splice(0)) this.#options.log(`      lead() rejected at ${trouble}`);
    await this.#stage.clear();
  }

  result(): RunResult {
    const { attempts, rejected, early } = this.#crew.stale;
    const failed = [...this.#failed];
    const needed = STALE_NEEDED * this.#deck.length;
    const missing = [...new Set(this.#deck)].filter((kind) => this.#fired[kind] === undefined);
    if (missing.length > 0) failed.push(`these faults never fired: ${missing.join(", ")}`);
    if (this.#sum.increments < STEADY_ACKS * this.#deck.length) {
      failed.push(
        `only ${this.#sum.increments} increments in ${this.#deck.length} iterations: there was no traffic to speak of`,
      );
    }
    const { lanes } = this.#stage.options;
    if (this.#openMax < lanes) failed.push(`at most ${this.#openMax} of ${lanes} transactions were open at once`);
    if (attempts < needed) failed.push(`only ${attempts} stale writes were tried; ${needed} are needed`);
    if (rejected !== attempts) failed.push(`${attempts - rejected} stale writes were not refused`);
    if (this.#sum.lostUpdates > 0) failed.push(`${this.#sum.lostUpdates} updates were lost`);
    if (this.#sum.overlappingTerms > 0) failed.push(`${this.#sum.overlappingTerms} terms overlap`);
    return {
      iterations: this.#iterations,
      ...this.#sum,
      staleAttempts: attempts,
      staleRejected: rejected,
      staleEarly: early,
      concurrentTransactions: this.#openMax,
      failoverMs: this.#failover,
      fired: this.#fired,
      failed,
    };
  }
}
