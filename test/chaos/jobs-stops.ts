// `chaos jobs --stops N`: agents and servers are stopped in order (SIGTERM), N times, as a rolling deploy does it, while jobs come
// and every byte between agents and servers takes 400 ms. Nothing else fails, so a stop may cost nothing (trap 81): no attempt is
// lost, every job is completed. What an answer in flight was to bring is `undelivered` in the log, and given again at once.

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { TenureError } from "../../src/entry/client.ts";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { waitFor } from "../servers/index.ts";
import type { Agents } from "./jobs-agents.ts";
import { type ChaosPayload, JOB_KIND } from "./jobs-journal.ts";
import type { JobEvent } from "./jobs-judge.ts";
import type { JobsBackend, JobsStage } from "./jobs-stage.ts";
import type { Submission } from "./jobs-submitters.ts";
import { onStage, verdictOn } from "./jobs-verdict.ts";

export interface StopsOptions {
  readonly backend: JobsBackend;
  readonly stops: number;
  readonly minutes: number;
  readonly seed: number;
  /** Planted into every agent. */
  readonly edits?: readonly Edit[] | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export interface StopsResult {
  readonly agentStops: number;
  readonly nodeStops: number;
  readonly jobs: number;
  readonly completed: number;
  /** Attempts that were lost or failed: what stops have cost. */
  readonly losses: number;
  readonly handedBack: number;
  /** Taken back from an answer in flight. */
  readonly undelivered: number;
  readonly failovers: number;
  readonly failed: readonly string[];
}

const WAY_MS = 400;
const PLACES = 3;
const CAPACITY = 4;
/** The default: what is lost is lost by a stop, not by a busy machine. */
const LEASE_MS = 15_000;
const JOBS_AT_ONCE = 8;
const SUBMIT_EVERY_MS = { min: 50, max: 350 };
const WORK_MS_MAX = 500;
const PAUSE_MS_MAX = 1_500;
/** One server in so many stops: its hand-over takes longer than an agent's stop. */
const NODE_EVERY = 5;
const LEADER_SHARE = 0.7;
const SUBMIT_MS_MAX = 60_000;
const STEADY_MS_MAX = 60_000;
const FINISH_MS_MAX = 120_000;
/** Of so many stops of agents at least one came while an answer was on its way. */
const STOPS_PER_UNDELIVERED = 20;
const DEAR: readonly unknown[] = ["lost", "failed", "timed-out"];

export async function runStops(options: StopsOptions): Promise<StopsResult> {
  const agency = { places: PLACES, agentsPerPlace: 1, capacity: CAPACITY, leaseMs: LEASE_MS };
  const staging = { backend: options.backend, agentEdits: options.edits, ...agency };
  return await onStage(staging, (stage, agents) => new Stops(options, stage, agents).play());
}

class Stops {
  readonly #options: StopsOptions;
  readonly #stage: JobsStage;
  readonly #agents: Agents;
  readonly #random: Random;
  readonly #submissions: Submission[] = [];
  readonly #failed: string[] = [];
  readonly #enough = new AbortController();
  #agentStops = 0;
  #nodeStops = 0;

  constructor(options: StopsOptions, stage: JobsStage, agents: Agents) {
    this.#options = options;
    this.#stage = stage;
    this.#agents = agents;
    this.#random = seededRandom(options.seed).fork("stops");
  }

