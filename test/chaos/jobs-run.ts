// `chaos jobs` on one backend: three servers, agents and submitters, all processes or loops of their own, under faults.
//
//   stage ─▶ traffic, with faults on servers and on agents next to it ─▶ all submitted ─▶ faults over
//         ─▶ unknown submissions are asked again ─▶ everything finishes ─▶ every server is read and compared ─▶ all end
//
// What the seed decides: the order of faults, victims, sizes, what jobs do. What it can't: how processes are scheduled.

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import type { Client } from "../../src/entry/client.ts";
import { waitFor } from "../servers/index.ts";
import { deckOf } from "./faults.ts";
import type { Agents } from "./jobs-agents.ts";
import { AGENT_WEIGHTS, DEPOSING, type JobsFault, SERVER_WEIGHTS } from "./jobs-faults.ts";
import { type KeyCounts, KeyTraffic } from "./key-traffic.ts";
import { Ghosts } from "./jobs-ghosts.ts";
import type { Judgement } from "./jobs-judge.ts";
import { Phases } from "./jobs-phases.ts";
import type { JobsPlant } from "./jobs-plants.ts";
import { type ReaderCounts, Readers } from "./jobs-rewrite.ts";
import type { JobsBackend, JobsStage } from "./jobs-stage.ts";
import { JobsStrikes } from "./jobs-strikes.ts";
import { Submitters, sumOf } from "./jobs-submitters.ts";
import { onStage, verdictOn } from "./jobs-verdict.ts";

export interface JobsRunOptions {
  readonly backend: JobsBackend;
  readonly jobs: number;
  readonly perSecond: number;
  readonly minutes: number;
  readonly seed: number;
  readonly plant?: JobsPlant | undefined;
  /** The share of jobs that take a third of a lease: the more, the more is in agents' hands when they are struck. */
  readonly slowShare?: number | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export interface JobsRunResult extends Omit<Judgement, "findings"> {
  readonly faults: Readonly<Partial<Record<JobsFault, number>>>;
  /** Requests that were sent into leaders while they were stopped. */
  readonly insideStopped: number;
  /** Replicated keys (key-traffic.ts), and how many valid ones were refused. */
  readonly keys: KeyCounts & { readonly refused: number };
  /** Readers of events (jobs-rewrite.ts). */
  readonly readers: ReaderCounts;
  readonly events: number;
  readonly failed: readonly string[];
}

const PLACES = 4;
const CAPACITY = 8;
const LEASE_MS = 1_500;
/** Between two faults of one lane. */
const PAUSE_MS = { min: 100, max: 700 };
/** Of each phase, from the end of the traffic's own time on (jobs-phases.ts). */
const TRAFFIC_END_MS_MAX = 45_000;
const FAULTS_END_MS_MAX = 240_000;
const SETTLE_MS_MAX = 120_000;
const RESOLVE_MS_MAX = 120_000;
const FINISH_MS_MAX = 180_000;
const AGENTS_END_MS_MAX = 30_000;
const READERS_MS_MAX = 300_000;
/** So many of all faults that depose a leader must have led to another epoch. */
const FAILOVER_SHARE = 0.5;
/** So many stale results for each fault on an agent. */
const STALE_SHARE = 0.1;
const FINDINGS_MAX = 20;
/** A lane begins with each of its kinds once, then draws from decks of this size. */
const DECK = 48;
/** Of each lane: traffic goes on until there were so many. */
const FAULTS_MIN = 3;
const SLOW_SHARE = 0.1;
const KEY_MS_MAX = 10_000;
const KEY_CALLS_MIN = 20;

/** No server answered; it is asked again. */
const NOBODY = { byState: null };

export async function runJobs(options: JobsRunOptions): Promise<JobsRunResult> {
  const { plant, backend, log } = options;
  const agency = { places: PLACES, agentsPerPlace: 1, capacity: CAPACITY, leaseMs: LEASE_MS };
  const staging = { backend, serverEdits: plant?.server, agentEdits: plant?.agent, ...agency };
  const result = await onStage(staging, async (stage, agents) => {
    const run = new JobsRun(options, stage, agents);
    try {
      return await run.play();
    } finally {
      await run.end();
    }
  });
  log("all processes have ended");
  return result;
}

class JobsRun {
  readonly #options: JobsRunOptions;
  readonly #stage: JobsStage;
  readonly #random: Random;
  readonly #client: Client;
  readonly #agents: Agents;
  readonly #submitters: Submitters;
  readonly #ghosts: Ghosts;
  readonly #strikes: JobsStrikes;
  readonly #keys: KeyTraffic;
  readonly #readers: Readers;
  readonly #faults: Partial<Record<JobsFault, number>> = {};
  readonly #failed: string[] = [];
  /** Aborts when traffic is to end before all is submitted. */
  readonly #stop: AbortSignal;
  readonly #calm = new AbortController();
  /** Aborts with the first failure: what comes later would be a longer report about the same. */
  readonly #broken = new AbortController();
  readonly #phases: Phases;

