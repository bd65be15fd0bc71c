// `chaos jobs --race N`: twenty agents wait, ten jobs come, N times, while leaders are killed in the middle of rounds.
//
// Exactly ten assignments a round: each job is given to one agent, and nobody is given anything else. What a leader wrote and
// took to its grave before an agent heard of it is no assignment to anybody: the log must show that the lease ended before
// the job was given away again, and such leases are counted apart.

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { TenureError } from "../../src/entry/client.ts";
import { waitFor } from "../servers/index.ts";
import type { Agents } from "./jobs-agents.ts";
import { type ChaosPayload, JOB_KIND } from "./jobs-journal.ts";
import type { JobsBackend, JobsStage } from "./jobs-stage.ts";
import type { Submission } from "./jobs-submitters.ts";
import { onStage, verdictOn } from "./jobs-verdict.ts";

export interface RaceOptions {
  readonly backend: JobsBackend;
  readonly rounds: number;
  readonly minutes: number;
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export interface RaceResult {
  readonly rounds: number;
  /** Rounds in which agents were given exactly as many leases as there were jobs, one for each. */
  readonly exact: number;
  readonly assignments: number;
  readonly undelivered: number;
  readonly failovers: number;
  readonly kills: number;
  readonly failed: readonly string[];
}

const JOBS = 10;
const PLACES = 4;
const AGENTS_PER_PLACE = 5;
/** Long enough that no living agent loses one on a busy machine. */
const LEASE_MS = 3_000;
/** In every such round the leader is killed. */
const KILL_EVERY = 10;
const KILL_AFTER_MS_MAX = 15;
const SUBMIT_MS_MAX = 60_000;
const ROUND_MS_MAX = 60_000;
const STEADY_MS_MAX = 60_000;
/** So many of all kills must have led to another epoch in the log. */
const FAILOVER_SHARE = 0.8;

export async function runRace(options: RaceOptions): Promise<RaceResult> {
  const agency = { places: PLACES, agentsPerPlace: AGENTS_PER_PLACE, capacity: 1, leaseMs: LEASE_MS };
  const { backend } = options;
  return await onStage({ backend, ...agency }, (stage, agents) => new Race(options, stage, agents).play());
}

class Race {
  readonly #options: RaceOptions;
  readonly #stage: JobsStage;
  readonly #agents: Agents;
  readonly #random: Random;
  readonly #submissions: Submission[] = [];
  readonly #failed: string[] = [];
  #kills = 0;

  constructor(options: RaceOptions, stage: JobsStage, agents: Agents) {
    this.#options = options;
    this.#stage = stage;
    this.#agents = agents;
    this.#random = seededRandom(options.seed).fork("race");
  }

  async play(): Promise<RaceResult> {
    const { rounds, minutes, signal, log } = this.#options;
    this.#agents.start();
    const client = this.#stage.client();
    const awaited = PLACES * AGENTS_PER_PLACE;
    await waitFor("all agents", async () => (await client.stats().catch(() => null))?.agentsOnline === awaited);
    const untilMs = performance.now() + minutes * 60_000;
    try {
      for (let round = 1; round <= rounds; round++) {
        if (signal.aborted) throw new Error("interrupted");
        if (performance.now() > untilMs) throw new Error(`the time was over after ${round - 1} rounds`);
        const killed = round % KILL_EVERY === 0 ? await this.#killSoon() : null;
        await this.#round(round);
        await killed?.();
        if (round % KILL_EVERY === 0) log(`round ${round} of ${rounds}, ${this.#kills} leaders killed`);
      }
    } catch (error) {
      this.#failed.push((error as Error).message);
    }
    return await this.#judged();
  }

  async #round(round: number): Promise<void> {
    const tags = Array.from({ length: JOBS }, (_, at) => `r${round}.${at}`);
    const payloads = tags.map((tag): ChaosPayload => ({ tag, workMs: 0, isDeaf: true, isTalkative: false }));
    const jobs = payloads.map((payload) => ({ kind: JOB_KIND, payload }));
    const client = this.#stage.client(SUBMIT_MS_MAX);
    const ids = await client.submitMany(jobs, { idempotencyKey: `race-${round}` });
    this.#submissions.push({ manner: "patient", tags, fate: { kind: "acknowledged", ids }, wasUnknown: false });
    const isOver = async (): Promise<boolean> => {
      try {
        return (await client.stats()).finished >= round * JOBS;
      } catch (error) {
        if (TenureError.is(error)) return false;
        throw error;
      }
    };
    await waitFor(`the jobs of round ${round} to finish`, isOver, ROUND_MS_MAX);
  }

  /** Somewhere in the round that begins now. Resolves to what brings the dead one back. */
  async #killSoon(): Promise<() => Promise<void>> {
    await this.#stage.cluster.steady(STEADY_MS_MAX);
    const { node } = await this.#stage.leader();
    const killing = sleep(this.#random.between(0, KILL_AFTER_MS_MAX)).then(() => node.kill9());
    return async () => {
      await killing;
      this.#kills++;
      this.#stage.start(node);
    };
  }

  async #judged(): Promise<RaceResult> {
    await this.#stage.heal();
    await this.#agents.end();
    const evidence = { submissions: this.#submissions };
    const { judgement, lines, findings } = await verdictOn(this.#stage, this.#agents, evidence);
    const exact = this.#exactRounds(lines.flatMap((line) => (line.is === "leased" ? [line.job] : [])));
    const failed = [...this.#failed, ...findings];
    if (exact < this.#options.rounds) failed.push(`only ${exact} of ${this.#options.rounds} rounds were exact`);
    if (judgement.failovers < this.#kills * FAILOVER_SHARE) {
      failed.push(`${judgement.failovers} failovers by ${this.#kills} kills: too few`);
    }
    if (this.#options.rounds >= KILL_EVERY && this.#kills === 0) failed.push("no leader was killed");
    const { assignments, undelivered, failovers } = judgement;
    return { rounds: this.#submissions.length, exact, assignments, undelivered, failovers, kills: this.#kills, failed };
  }

  /** `given`: the job of each lease that any agent was given. */
  #exactRounds(given: readonly string[]): number {
    const times = Map.groupBy(given, (job) => job);
    return this.#submissions.filter(
      ({ fate }) => fate.kind === "acknowledged" && fate.ids.every((id) => times.get(id)?.length === 1),
    ).length;
  }
}