  async play(): Promise<StopsResult> {
    const { stops, minutes, signal, log } = this.#options;
    for (const node of this.#stage.nodes) this.#stage.proxy(node).delay(WAY_MS);
    this.#agents.start();
    const submitting = this.#submit();
    const untilMs = performance.now() + minutes * 60_000;
    try {
      await this.#allOnline();
      for (let stop = 1; stop <= stops; stop++) {
        if (signal.aborted) throw new Error("interrupted");
        if (performance.now() > untilMs) throw new Error(`the time was over after ${stop - 1} stops`);
        await sleep(this.#random.between(0, PAUSE_MS_MAX));
        await (stop % NODE_EVERY === 0 ? this.#stopNode() : this.#stopAgent());
        if (stop % NODE_EVERY === 0) log(`${stop} of ${stops} stops`);
      }
    } catch (error) {
      this.#failed.push((error as Error).message);
    }
    this.#enough.abort();
    await submitting.catch((error: unknown) => this.#failed.push((error as Error).message));
    await this.#finished().catch((error: unknown) => this.#failed.push((error as Error).message));
    return await this.#judged();
  }

  async #submit(): Promise<void> {
    const random = this.#random.fork("submit");
    const client = this.#stage.client(SUBMIT_MS_MAX);
    for (let round = 1; !this.#enough.signal.aborted; round++) {
      const tags = Array.from({ length: 1 + random.below(JOBS_AT_ONCE) }, (_, at) => `s${round}.${at}`);
      const payloads = tags.map((tag): ChaosPayload => ({
        tag,
        workMs: random.below(WORK_MS_MAX),
        isDeaf: random.chance(0.5),
        isTalkative: false,
      }));
      const ids = await client.submitMany(
        payloads.map((payload) => ({ kind: JOB_KIND, payload })),
        { idempotencyKey: `stops-${round}` },
      );
      this.#submissions.push({ manner: "patient", tags, fate: { kind: "acknowledged", ids }, wasUnknown: false });
      await sleep(random.between(SUBMIT_EVERY_MS.min, SUBMIT_EVERY_MS.max));
    }
  }

  async #allOnline(): Promise<void> {
    const client = this.#stage.client(SUBMIT_MS_MAX);
    const isSo = async (): Promise<boolean> => (await client.stats().catch(() => null))?.agentsOnline === PLACES;
    await waitFor("all agents", isSo, STEADY_MS_MAX);
  }

  async #stopAgent(): Promise<void> {
    const place = this.#agents.places[this.#random.below(PLACES)]!;
    await place.term();
    place.start();
    this.#agentStops++;
  }

  async #stopNode(): Promise<void> {
    await this.#stage.cluster.steady(STEADY_MS_MAX);
    const leader = await this.#stage.cluster.leader();
    const isLeaders = this.#random.chance(LEADER_SHARE);
    const node = this.#stage.nodes.find(({ id }) => (id === leader) === isLeaders)!;
    await node.term();
    this.#stage.start(node);
    this.#nodeStops++;
    await this.#stage.cluster.steady(STEADY_MS_MAX);
  }

  async #finished(): Promise<void> {
    const client = this.#stage.client(SUBMIT_MS_MAX);
    const submitted = this.#submissions.reduce((sum, { tags }) => sum + tags.length, 0);
    const isOver = async (): Promise<boolean> => {
      try {
        return (await client.stats({ consistency: "linearizable" })).finished >= submitted;
      } catch (error) {
        if (TenureError.is(error)) return false;
        throw error;
      }
    };
    await waitFor(`all ${submitted} jobs to finish`, isOver, FINISH_MS_MAX);
    await this.#agents.end();
  }

  async #judged(): Promise<StopsResult> {
    await this.#agents.kill();
    const evidence = { submissions: this.#submissions };
    const { judgement, events, findings } = await verdictOn(this.#stage, this.#agents, evidence);
    const dear = events.filter((event) => DEAR.includes(causeOf(event)));
    const count = (cause: string): number => events.filter((event) => causeOf(event) === cause).length;
    const undelivered = count("undelivered");
    const failed = [
      ...this.#failed,
      ...findings,
      ...dear
        .slice(0, 3)
        .map((event) => `a stop cost an attempt of job ${event.entityId}: ${causeOf(event) as string}`),
    ];
    if (undelivered < Math.floor(this.#agentStops / STOPS_PER_UNDELIVERED)) {
      failed.push(`${undelivered} answers in flight at ${this.#agentStops} stops of agents: too few to prove anything`);
    }
    return {
      agentStops: this.#agentStops,
      nodeStops: this.#nodeStops,
      jobs: judgement.jobs,
      completed: judgement.completed,
      losses: dear.length,
      handedBack: count("handed-back"),
      undelivered,
      failovers: judgement.failovers,
      failed,
    };
  }
}

function causeOf({ payload }: JobEvent): unknown {
  return (payload as { readonly cause?: unknown }).cause;
}