  constructor(options: JobsRunOptions, stage: JobsStage, agents: Agents) {
    const { seed, jobs, perSecond, signal, minutes, slowShare = SLOW_SHARE } = options;
    this.#options = options;
    this.#stage = stage;
    this.#agents = agents;
    this.#phases = new Phases({ log: options.log, hasFailed: () => this.#hasFailed() });
    this.#random = seededRandom(seed);
    this.#client = stage.client();
    this.#stop = AbortSignal.any([signal, AbortSignal.timeout(minutes * 60_000), this.#broken.signal]);
    this.#submitters = new Submitters({
      client: (timeoutMs) => stage.client(timeoutMs),
      random: this.#random.fork("submitters"),
      jobs,
      perSecond,
      isEnough: () => this.#hasFailed() || this.#isStruckEnough(),
      slowShare,
      leaseMs: LEASE_MS,
      signal: this.#stop,
    });
    this.#ghosts = new Ghosts(this.#client, signal);
    this.#strikes = new JobsStrikes({
      stage,
      agents: this.#agents,
      submitters: this.#submitters,
      ghosts: this.#ghosts,
      random: this.#random.fork("strikes"),
      leaseMs: LEASE_MS,
      isCalm: () => this.#calm.signal.aborted,
    });
    this.#readers = new Readers(stage);
    let next = 0;
    const names = new Map<string, string>();
    this.#keys = new KeyTraffic({
      urls: stage.urls,
      random: this.#random.fork("keys"),
      make: async () => {
        const name = `key-${++next}`;
        const { key } = await this.#client.keys.create({ name, role: "viewer" }, { timeoutMs: KEY_MS_MAX });
        names.set(key, name);
        return key;
      },
      done: async (key) => {
        const name = names.get(key)!;
        names.delete(key);
        await this.#client.keys.revoke(name, { timeoutMs: KEY_MS_MAX });
      },
    });
  }

  async play(): Promise<JobsRunResult> {
    this.#agents.start();
    const lanes = [
      this.#lane(SERVER_WEIGHTS[this.#options.backend], "servers", (kind) => this.#strikes.server(kind)),
      this.#lane(AGENT_WEIGHTS, "agents", (kind) => this.#strikes.agent(kind)),
    ];
    const trafficMs = this.#options.minutes * 60_000 + TRAFFIC_END_MS_MAX;
    await this.#phase("traffic", trafficMs, () => this.#submitters.run());
    this.#calm.abort();
    await this.#phase("the last faults end", FAULTS_END_MS_MAX, () => Promise.all(lanes));
    await this.#phase("clients with replicated keys end", SETTLE_MS_MAX, () => this.#keys.stop());
    await this.#finish().catch((error: unknown) => this.#fail((error as Error).message));
    return await this.#judged();
  }

  /** One that fails is noted, and the next one begins. */
  async #phase(name: string, limitMs: number, work: () => Promise<unknown>): Promise<void> {
    await this.#phases.run(name, limitMs, work).catch((error: unknown) => this.#fail((error as Error).message));
  }

  /** Also after a failure, at every moment. */
  async end(): Promise<void> {
    this.#calm.abort();
    await this.#keys.stop();
    await this.#readers.stop();
  }

  #fail(reason: string): void {
    if (this.#failed.length < FINDINGS_MAX) this.#failed.push(reason);
    this.#broken.abort();
  }

  /**
   * Also where an agent or a server has ended by itself, which the verdict reports: without them no job would ever finish. Planted mistakes
   * end servers too (a result that does not fit), and there is more to see of them.
   */
  #hasFailed(): boolean {
    const crashes = this.#stage.crashes.length + this.#agents.crashes().length;
    const hasFailed = this.#failed.length > 0 || (crashes > 0 && this.#options.plant === undefined);
    if (hasFailed) this.#broken.abort();
    return hasFailed;
  }

  // ---- faults --------------------------------------------------------------------------------------

  async #lane<Kind extends JobsFault>(
    weights: Readonly<Partial<Record<Kind, number>>>,
    name: string,
    strike: (kind: Kind) => Promise<void>,
  ): Promise<void> {
    const random = this.#random.fork(name);
    const wanted = this.#kindsOf(weights);
    if (wanted.length === 0) return;
    const { signal } = this.#calm;
    let fired = 0;
    for (let deck: Kind[] = []; !signal.aborted;) {
      await sleep(random.between(PAUSE_MS.min, PAUSE_MS.max), undefined, { signal }).catch(() => undefined);
      if (signal.aborted || this.#hasFailed()) return;
      if (deck.length === 0) deck = deckOf<Kind>(weights, fired === 0 ? wanted.length : DECK, random, wanted);
      const kind = deck.pop()!;
      try {
        await strike(kind);
        fired++;
        this.#faults[kind] = (this.#faults[kind] ?? 0) + 1;
        const acknowledged = String(this.#submitters.acknowledged).padStart(6);
        this.#options.log(`${this.#phases.seconds} s  ${acknowledged} jobs acknowledged  ${kind}`);
      } catch (error) {
        this.#fail(`${kind}: ${(error as Error).message}`);
      }
    }
  }

  /** Also stale results: without them nothing was fenced off. */
  #isStruckEnough(): boolean {
    const { told } = this.#ghosts;
    const isSeen = this.#options.plant?.isSeen?.(told) ?? true;
    return this.#missing().length === 0 && told.length >= this.#hurtAgents() * STALE_SHARE && isSeen;
  }

  #hurtAgents(): number {
    return (this.#faults["kill-agent"] ?? 0) + (this.#faults["stop-agent"] ?? 0);
  }

  /** What is missing for faults to speak of. */
  #missing(): string[] {
    return [this.#kindsOf(SERVER_WEIGHTS[this.#options.backend]), this.#kindsOf(AGENT_WEIGHTS)].flatMap(
      (kinds: readonly JobsFault[]) => {
        const fired = sumOf(kinds, (kind) => this.#faults[kind] ?? 0);
        if (kinds.length > 0 && fired < FAULTS_MIN) return [`only ${fired} faults of these: ${kinds.join(", ")}`];
        const never = kinds.filter((kind) => this.#faults[kind] === undefined);
        return fired >= DECK && never.length > 0 ? [`these faults never fired: ${never.join(", ")}`] : [];
      },
    );
  }

  #kindsOf<Kind extends JobsFault>(weights: Readonly<Partial<Record<Kind, number>>>): Kind[] {
    const planted = this.#options.plant?.faults;
    return (Object.keys(weights) as Kind[]).filter((kind) => planted?.includes(kind) ?? true);
  }

  // ---- the end -------------------------------------------------------------------------------------

  async #finish(): Promise<void> {
    const phases = this.#phases;
    await phases.run("everybody runs again", SETTLE_MS_MAX, async (limitMs) => {
      await this.#stage.heal();
      for (const place of this.#agents.places) {
        place.signal("SIGCONT");
        place.start();
      }
      await this.#stage.cluster.steady(limitMs);
    });
    await phases.run("requests into stopped leaders are answered", SETTLE_MS_MAX, () => this.#strikes.settled());
    await phases.run("unknown submissions are asked again", RESOLVE_MS_MAX, () => this.#submitters.resolve());
    await phases.run("stale results are sent", SETTLE_MS_MAX, () => this.#ghosts.settled());
    await phases.run("all jobs finish", FINISH_MS_MAX, (ms) => this.#allFinished(ms));
    // Their last words, which may be about results that were taken.
    await phases.run("agents end", AGENTS_END_MS_MAX, () => this.#agents.end());
  }

  async #allFinished(limitMs: number): Promise<void> {
    let left = "";
    await waitFor(
      "all jobs to finish",
      async () => {
        const { byState } = await this.#client.stats({ consistency: "linearizable" }).catch(() => NOBODY);
        if (byState === null) return false;
        const open = (["pending", "assigned", "building", "cancelling"] as const).filter((state) => byState[state] > 0);
        left = open.map((state) => `${byState[state]} ${state}`).join(", ");
        return open.length === 0;
      },
      limitMs,
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${left} are left`);
    });
  }

  async #judged(): Promise<JobsRunResult> {
    // Where it did not finish they still work, and what is read must not change any more.
    await this.#agents.kill();
    const evidence = { submissions: this.#submitters.submissions, ghosts: this.#ghosts.told };
    const { judgement, events, findings } = await verdictOn(this.#stage, this.#agents, evidence);
    for (const finding of findings) this.#fail(finding);
    for (const why of [...this.#keys.refusals, ...this.#submitters.denials]) this.#fail(why);
    await this.#phase("readers have all events", READERS_MS_MAX, async () => {
      for (const finding of await this.#readersJudged()) this.#fail(finding);
    });
    const failed = [...this.#failed, ...this.#weaknesses(judgement)];
    if (this.#options.signal.aborted) failed.push("interrupted");
    const faults = { ...this.#faults };
    const insideStopped = this.#strikes.inside;
    const keys = { ...this.#keys.counts, refused: this.#keys.refusals.length + this.#submitters.denials.length };
    const readers = this.#readers.counts;
    return { ...judgement, faults, insideStopped, keys, readers, events: events.length, failed };
  }

  /** Each has all events; and on Postgres also after the last act, which rewrites the history under them. */
  async #readersJudged(): Promise<string[]> {
    try {
      const hasFailed = this.#failed.length > 0;
      const findings = await this.#readers.judged(hasFailed);
      if (findings.length > 0 || hasFailed || this.#options.backend !== "postgres") return findings;
      return await this.#readers.rewrite();
    } catch (error) {
      return [`readers of events: ${(error as Error).message}`];
    }
  }

  /** Why the run proves little, whatever it found. */
  #weaknesses({ jobs, failovers, staleAttempts, assignments }: Omit<Judgement, "findings">): string[] {
    const why: string[] = [];
    if (jobs < this.#options.jobs) why.push(`only ${jobs} of ${this.#options.jobs} jobs were acknowledged`);
    if (assignments < jobs) why.push(`only ${assignments} assignments for ${jobs} jobs`);
    why.push(...this.#missing());
    if (this.#keys.counts.calls < KEY_CALLS_MIN)
      why.push(`only ${this.#keys.counts.calls} calls with replicated keys were answered: too few`);
    const deposed = sumOf([...DEPOSING], (kind) => this.#faults[kind] ?? 0);
    if (failovers < deposed * FAILOVER_SHARE)
      why.push(`${failovers} failovers by ${deposed} faults that depose: too few`);
    const hurt = this.#hurtAgents();
    if (staleAttempts < hurt * STALE_SHARE) {
      why.push(`${staleAttempts} stale results by ${hurt} agents that were killed or stopped: too few`);
    }
    return why;
  }
}
